package kinds

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// PersistentVolumeClaim is the kind of claims of volumes.
const PersistentVolumeClaim kind.Kind = "PersistentVolumeClaim"

// persistentVolumeClaim returns the row of PersistentVolumeClaim
// (pkg/registry/core/persistentvolumeclaim/strategy.go).
func persistentVolumeClaim() *kind.Info {
	return &kind.Info{
		Kind: PersistentVolumeClaim, Meta: kind.MetaAgain, Version: "v1", Resource: "persistentvolumeclaims", ShortNames: []string{"pvc"},
		Namespaced: true, ReturnsDeleted: true, ResetFields: map[string][]string{"status": {"spec"}},
		Strategy: &kind.Typed[v1.PersistentVolumeClaim, *v1.PersistentVolumeClaim]{
			Defaults: func(c *v1.PersistentVolumeClaim) {
				fields.Default(&c.Status.Phase, v1.ClaimPending)
				podspec.DefaultClaim(&c.Spec)
			},
			Halves: kind.SpecAndStatus(func(c *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaimSpec, *v1.PersistentVolumeClaimStatus) {
				return &c.Spec, &c.Status
			}),
			Reset: func(c *v1.PersistentVolumeClaim) {
				c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
				settleDataSources(&c.Spec, &v1.PersistentVolumeClaimSpec{})
			},
			Keep: func(c, old *v1.PersistentVolumeClaim, sub string) bool {
				switch sub {
				case "":
					c.Status = old.Status
					settleDataSources(&c.Spec, &old.Spec)
				case "status":
					c.Spec = old.Spec
				default:
					return false
				}
				return true
			},
			Check: func(c *v1.PersistentVolumeClaim) field.ErrorList {
				return podspec.ValidateClaim(&c.Spec, field.NewPath("spec"))
			},
			CheckUpdate: validateClaimUpdate,
			Warn: func(c, _ *v1.PersistentVolumeClaim, sub string) []string {
				if sub != "" {
					return nil
				}
				var out []string
				if _, ok := c.Annotations[v1.BetaStorageClassAnnotation]; ok {
					out = append(out, field.NewPath("metadata", "annotations").Key(v1.BetaStorageClassAnnotation).String()+`: deprecated since v1.8; use "storageClassName" attribute instead`)
				}
				return append(out, podspec.ClaimWarnings(&c.Spec, field.NewPath("spec"))...)
			},
			Table: persistentVolumeClaimTable(),
			Gated: func(c *v1.PersistentVolumeClaim) []string {
				if elsewhere(c.Spec.DataSourceRef) {
					return []string{"spec.dataSourceRef with a namespace (CrossNamespaceVolumeDataSource)"}
				}
				return nil
			},
		},
	}
}

func persistentVolumeClaimTable() []kind.Column[v1.PersistentVolumeClaim] {
	type claim = v1.PersistentVolumeClaim
	spec, status := v1.PersistentVolumeClaimSpec{}.SwaggerDoc(), v1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	return []kind.Column[claim]{
		kind.NameColumn[claim](),
		{Name: "Status", Type: "string", Description: status["phase"], Cell: func(c *claim, _ time.Time) any {
			if c.DeletionTimestamp != nil {
				return "Terminating"
			}
			return string(c.Status.Phase)
		}},
		{Name: "Volume", Type: "string", Description: spec["volumeName"], Cell: func(c *claim, _ time.Time) any { return c.Spec.VolumeName }},
		// What it has is told of a claim that has a volume.
		{Name: "Capacity", Type: "string", Description: status["capacity"], Cell: func(c *claim, _ time.Time) any {
			if c.Spec.VolumeName == "" {
				return ""
			}
			q := c.Status.Capacity[v1.ResourceStorage]
			return q.String()
		}},
		{Name: "Access Modes", Type: "string", Description: status["accessModes"], Cell: func(c *claim, _ time.Time) any {
			if c.Spec.VolumeName == "" {
				return ""
			}
			return accessModes(c.Status.AccessModes)
		}},
		{Name: "StorageClass", Type: "string", Description: "StorageClass of the pvc", Cell: func(c *claim, _ time.Time) any { return ClassOfClaim(c) }},
		{Name: "VolumeAttributesClass", Type: "string", Description: "VolumeAttributesClass of the pvc", Cell: func(c *claim, _ time.Time) any {
			return orUnset(c.Spec.VolumeAttributesClassName)
		}},
		kind.AgeColumn[claim](),
		{Name: "VolumeMode", Type: "string", Description: spec["volumeMode"], Priority: 1, Cell: func(c *claim, _ time.Time) any { return orUnset(c.Spec.VolumeMode) }},
	}
}

// ClassOfClaim is the name of a claim's storage class, by its old annotation too; ""
// if it has none (GetPersistentVolumeClaimClass).
func ClassOfClaim(c *v1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}

func elsewhere(r *v1.TypedObjectReference) bool {
	return r != nil && r.Namespace != nil && *r.Namespace != ""
}

// settleDataSources has both fields for the source of a volume's data say the same
// (DropDisabledFields, EnforceDataSourceBackwardsCompatibility and NormalizeDataSources
// of pkg/api/persistentvolumeclaim). The older field takes claims and snapshots only.
func settleDataSources(s, old *v1.PersistentVolumeClaimSpec) {
	if elsewhere(s.DataSourceRef) && old.DataSourceRef == nil {
		s.DataSourceRef = nil
	}
	if d := s.DataSource; d != nil && s.DataSourceRef == nil && old.DataSource == nil && old.DataSourceRef == nil {
		group := ""
		if d.APIGroup != nil {
			group = *d.APIGroup
		}
		if !(d.Kind == "PersistentVolumeClaim" && group == "" || d.Kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io") {
			s.DataSource = nil
		}
	}
	switch d, r := s.DataSource, s.DataSourceRef; {
	case d != nil && r == nil:
		s.DataSourceRef = &v1.TypedObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name}
	case d == nil && r != nil && !elsewhere(r):
		s.DataSource = &v1.TypedLocalObjectReference{APIGroup: r.APIGroup, Kind: r.Kind, Name: r.Name}
	}
}

// validateClaimUpdate is ValidatePersistentVolumeClaimUpdate. A claim stays what it
// was, but for what who binds it writes, and for the size of one that is bound.
func validateClaimUpdate(c, old *v1.PersistentVolumeClaim, sub string) field.ErrorList {
	if sub == "status" {
		return validateClaimStatus(c)
	}
	errs := podspec.ValidateClaim(&c.Spec, field.NewPath("spec"))
	now, was := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	if was.VolumeName == "" {
		was.VolumeName = now.VolumeName
	}
	// The annotation that named the class once may become the field.
	class, annotated := old.Annotations[v1.BetaStorageClassAnnotation]
	newClass, stillAnnotated := c.Annotations[v1.BetaStorageClassAnnotation]
	named := was.StorageClassName == nil && now.StorageClassName != nil
	if annotated && named && *now.StorageClassName == class && (!stillAnnotated || newClass == class) {
		now.StorageClassName = nil
	} else {
		if newClass != class {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations", v1.BetaStorageClassAnnotation), newClass, "field is immutable"))
		}
		if named && (!annotated || *now.StorageClassName == class) {
			now.StorageClassName = was.StorageClassName
		}
	}
	if c.Status.Phase == v1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[v1.ResourceStorage] = was.Resources.Requests[v1.ResourceStorage]
		}
		now.VolumeAttributesClassName = was.VolumeAttributesClassName
	}
	spec := field.NewPath("spec")
	if !equality.Semantic.DeepEqual(now, was) {
		errs = append(errs, field.Forbidden(spec, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+fields.Diff(was, now)))
	}
	// A size that could not be given may be taken back, down to what there is.
	size, has := c.Spec.Resources.Requests[v1.ResourceStorage], c.Status.Capacity[v1.ResourceStorage]
	if size.Cmp(old.Spec.Resources.Requests[v1.ResourceStorage]) < 0 && size.Cmp(has) <= 0 {
		errs = append(errs, field.Forbidden(spec.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	errs = append(errs, fields.Immutable(c.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	attributes := spec.Child("volumeAttributesClassName")
	switch n := c.Spec.VolumeAttributesClassName; {
	case old.Status.CurrentVolumeAttributesClassName == nil || equality.Semantic.DeepEqual(n, old.Spec.VolumeAttributesClassName):
	case n == nil:
		errs = append(errs, field.Forbidden(attributes, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
	case *n == "":
		errs = append(errs, field.Forbidden(attributes, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"))
	}
	return errs
}

// validateClaimStatus is ValidatePersistentVolumeClaimStatusUpdate.
func validateClaimStatus(c *v1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	status := field.NewPath("status")
	for _, name := range fields.SortedKeys(c.Status.Capacity) {
		errs = append(errs, validateBasicQuantity(c.Status.Capacity[name], status.Child("capacity").Key(string(name)))...)
	}
	p := status.Child("allocatedResourceStatuses")
	for _, name := range fields.SortedKeys(c.Status.AllocatedResourceStatuses) {
		errs = append(errs, validateClaimResource(name, p)...)
		v := c.Status.AllocatedResourceStatuses[name]
		if bad := fields.Supported(v, p, v1.PersistentVolumeClaimControllerResizeInfeasible, v1.PersistentVolumeClaimControllerResizeInProgress,
			v1.PersistentVolumeClaimNodeResizeInfeasible, v1.PersistentVolumeClaimNodeResizeInProgress, v1.PersistentVolumeClaimNodeResizePending); len(bad) > 0 {
			bad[0].BadValue = name // upstream names the resource
			errs = append(errs, bad...)
		}
	}
	p = status.Child("allocatedResources")
	for _, name := range fields.SortedKeys(c.Status.AllocatedResources) {
		if bad := validateClaimResource(name, p); len(bad) > 0 {
			errs = append(errs, bad...)
			continue
		}
		errs = append(errs, validateBasicQuantity(c.Status.AllocatedResources[name], p.Key(string(name)))...)
	}
	return errs
}

// validateClaimResource checks the name of what a claim is given: storage, or what
// is not Kubernetes' own (validatePersistentVolumeClaimResourceKey).
func validateClaimResource(name v1.ResourceName, p *field.Path) field.ErrorList {
	if errs := fields.Invalid(p, string(name), validation.IsQualifiedName(string(name))); len(errs) > 0 {
		return errs
	}
	if text := string(name); !strings.Contains(text, "/") || strings.Contains(text, v1.ResourceDefaultNamespacePrefix) {
		return fields.Supported(name, p, v1.ResourceStorage)
	}
	return nil
}
