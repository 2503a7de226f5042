package podspec

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validateEnv is ValidateEnv and ValidateEnvFrom. Names are nearly free
// (RelaxedEnvironmentVariableValidation); what of them a shell can use is the
// shell's business.
func (c *checker) validateEnv(ctr *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ctr.Env {
		e, p := &ctr.Env[i], path.Child("env").Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			errs = append(errs, fields.Invalid(p.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom != nil {
			errs = append(errs, c.validateEnvSource(e, p.Child("valueFrom"))...)
		}
	}
	for i := range ctr.EnvFrom {
		e, list := &ctr.EnvFrom[i], path.Child("envFrom")
		p := list.Index(i)
		if e.Prefix != "" {
			errs = append(errs, fields.Invalid(p.Child("prefix"), e.Prefix, validation.IsRelaxedEnvVarName(e.Prefix))...)
		}
		if e.ConfigMapRef != nil {
			errs = append(errs, objectName(e.ConfigMapRef.Name, true, p.Child("configMapRef", "name"))...)
		}
		if e.SecretRef != nil {
			errs = append(errs, objectName(e.SecretRef.Name, true, p.Child("secretRef", "name"))...)
		}
		// One source, no more and no less. The list is blamed.
		switch {
		case e.ConfigMapRef == nil && e.SecretRef == nil:
			errs = append(errs, field.Invalid(list, "", "must specify one of: `configMapRef` or `secretRef`"))
		case e.ConfigMapRef != nil && e.SecretRef != nil:
			errs = append(errs, field.Invalid(list, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

// objectName requires the name of an object; prefix lets it end with a dash.
func objectName(name string, prefix bool, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return fields.Invalid(path, name, apivalidation.NameIsDNSSubdomain(name, prefix))
}

// validateEnvSource is validateEnvVarValueFrom.
func (c *checker) validateEnvSource(e *v1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	from := e.ValueFrom
	n := 0
	if f := from.FieldRef; f != nil {
		n++
		errs = append(errs, validateFieldRef(f, envFields, path.Child("fieldRef"))...)
	}
	if f := from.ResourceFieldRef; f != nil {
		n++
		errs = append(errs, validateResourceRef(f, false, path.Child("resourceFieldRef"))...)
	}
	if f := from.ConfigMapKeyRef; f != nil {
		n++
		errs = append(errs, validateKeyRef(f.Name, f.Key, path.Child("configMapKeyRef"))...)
	}
	if f := from.SecretKeyRef; f != nil {
		n++
		errs = append(errs, validateKeyRef(f.Name, f.Key, path.Child("secretKeyRef"))...)
	}
	if f := from.FileKeyRef; f != nil {
		n++
		errs = append(errs, c.validateFileRef(f, path.Child("fileKeyRef"))...)
	}
	switch {
	case n == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case n > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

// validateKeyRef checks a key of a config map or a secret, as the object would check it,
// so that a typo shows before the pod waits for it.
func validateKeyRef(object, key string, path *field.Path) field.ErrorList {
	errs := fields.Invalid(path.Child("name"), object, apivalidation.NameIsDNSSubdomain(object, false))
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, fields.Invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// validateFileRef checks a variable that is read from a file of an emptyDir
// (validateFileKeySelector, validateFileKeyRefVolumes).
func (c *checker) validateFileRef(f *v1.FileKeySelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if f.Key == "" {
		errs = append(errs, field.Required(path.Child("key"), ""))
	} else {
		errs = append(errs, fields.Invalid(path.Child("key"), f.Key, validation.IsRelaxedEnvVarName(f.Key))...)
	}
	volume := path.Child("volumeName")
	if f.VolumeName == "" {
		errs = append(errs, field.Required(volume, ""))
	} else {
		errs = append(errs, fields.DNSLabel(f.VolumeName, volume)...)
	}
	if f.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	} else {
		errs = append(errs, noBacksteps(f.Path, path.Child("path"))...)
	}
	i := slices.IndexFunc(c.spec.Volumes, func(v v1.Volume) bool { return v.Name == f.VolumeName })
	switch {
	case i < 0:
		errs = append(errs, field.NotFound(volume, f.VolumeName))
	case c.spec.Volumes[i].EmptyDir == nil:
		errs = append(errs, field.Invalid(volume, f.VolumeName, "referenced volume must be of type emptyDir"))
	}
	return errs
}

// selectable are the fields of a pod that a variable, or a file, may show.
type selectable int

const (
	envFields selectable = iota
	volumeFields
)

// names are sorted.
func (s selectable) names() []string {
	if s == volumeFields {
		return []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
	}
	return []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
}

// podFields are those that can be named at all (ConvertDownwardAPIFieldLabel).
func podField(name string) bool {
	switch name {
	case "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase":
		return true
	}
	return slices.Contains(envFields.names(), name)
}

// validateFieldRef is validateObjectFieldSelector. A label or an annotation is named by
// its key in brackets.
func validateFieldRef(f *v1.ObjectFieldSelector, allowed selectable, path *field.Path) field.ErrorList {
	at := path.Child("fieldPath")
	switch {
	case f.APIVersion == "":
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	case f.FieldPath == "":
		return field.ErrorList{field.Required(at, "")}
	case f.APIVersion != "v1":
		return field.ErrorList{field.Invalid(at, f.FieldPath, "error converting fieldPath: unsupported pod version: "+f.APIVersion)}
	}
	name, key, ok := strings.Cut(strings.TrimSuffix(f.FieldPath, "']"), "['")
	switch {
	case !ok || name == "" || !strings.HasSuffix(f.FieldPath, "']"):
	case name == "metadata.annotations":
		return fields.Invalid(path, strings.ToLower(key), validation.IsQualifiedName(strings.ToLower(key)))
	case name == "metadata.labels":
		return fields.Invalid(path, key, validation.IsQualifiedName(key))
	default:
		return field.ErrorList{field.Invalid(at, f.FieldPath, "error converting fieldPath: field label does not support subscript: "+f.FieldPath)}
	}
	name = f.FieldPath
	if name == "spec.host" { // as it was once called
		name = "spec.nodeName"
	}
	switch {
	case !podField(name):
		return field.ErrorList{field.Invalid(at, f.FieldPath, "error converting fieldPath: field label not supported: "+f.FieldPath)}
	case !slices.Contains(allowed.names(), name):
		return field.ErrorList{field.NotSupported(at, name, allowed.names())}
	}
	return nil
}

// validateResourceRef is validateContainerResourceFieldSelector. A file must name its
// container, as a volume belongs to none.
func validateResourceRef(f *v1.ResourceFieldSelector, file bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	supported := []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"}
	kind, resource, _ := strings.Cut(f.Resource, ".")
	pages := (kind == "limits" || kind == "requests") && strings.HasPrefix(resource, v1.ResourceHugePagesPrefix)
	switch {
	case file && f.ContainerName == "":
		errs = append(errs, field.Required(path.Child("containerName"), ""))
	case f.Resource == "":
		errs = append(errs, field.Required(path.Child("resource"), ""))
	case !pages && !slices.Contains(supported, f.Resource):
		errs = append(errs, field.NotSupported(path.Child("resource"), f.Resource, supported))
	}
	if f.Divisor.IsZero() {
		return errs
	}
	divisors := "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
	text := ""
	switch {
	case pages:
		text = "only divisor's values " + divisors + " are supported with the hugepages resource"
	case !slices.Contains(supported, f.Resource):
		return errs
	case resource == "cpu":
		divisors = "1m, 1"
		text = "only divisor's values 1m and 1 are supported with the cpu resource"
	case resource == "memory":
		text = "only divisor's values " + divisors + " are supported with the memory resource"
	default:
		text = "only divisor's values " + divisors + " are supported with the local ephemeral storage resource"
	}
	if !slices.Contains(strings.Split(divisors, ", "), f.Divisor.String()) {
		errs = append(errs, field.Invalid(path.Child("divisor"), f.Resource, text))
	}
	return errs
}

// The paths of upstream's checks of mounts are those of the list, not of the mount, where
// they say so.

// validateMounts is ValidateVolumeMounts. path is the list's.
func (c *checker) validateMounts(ctr *v1.Container, path *field.Path) field.ErrorList {
	if len(ctr.VolumeMounts) == 0 {
		return nil
	}
	var errs field.ErrorList
	// Two mounts at one place would hide each other.
	paths := map[string]bool{}
	for i := range ctr.VolumeMounts {
		m, p := &ctr.VolumeMounts[i], path.Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		}
		if c.volumes[m.Name] == nil {
			errs = append(errs, field.NotFound(p.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(p.Child("mountPath"), ""))
		}
		if paths[m.MountPath] {
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths[m.MountPath] = true
		if slices.ContainsFunc(ctr.VolumeDevices, func(d v1.VolumeDevice) bool { return d.Name == m.Name }) {
			errs = append(errs, field.Invalid(p.Child("name"), m.Name, "must not already exist in volumeDevices"))
		}
		if slices.ContainsFunc(ctr.VolumeDevices, func(d v1.VolumeDevice) bool { return d.DevicePath == m.MountPath }) {
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices"))
		}
		if m.SubPath != "" {
			errs = append(errs, descendingPath(m.SubPath, path.Child("subPath"))...)
		}
		if m.SubPathExpr != "" {
			if m.SubPath != "" {
				errs = append(errs, field.Invalid(p.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
			}
			errs = append(errs, descendingPath(m.SubPathExpr, path.Child("subPathExpr"))...)
		}
		errs = append(errs, validatePropagation(m, ctr, path)...)
	}
	return errs
}

// validatePropagation checks what of a mount other mounts see (validateMountPropagation,
// validateMountRecursiveReadOnly).
func validatePropagation(m *v1.VolumeMount, ctr *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if mode := m.MountPropagation; mode != nil {
		p := path.Child("mountPropagation")
		errs = append(errs, fields.Supported(*mode, p, v1.MountPropagationBidirectional, v1.MountPropagationHostToContainer, v1.MountPropagationNone)...)
		sc := ctr.SecurityContext
		if *mode == v1.MountPropagationBidirectional && (sc == nil || sc.Privileged == nil || !*sc.Privileged) {
			errs = append(errs, field.Forbidden(p, "Bidirectional mount propagation is available only to privileged containers"))
		}
	}
	if mode := m.RecursiveReadOnly; mode != nil && *mode != v1.RecursiveReadOnlyDisabled {
		p := path.Child("recursiveReadOnly")
		if *mode != v1.RecursiveReadOnlyEnabled && *mode != v1.RecursiveReadOnlyIfPossible {
			return append(errs, fields.Supported(*mode, p, v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyIfPossible)...)
		}
		if !m.ReadOnly {
			errs = append(errs, field.Forbidden(p, "may only be specified when readOnly is true"))
		}
		if m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone {
			errs = append(errs, field.Forbidden(p, "may only be specified when mountPropagation is None or not specified"))
		}
	}
	return errs
}

// validateDevices is ValidateVolumeDevices: claims as block devices.
func (c *checker) validateDevices(ctr *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, d := range ctr.VolumeDevices {
		p, before := path.Index(i), ctr.VolumeDevices[:i]
		if d.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else if slices.ContainsFunc(before, func(o v1.VolumeDevice) bool { return o.Name == d.Name }) {
			errs = append(errs, field.Invalid(p.Child("name"), d.Name, "must be unique"))
		}
		switch v := c.volumes[d.Name]; {
		case v == nil:
			errs = append(errs, field.NotFound(p.Child("name"), d.Name))
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			errs = append(errs, field.Invalid(p.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		back := func(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }
		if d.DevicePath == "" {
			errs = append(errs, field.Required(p.Child("devicePath"), ""))
		}
		if slices.ContainsFunc(before, func(o v1.VolumeDevice) bool { return o.DevicePath == d.DevicePath && !back(o.DevicePath) }) {
			errs = append(errs, field.Invalid(p.Child("devicePath"), d.DevicePath, "must be unique"))
		}
		if back(d.DevicePath) {
			errs = append(errs, field.Invalid(p.Child("devicePath"), d.DevicePath, "can not contain backsteps ('..')"))
		}
		if slices.ContainsFunc(ctr.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == d.Name }) {
			errs = append(errs, field.Invalid(p.Child("name"), d.Name, "must not already exist in volumeMounts"))
		}
		if slices.ContainsFunc(ctr.VolumeMounts, func(m v1.VolumeMount) bool { return m.MountPath == d.DevicePath }) {
			errs = append(errs, field.Invalid(p.Child("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts"))
		}
	}
	return errs
}

// descendingPath requires a relative path that does not leave its root
// (validateLocalDescendingPath): it becomes a path below a volume on the host.
func descendingPath(v string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(v, "/") {
		errs = append(errs, field.Invalid(path, v, "must be a relative path"))
	}
	return append(errs, noBacksteps(v, path)...)
}

// noBacksteps is validatePathNoBacksteps.
func noBacksteps(v string, path *field.Path) field.ErrorList {
	if !slices.Contains(strings.Split(v, "/"), "..") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, v, "must not contain '..'")}
}

// localPath is ValidateLocalNonReservedPath: the kubelet keeps names that begin with two
// dots to itself.
func localPath(v string, path *field.Path) field.ErrorList {
	errs := descendingPath(v, path)
	if strings.HasPrefix(v, "..") && !strings.HasPrefix(v, "../") {
		errs = append(errs, field.Invalid(path, v, "must not start with '..'"))
	}
	return errs
}
