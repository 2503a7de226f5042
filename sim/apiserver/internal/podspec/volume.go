package podspec

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validateVolumes checks a pod's volumes and returns them by name, for the mounts.
// One with a mistake in its source is among them: a mount of it is no mistake of
// its own.
func validateVolumes(list []v1.Volume, path *field.Path) (field.ErrorList, map[string]*v1.Volume) {
	var errs field.ErrorList
	byName := map[string]*v1.Volume{}
	for i := range list {
		v := &list[i]
		p := path.Index(i)
		if v.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			errs = append(errs, fields.DNSLabel(v.Name, p.Child("name"))...)
			if byName[v.Name] != nil {
				errs = append(errs, field.Duplicate(p.Child("name"), v.Name))
			}
			byName[v.Name] = v
		}
		errs = append(errs, validateVolumeSource(&v.VolumeSource, p)...)
	}
	return errs, byName
}

// sources counts the sources that are set. Reflection keeps it right for sources
// that this package does not know.
func sources(s *v1.VolumeSource) int {
	n := 0
	val := reflect.ValueOf(*s)
	for i := range val.NumField() {
		if f := val.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			n++
		}
	}
	return n
}

// validateVolumeSource is validateVolumeSource for the sources that the kubelet
// here can mount; of others it says only that there is one. They are refused, or
// wait, where they are mounted.
func validateVolumeSource(s *v1.VolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// Defaulting leaves no volume without a source.
	switch n := sources(s); {
	case n == 0:
		return field.ErrorList{field.Required(path, "must specify a volume type")}
	case n > 1:
		return field.ErrorList{field.Forbidden(path, "may not specify more than 1 volume type")}
	}
	switch {
	case s.EmptyDir != nil:
		if q := s.EmptyDir.SizeLimit; q != nil && q.Sign() < 0 {
			errs = append(errs, field.Forbidden(path.Child("emptyDir", "sizeLimit"), "SizeLimit field must be a valid resource quantity"))
		}
	case s.HostPath != nil:
		p := path.Child("hostPath")
		if s.HostPath.Path == "" {
			errs = append(errs, field.Required(p.Child("path"), ""))
		}
		// The kubelet checks what is there when it mounts.
		if t := s.HostPath.Type; t != nil && *t != "" {
			errs = append(errs, fields.OneOf(*t, p.Child("type"), v1.HostPathBlockDev, v1.HostPathCharDev, v1.HostPathDirectory, v1.HostPathDirectoryOrCreate, v1.HostPathFile, v1.HostPathFileOrCreate, v1.HostPathSocket)...)
		}
	case s.Secret != nil:
		p := path.Child("secret")
		if s.Secret.SecretName == "" {
			errs = append(errs, field.Required(p.Child("secretName"), ""))
		}
		errs = append(errs, validateMode(s.Secret.DefaultMode, p.Child("defaultMode"))...)
		errs = append(errs, validateKeyPaths(s.Secret.Items, p.Child("items"))...)
	case s.ConfigMap != nil:
		p := path.Child("configMap")
		if s.ConfigMap.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		}
		errs = append(errs, validateMode(s.ConfigMap.DefaultMode, p.Child("defaultMode"))...)
		errs = append(errs, validateKeyPaths(s.ConfigMap.Items, p.Child("items"))...)
	case s.DownwardAPI != nil:
		p := path.Child("downwardAPI")
		errs = append(errs, validateMode(s.DownwardAPI.DefaultMode, p.Child("defaultMode"))...)
		for i, item := range s.DownwardAPI.Items {
			errs = append(errs, validateDownwardItem(&item, p.Child("items").Index(i))...)
		}
	case s.Projected != nil:
		p := path.Child("projected")
		errs = append(errs, validateMode(s.Projected.DefaultMode, p.Child("defaultMode"))...)
		for i := range s.Projected.Sources {
			errs = append(errs, validateProjection(&s.Projected.Sources[i], p.Child("sources").Index(i))...)
		}
	case s.PersistentVolumeClaim != nil:
		if s.PersistentVolumeClaim.ClaimName == "" {
			errs = append(errs, field.Required(path.Child("persistentVolumeClaim", "claimName"), ""))
		}
	}
	return errs
}

// validateProjection is validateProjectionSources for one source. Trust bundles and
// pod certificates are counted, not looked into.
func validateProjection(s *v1.VolumeProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	if s.Secret != nil {
		n++
		if s.Secret.Name == "" {
			errs = append(errs, field.Required(path.Child("secret", "name"), ""))
		}
		errs = append(errs, validateKeyPaths(s.Secret.Items, path.Child("secret", "items"))...)
	}
	if s.ConfigMap != nil {
		n++
		if s.ConfigMap.Name == "" {
			errs = append(errs, field.Required(path.Child("configMap", "name"), ""))
		}
		errs = append(errs, validateKeyPaths(s.ConfigMap.Items, path.Child("configMap", "items"))...)
	}
	if s.DownwardAPI != nil {
		n++
		for i, item := range s.DownwardAPI.Items {
			errs = append(errs, validateDownwardItem(&item, path.Child("downwardAPI", "items").Index(i))...)
		}
	}
	if t := s.ServiceAccountToken; t != nil {
		n++
		// The kubelet renews a token at 80 % of its life: a shorter one would come
		// too often.
		if t.ExpirationSeconds != nil && *t.ExpirationSeconds < 600 {
			errs = append(errs, field.Invalid(path.Child("serviceAccountToken", "expirationSeconds"), *t.ExpirationSeconds, "may not specify a duration less than 10 minutes"))
		}
		if t.Path == "" {
			errs = append(errs, field.Required(path.Child("serviceAccountToken", "path"), ""))
		}
	}
	if s.ClusterTrustBundle != nil || s.PodCertificate != nil {
		n++
	}
	switch {
	case n == 0:
		errs = append(errs, field.Required(path, "must specify a volume projection type"))
	case n > 1:
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type"))
	}
	return errs
}

// validateDownwardItem is validateDownwardAPIVolumeFile. A resource must name its
// container, as a volume belongs to none.
func validateDownwardItem(f *v1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if f.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	} else {
		errs = append(errs, localPath(f.Path, path.Child("path"))...)
	}
	switch {
	case f.FieldRef == nil && f.ResourceFieldRef == nil:
		errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
	case f.FieldRef != nil && f.ResourceFieldRef != nil:
		errs = append(errs, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
	case f.ResourceFieldRef != nil && f.ResourceFieldRef.ContainerName == "":
		errs = append(errs, field.Required(path.Child("resourceFieldRef", "containerName"), ""))
	}
	return append(errs, validateMode(f.Mode, path.Child("mode"))...)
}

// validateKeyPaths is validateKeyToPath for a list: the keys of an object that
// become files, and where.
func validateKeyPaths(items []v1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, it := range items {
		p := path.Index(i)
		if it.Key == "" {
			errs = append(errs, field.Required(p.Child("key"), ""))
		}
		if it.Path == "" {
			errs = append(errs, field.Required(p.Child("path"), ""))
		} else {
			errs = append(errs, localPath(it.Path, p.Child("path"))...)
		}
		errs = append(errs, validateMode(it.Mode, p.Child("mode"))...)
	}
	return errs
}

// validateMode is ValidateFileMode: permission bits alone.
func validateMode(mode *int32, path *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}
