package podspec

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validateVolumes is ValidateVolumes. It notes the volumes by name, for the mounts: one
// with a mistake is not among them.
func (c *checker) validateVolumes(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	c.volumes = map[string]*v1.Volume{}
	for i := range c.spec.Volumes {
		v, p := &c.spec.Volumes[i], path.Index(i)
		own := c.validateVolumeSource(v, p)
		if v.Name == "" {
			own = append(own, field.Required(p.Child("name"), ""))
		} else {
			own = append(own, fields.DNSLabel(v.Name, p.Child("name"))...)
		}
		if c.volumes[v.Name] != nil {
			own = append(own, field.Duplicate(p.Child("name"), v.Name))
		}
		if len(own) == 0 {
			c.volumes[v.Name] = v
		}
		errs = append(errs, own...)
		if claim := v.PersistentVolumeClaim; claim != nil && c.makesClaim(claim.ClaimName) {
			errs = append(errs, field.Invalid(p.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, "must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return errs
}

// makesClaim reports whether an ephemeral volume of the pod makes a claim of that name.
func (c *checker) makesClaim(name string) bool {
	if c.pod == nil || c.pod.Name == "" {
		return false
	}
	for i := range c.spec.Volumes {
		if v := &c.spec.Volumes[i]; v.Ephemeral != nil && name == c.pod.Name+"-"+v.Name {
			return true
		}
	}
	return false
}

// validateVolumeSource is validateVolumeSource: just one source, which is looked into.
func (c *checker) validateVolumeSource(v *v1.Volume, path *field.Path) field.ErrorList {
	s := &v.VolumeSource
	switch *s { // nearly all volumes are of these kinds
	case v1.VolumeSource{EmptyDir: s.EmptyDir}, v1.VolumeSource{ConfigMap: s.ConfigMap}, v1.VolumeSource{Secret: s.Secret}, v1.VolumeSource{Projected: s.Projected}:
		return c.validateCommonSource(s, path)
	}
	var errs field.ErrorList
	first := true
	for _, src := range c.sources(v, path) {
		switch {
		case !src.set:
		case first:
			first = false
			errs = append(errs, src.check(path.Child(src.name))...)
		default:
			errs = append(errs, field.Forbidden(path.Child(src.name), "may not specify more than 1 volume type"))
		}
	}
	// Defaulting leaves no volume without a source.
	if first {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	return errs
}

// validateCommonSource checks the sources that pods have most.
func (c *checker) validateCommonSource(s *v1.VolumeSource, path *field.Path) field.ErrorList {
	switch {
	case s.EmptyDir != nil:
		return validateEmptyDir(s.EmptyDir, path.Child("emptyDir"))
	case s.ConfigMap != nil:
		p := path.Child("configMap")
		errs := required(s.ConfigMap.Name, p.Child("name"))
		errs = append(errs, validateMode(s.ConfigMap.DefaultMode, p.Child("defaultMode"))...)
		return append(errs, validateKeyPaths(s.ConfigMap.Items, p.Child("items"))...)
	case s.Secret != nil:
		p := path.Child("secret")
		errs := required(s.Secret.SecretName, p.Child("secretName"))
		errs = append(errs, validateMode(s.Secret.DefaultMode, p.Child("defaultMode"))...)
		return append(errs, validateKeyPaths(s.Secret.Items, p.Child("items"))...)
	case s.Projected != nil:
		return c.validateProjected(s.Projected, path.Child("projected"))
	}
	return field.ErrorList{field.Required(path, "must specify a volume type")}
}

func validateEmptyDir(e *v1.EmptyDirVolumeSource, path *field.Path) field.ErrorList {
	if q := e.SizeLimit; q != nil && q.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

// required requires a text.
func required(v string, path *field.Path) field.ErrorList {
	if v != "" {
		return nil
	}
	return field.ErrorList{field.Required(path, "")}
}

// validateProjected is validateProjectedVolumeSource. No two sources may make one file.
func (c *checker) validateProjected(s *v1.ProjectedVolumeSource, path *field.Path) field.ErrorList {
	errs := validateMode(s.DefaultMode, path.Child("defaultMode"))
	files := map[string]bool{}
	// takes notes a file; who is blamed is told by name.
	takes := func(file, whose string) {
		if file != "" && files[file] {
			errs = append(errs, field.Invalid(path, whose, "conflicting duplicate paths"))
		}
		files[file] = true
	}
	for i := range s.Sources {
		src, p := &s.Sources[i], path.Child("sources").Index(i)
		n := 0
		if v := src.Secret; v != nil {
			n++
			errs = append(errs, required(v.Name, p.Child("secret", "name"))...)
			errs = append(errs, validateKeyPaths(v.Items, p.Child("secret", "items"))...)
			for _, it := range v.Items {
				takes(it.Path, v.Name)
			}
		}
		if v := src.ConfigMap; v != nil {
			n++
			errs = append(errs, required(v.Name, p.Child("configMap", "name"))...)
			errs = append(errs, validateKeyPaths(v.Items, p.Child("configMap", "items"))...)
			for _, it := range v.Items {
				takes(it.Path, v.Name)
			}
		}
		if v := src.DownwardAPI; v != nil {
			n++
			for j := range v.Items {
				errs = append(errs, validateDownwardItem(&v.Items[j], p.Child("downwardAPI"))...)
				takes(v.Items[j].Path, v.Items[j].Path)
			}
		}
		if v := src.ServiceAccountToken; v != nil {
			n++
			errs = append(errs, validateTokenSource(v, p.Child("serviceAccountToken"), path.Child("path"))...)
			if c.pod != nil && c.spec.ServiceAccountName == "" {
				errs = append(errs, field.Forbidden(p.Child("serviceAccountToken"), "must not be specified when serviceAccountName is not set"))
			}
		}
		if v := src.ClusterTrustBundle; v != nil {
			n++
			errs = append(errs, validateTrustBundleSource(v, p.Child("clusterTrustBundle"))...)
			takes(v.Path, v.Path)
		}
		if v := src.PodCertificate; v != nil {
			n++
			errs = append(errs, validateCertificateSource(v, p.Child("podCertificate"), func(file string) { takes(file, file) })...)
		}
		if n > 1 {
			errs = append(errs, field.Forbidden(p, "may not specify more than 1 volume type per source"))
		}
	}
	return errs
}

// The bounds of a token's life, in seconds. The kubelet renews a token at 80 % of it: a
// shorter one would come too often.
const (
	minTokenLife = 600
	maxTokenLife = 1 << 32
)

// validateTokenSource checks a token in a file, whose path upstream blames elsewhere.
func validateTokenSource(t *v1.ServiceAccountTokenProjection, path, file *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s := t.ExpirationSeconds; s != nil && *s < minTokenLife {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 10 minutes"))
	} else if s != nil && *s > maxTokenLife {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration larger than 2^32 seconds"))
	}
	if t.Path == "" {
		return append(errs, field.Required(file, ""))
	}
	return append(errs, localPath(t.Path, file)...)
}

// validateDownwardItem is validateDownwardAPIVolumeFile. path is the volume's: upstream
// doesn't say which of its files.
func validateDownwardItem(f *v1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	errs := required(f.Path, path.Child("path"))
	errs = append(errs, localPath(f.Path, path.Child("path"))...)
	switch {
	case f.FieldRef != nil:
		errs = append(errs, validateFieldRef(f.FieldRef, volumeFields, path.Child("fieldRef"))...)
		if f.ResourceFieldRef != nil {
			errs = append(errs, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		}
	case f.ResourceFieldRef != nil:
		errs = append(errs, validateResourceRef(f.ResourceFieldRef, true, path.Child("resourceFieldRef"))...)
	default:
		errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
	}
	return append(errs, validateMode(f.Mode, path.Child("mode"))...)
}

// validateKeyPaths is validateKeyToPath for a list: the keys of an object that
// become files, and where.
func validateKeyPaths(items []v1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, it := range items {
		p := path.Index(i)
		errs = append(errs, required(it.Key, p.Child("key"))...)
		errs = append(errs, required(it.Path, p.Child("path"))...)
		errs = append(errs, localPath(it.Path, p.Child("path"))...)
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
