package kinds

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// StorageClass is the kind of the ways in which volumes are provisioned. Admission
// gives claims the default one.
const StorageClass kind.Kind = "StorageClass"

// storageClass returns the row of StorageClass
// (pkg/registry/storage/storageclass/strategy.go).
func storageClass() *kind.Info {
	return &kind.Info{
		Kind: StorageClass, Meta: kind.MetaAgain, Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses", ShortNames: []string{"sc"},
		ReturnsDeleted: true,
		Strategy: &kind.Typed[storagev1.StorageClass, *storagev1.StorageClass]{
			Defaults: func(c *storagev1.StorageClass) {
				fields.DefaultPtr(&c.ReclaimPolicy, v1.PersistentVolumeReclaimDelete)
				fields.DefaultPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
			},
			Check: validateStorageClass,
			CheckUpdate: func(c, old *storagev1.StorageClass, _ string) field.ErrorList {
				errs := validateStorageClass(c)
				errs = append(errs, fields.Immutable(c.Parameters, old.Parameters, field.NewPath("parameters"))...)
				errs = append(errs, fields.Immutable(c.Provisioner, old.Provisioner, field.NewPath("provisioner"))...)
				errs = append(errs, fields.Immutable(c.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...)
				return append(errs, fields.Immutable(c.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
			},
			Warn: func(c, _ *storagev1.StorageClass, _ string) []string {
				var out []string
				for i, t := range c.AllowedTopologies {
					for j, e := range t.MatchLabelExpressions {
						if text := podspec.DeprecatedNodeLabel(e.Key); text != "" {
							out = append(out, fmt.Sprintf("%s: %s", field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key"), text))
						}
					}
				}
				return out
			},
			Table: storageClassTable(),
		},
	}
}

func storageClassTable() []kind.Column[storagev1.StorageClass] {
	type class = storagev1.StorageClass
	doc := class{}.SwaggerDoc()
	name := kind.NameColumn[class]()
	name.Cell = func(c *class, _ time.Time) any {
		if IsDefaultStorageClass(c) {
			return c.Name + " (default)"
		}
		return c.Name
	}
	return []kind.Column[class]{
		name,
		{Name: "Provisioner", Type: "string", Description: doc["provisioner"], Cell: func(c *class, _ time.Time) any { return c.Provisioner }},
		{Name: "ReclaimPolicy", Type: "string", Description: doc["reclaimPolicy"], Cell: func(c *class, _ time.Time) any { return string(*c.ReclaimPolicy) }},
		{Name: "VolumeBindingMode", Type: "string", Description: doc["volumeBindingMode"], Cell: func(c *class, _ time.Time) any { return string(*c.VolumeBindingMode) }},
		{Name: "AllowVolumeExpansion", Type: "string", Description: doc["allowVolumeExpansion"], Cell: func(c *class, _ time.Time) any {
			return c.AllowVolumeExpansion != nil && *c.AllowVolumeExpansion
		}},
		kind.AgeColumn[class](),
	}
}

// IsDefaultStorageClass reports whether claims that name no class get this one
// (pkg/apis/storage/util IsDefaultAnnotation).
func IsDefaultStorageClass(c *storagev1.StorageClass) bool {
	return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// BetterDefault returns which of two classes claims get that name none; nil: neither. Of
// several default ones it is the newest, of those of one second the first by name
// (pkg/volume/util GetDefaultClass). a and b may be nil.
func BetterDefault(a, b *storagev1.StorageClass) *storagev1.StorageClass {
	switch {
	case b == nil || !IsDefaultStorageClass(b):
		return a
	case a == nil || a.CreationTimestamp.Before(&b.CreationTimestamp), a.CreationTimestamp.Equal(&b.CreationTimestamp) && b.Name < a.Name:
		return b
	}
	return a
}

// Limits of a class's parameters (pkg/apis/storage/validation/validation.go).
const (
	maxClassParameters     = 512
	maxClassParameterBytes = 256 << 10
)

// validateStorageClass is ValidateStorageClass.
func validateStorageClass(c *storagev1.StorageClass) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateProvisioner(c.Provisioner, field.NewPath("provisioner"))...)
	errs = append(errs, validateClassParameters(c.Parameters, field.NewPath("parameters"))...)
	if r := c.ReclaimPolicy; r != nil && *r != "" {
		errs = append(errs, fields.Supported(*r, field.NewPath("reclaimPolicy"), v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain)...)
	}
	// Defaulting leaves none without.
	errs = append(errs, fields.Supported(*c.VolumeBindingMode, field.NewPath("volumeBindingMode"), storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	return append(errs, validateTopologies(c.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

func validateProvisioner(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	lower := strings.ToLower(name)
	return fields.Invalid(p, lower, validation.IsQualifiedName(lower))
}

func validateClassParameters(m map[string]string, p *field.Path) field.ErrorList {
	if len(m) > maxClassParameters {
		return field.ErrorList{field.TooLong(p, "", maxClassParameters)}
	}
	var errs field.ErrorList
	total := 0
	for k, v := range m { //drydock:unordered sums up
		total += len(k) + len(v)
	}
	if _, ok := m[""]; ok {
		errs = append(errs, field.Invalid(p, "", "field can not be empty."))
	}
	if total > maxClassParameterBytes {
		errs = append(errs, field.TooLong(p, "", maxClassParameterBytes))
	}
	return errs
}

// validateTopologies checks where volumes of a class may be. A term that says what
// another says is refused.
func validateTopologies(terms []v1.TopologySelectorTerm, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	var seen []map[string]sets.Set[string]
	for i, t := range terms {
		exprs := p.Index(i).Child("matchLabelExpressions")
		values := map[string]sets.Set[string]{}
		for j, r := range t.MatchLabelExpressions {
			q := exprs.Index(j)
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(q.Child("values"), ""))
			}
			set := sets.New[string]()
			for k, v := range r.Values {
				if set.Has(v) {
					errs = append(errs, field.Duplicate(q.Child("values").Index(k), v))
				}
				set.Insert(v)
			}
			errs = append(errs, metavalidation.ValidateLabelName(r.Key, q.Child("key"))...)
			if _, ok := values[r.Key]; ok {
				errs = append(errs, field.Duplicate(q.Child("key"), r.Key))
			}
			values[r.Key] = set
		}
		for _, other := range seen {
			if equality.Semantic.DeepEqual(values, other) {
				errs = append(errs, field.Duplicate(exprs, ""))
			}
		}
		seen = append(seen, values)
	}
	return errs
}
