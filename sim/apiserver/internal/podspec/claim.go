package podspec

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// DefaultClaim fills in what the spec of a volume's claim left out
// (SetDefaults_PersistentVolumeClaimSpec).
func DefaultClaim(s *v1.PersistentVolumeClaimSpec) {
	fields.DefaultPtr(&s.VolumeMode, v1.PersistentVolumeFilesystem)
}

// ValidateClaim checks the spec of a volume's claim, which stands in a
// PersistentVolumeClaim or in the template of one (ValidatePersistentVolumeClaimSpec).
func ValidateClaim(s *v1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(path.Child("accessModes"), "at least 1 access mode is required"))
	}
	if s.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	errs = append(errs, ValidateAccessModes(s.AccessModes, path.Child("accessModes"))...)
	size := path.Child("resources").Key(string(v1.ResourceStorage))
	if q, ok := s.Resources.Requests[v1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(size, ""))
	} else {
		errs = append(errs, PositiveQuantity(q, size)...)
	}
	if n := s.StorageClassName; n != nil && *n != "" {
		errs = append(errs, fields.DNSName(*n, path.Child("storageClassName"))...)
	}
	if s.VolumeMode != nil {
		errs = append(errs, fields.Supported(*s.VolumeMode, path.Child("volumeMode"), v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem)...)
	}
	errs = append(errs, validateDataSources(s, path)...)
	if n := s.VolumeAttributesClassName; n != nil && *n != "" {
		errs = append(errs, fields.DNSName(*n, path.Child("volumeAttributesClassName"))...)
	}
	return errs
}

// ClaimWarnings tells of sizes that are no number of bytes
// (GetWarningsForPersistentVolumeClaimSpec).
func ClaimWarnings(s *v1.PersistentVolumeClaimSpec, path *field.Path) []string {
	var out []string
	for _, l := range []struct {
		name string
		list v1.ResourceList
	}{{"requests", s.Resources.Requests}, {"limits", s.Resources.Limits}} {
		if q := l.list[v1.ResourceStorage]; q.MilliValue()%1000 != 0 {
			p := path.Child("resources", l.name).Key(string(v1.ResourceStorage))
			out = append(out, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", p, q.String()))
		}
	}
	return out
}

// ValidateAccessModes checks how a volume is or shall be accessed: by one pod alone,
// or in other ways.
func ValidateAccessModes(modes []v1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	alone, shared := false, false
	for _, m := range modes {
		bad := fields.Supported(m, path, v1.ReadOnlyMany, v1.ReadWriteMany, v1.ReadWriteOnce, v1.ReadWriteOncePod)
		errs = append(errs, bad...)
		alone = alone || m == v1.ReadWriteOncePod
		shared = shared || m != v1.ReadWriteOncePod && len(bad) == 0
	}
	if alone && shared {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// PositiveQuantity requires a quantity above zero (ValidatePositiveQuantityValue).
func PositiveQuantity(q resource.Quantity, path *field.Path) field.ErrorList {
	if q.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, q.String(), "must be greater than zero")}
}

// validateDataSources checks what a volume is filled from. The two fields say the
// same, unless the source is in another namespace.
func validateDataSources(s *v1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d := s.DataSource; d != nil {
		errs = append(errs, validateDataSource(d.APIGroup, d.Kind, d.Name, path.Child("dataSource"))...)
	}
	r := s.DataSourceRef
	if r == nil {
		return errs
	}
	errs = append(errs, validateDataSource(r.APIGroup, r.Kind, r.Name, path.Child("dataSourceRef"))...)
	elsewhere := r.Namespace != nil && *r.Namespace != ""
	if elsewhere {
		p := path.Child("dataSourceRef", "namespace")
		errs = append(errs, fields.Invalid(p, *r.Namespace, apivalidation.ValidateNamespaceName(*r.Namespace, false))...)
	}
	switch d := s.DataSource; {
	case d == nil:
	case elsewhere:
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified"))
	case !equality.Semantic.DeepEqual(d.APIGroup, r.APIGroup) || d.Kind != r.Kind || d.Name != r.Name:
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "must match dataSourceRef"))
	}
	return errs
}

func validateDataSource(group *string, kind, name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), ""))
	}
	if group == nil || *group == "" {
		if kind != "PersistentVolumeClaim" {
			errs = append(errs, field.Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
		}
		return errs
	}
	return append(errs, fields.Invalid(path.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))...)
}

// ValidateTemplateMeta checks the metadata of what objects are made of: only labels
// and annotations are taken over, and so nothing else may be set
// (ValidateTemplateObjectMeta).
func ValidateTemplateMeta(m *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations"))
	errs = append(errs, metavalidation.ValidateLabels(m.Labels, path.Child("labels"))...)
	v := reflect.ValueOf(*m)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name != "Annotations" && name != "Labels" && !v.Field(i).IsZero() {
			errs = append(errs, field.Forbidden(path.Child(strings.ToLower(name[:1])+name[1:]), "cannot be set"))
		}
	}
	return errs
}
