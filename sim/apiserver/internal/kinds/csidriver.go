package kinds

import (
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// CSIDriver is the kind of what drivers of CSI can do, and want.
const CSIDriver kind.Kind = "CSIDriver"

// csiDriver returns the row of CSIDriver (pkg/registry/storage/csidriver/strategy.go).
// Its generation counts changes of the spec from 0.
func csiDriver() *kind.Info {
	return &kind.Info{
		Kind: CSIDriver, Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers",
		NeedsVersion: true, ReturnsDeleted: true,
		Strategy: &kind.Typed[storagev1.CSIDriver, *storagev1.CSIDriver]{
			Defaults: setCSIDriverDefaults,
			// The gate VolumeLimitScaling is off.
			Reset: func(d *storagev1.CSIDriver) { d.Spec.PreventPodSchedulingIfMissing = nil },
			Keep: func(d, _ *storagev1.CSIDriver, sub string) bool {
				d.Spec.PreventPodSchedulingIfMissing = nil
				return sub == ""
			},
			Stored: func(_ time.Time, d *storagev1.CSIDriver) { d.Generation = 0 },
			Generation: func(d, old *storagev1.CSIDriver, _ string) bool {
				return !equality.Semantic.DeepEqual(d.Spec, old.Spec)
			},
			Check: validateCSIDriver,
			CheckUpdate: func(d, old *storagev1.CSIDriver, _ string) field.ErrorList {
				spec := field.NewPath("spec")
				errs := validateCSIDriver(d)
				errs = append(errs, fields.Immutable(d.Spec.AttachRequired, old.Spec.AttachRequired, spec.Child("attachedRequired"))...)
				return append(errs, fields.Immutable(d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes, spec.Child("volumeLifecycleModes"))...)
			},
			Warn: func(d, old *storagev1.CSIDriver, _ string) []string {
				if len(d.Spec.TokenRequests) == 0 || d.Spec.ServiceAccountTokenInSecrets != nil || old != nil && equality.Semantic.DeepEqual(d.Spec.TokenRequests, old.Spec.TokenRequests) {
					return nil
				}
				return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
			},
			Table: csiDriverTable(),
			Gated: func(d *storagev1.CSIDriver) []string {
				if d.Spec.PreventPodSchedulingIfMissing != nil {
					return []string{"spec.preventPodSchedulingIfMissing (VolumeLimitScaling)"}
				}
				return nil
			},
		},
	}
}

// setCSIDriverDefaults is SetDefaults_CSIDriver.
func setCSIDriverDefaults(d *storagev1.CSIDriver) {
	s := &d.Spec
	fields.DefaultPtr(&s.AttachRequired, true)
	fields.DefaultPtr(&s.PodInfoOnMount, false)
	fields.DefaultPtr(&s.StorageCapacity, false)
	fields.DefaultPtr(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	fields.DefaultPtr(&s.RequiresRepublish, false)
	fields.DefaultPtr(&s.SELinuxMount, false)
}

func csiDriverTable() []kind.Column[storagev1.CSIDriver] {
	type driver = storagev1.CSIDriver
	doc := storagev1.CSIDriverSpec{}.SwaggerDoc()
	yes := func(v *bool) any { return v != nil && *v }
	return []kind.Column[driver]{
		kind.NameColumn[driver](),
		{Name: "AttachRequired", Type: "boolean", Description: doc["attachRequired"], Cell: func(d *driver, _ time.Time) any { return yes(d.Spec.AttachRequired) }},
		{Name: "PodInfoOnMount", Type: "boolean", Description: doc["podInfoOnMount"], Cell: func(d *driver, _ time.Time) any { return yes(d.Spec.PodInfoOnMount) }},
		{Name: "StorageCapacity", Type: "boolean", Description: doc["storageCapacity"], Cell: func(d *driver, _ time.Time) any { return yes(d.Spec.StorageCapacity) }},
		{Name: "TokenRequests", Type: "string", Description: doc["tokenRequests"], Cell: func(d *driver, _ time.Time) any {
			if d.Spec.TokenRequests == nil {
				return "<unset>"
			}
			var out []string
			for _, r := range d.Spec.TokenRequests {
				out = append(out, r.Audience)
			}
			return strings.Join(out, ",")
		}},
		{Name: "RequiresRepublish", Type: "boolean", Description: doc["requiresRepublish"], Cell: func(d *driver, _ time.Time) any { return yes(d.Spec.RequiresRepublish) }},
		{Name: "Modes", Type: "string", Description: doc["volumeLifecycleModes"], Cell: func(d *driver, _ time.Time) any {
			var out []string
			for _, m := range d.Spec.VolumeLifecycleModes {
				out = append(out, string(m))
			}
			return strings.Join(out, ",")
		}},
		kind.AgeColumn[driver](),
	}
}

// validateCSIDriver is ValidateCSIDriver. What must be there, defaulting has put
// there.
func validateCSIDriver(d *storagev1.CSIDriver) field.ErrorList {
	var errs field.ErrorList
	s, path := &d.Spec, field.NewPath("spec")
	if p := s.FSGroupPolicy; p != nil {
		errs = append(errs, fields.Supported(*p, path.Child("fsGroupPolicy"), storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)...)
	}
	seen := map[string]bool{}
	for i, r := range s.TokenRequests {
		p := path.Child("tokenRequests").Index(i)
		if seen[r.Audience] {
			errs = append(errs, field.Duplicate(p.Child("audience"), r.Audience))
			continue
		}
		seen[r.Audience] = true
		switch e := r.ExpirationSeconds; {
		case e == nil:
		case *e < 10*60:
			errs = append(errs, field.Invalid(p.Child("expirationSeconds"), *e, "may not specify a duration less than 10 minutes"))
		case *e > 1<<32:
			errs = append(errs, field.Invalid(p.Child("expirationSeconds"), *e, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	for _, m := range s.VolumeLifecycleModes {
		errs = append(errs, fields.Supported(m, path.Child("volumeLifecycleModes"), storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
	}
	if n := s.NodeAllocatableUpdatePeriodSeconds; n != nil && *n < 10 {
		errs = append(errs, field.Invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"), *n, "must be greater than or equal to 10 seconds"))
	}
	if s.ServiceAccountTokenInSecrets != nil && len(s.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(path.Child("serviceAccountTokenInSecrets"), s.ServiceAccountTokenInSecrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	return errs
}
