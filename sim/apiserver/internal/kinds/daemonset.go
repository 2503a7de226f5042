package kinds

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// DaemonSet is the kind of daemon sets. Beside the generation it counts those of
// its template alone, in an annotation, by which clients of extensions/v1beta1
// went.
const DaemonSet kind.Kind = "DaemonSet"

// daemonSet returns the row of DaemonSet (pkg/registry/apps/daemonset/strategy.go).
func daemonSet(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: DaemonSet, Group: "apps", Version: "v1", Resource: "daemonsets", ShortNames: []string{"ds"}, Categories: []string{"all"}, Namespaced: true,
		Strategy: &kind.Typed[appsv1.DaemonSet, *appsv1.DaemonSet]{
			Defaults: func(o *appsv1.DaemonSet) { setDaemonSetDefaults(o, on) },
			Halves:   kind.SpecAndStatus(func(o *appsv1.DaemonSet) (*appsv1.DaemonSetSpec, *appsv1.DaemonSetStatus) { return &o.Spec, &o.Status }),
			Reset: func(ds *appsv1.DaemonSet) {
				ds.Status = appsv1.DaemonSetStatus{}
				countTemplateGeneration(ds, nil)
			},
			Generation: func(ds, old *appsv1.DaemonSet, sub string) bool {
				if sub != "" {
					return false
				}
				countTemplateGeneration(ds, old)
				return !equality.Semantic.DeepEqual(&ds.Spec, &old.Spec)
			},
			Check: validateDaemonSet,
			CheckUpdate: func(o, old *appsv1.DaemonSet, sub string) field.ErrorList {
				if sub != "" {
					return validateDaemonSetStatus(&o.Status, &old.Status)
				}
				return append(validateDaemonSet(o), fields.Immutable(o.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
			},
			Warn: func(o, old *appsv1.DaemonSet, sub string) []string {
				if sub != "" || old != nil && o.Annotations[appsv1.DeprecatedTemplateGeneration] == old.Annotations[appsv1.DeprecatedTemplateGeneration] {
					return nil
				}
				return podspec.TemplateWarnings(&o.Spec.Template, templatePath())
			},
			Table: daemonSetTable(),
		},
	}
}

// setDaemonSetDefaults is SetDefaults_DaemonSet: one node at a time without its
// pod, and none with two.
func setDaemonSetDefaults(ds *appsv1.DaemonSet, on features.Gates) {
	s := &ds.Spec
	// Upstream's own type has the number as a field, which is 0 until the server counts;
	// who writes a manifest counts as its writer.
	if _, ok := ds.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		a := maps.Clone(ds.Annotations)
		if a == nil {
			a = map[string]string{}
		}
		a[appsv1.DeprecatedTemplateGeneration] = "0"
		ds.Annotations = a
	}
	podspec.DefaultTemplate(&s.Template, on)
	u := &s.UpdateStrategy
	fields.Default(&u.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if u.RollingUpdate == nil {
			u.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		fields.DefaultPtr(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		fields.DefaultPtr(&u.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	fields.DefaultPtr(&s.RevisionHistoryLimit, 10)
}

// countTemplateGeneration sets the number of a daemon set's template, which the
// server alone counts and shows as an annotation
// (pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/v1/conversion.go). old
// is nil for a new one.
func countTemplateGeneration(ds, old *appsv1.DaemonSet) {
	from := ds
	if old != nil {
		from = old
	}
	n, err := strconv.ParseInt(from.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	// A text that is no number counts as none.
	if err != nil || n < 1 {
		n = 1
	}
	// Only a new template means new pods: other changes of the spec don't count
	// here.
	if old != nil && !equality.Semantic.DeepEqual(&ds.Spec.Template, &old.Spec.Template) {
		n++
	}
	text := strconv.FormatInt(n, 10)
	if ds.Annotations[appsv1.DeprecatedTemplateGeneration] != text {
		a := maps.Clone(ds.Annotations)
		if a == nil {
			a = map[string]string{}
		}
		a[appsv1.DeprecatedTemplateGeneration] = text
		ds.Annotations = a
	}
}

// validateDaemonSet is ValidateDaemonSet.
func validateDaemonSet(ds *appsv1.DaemonSet) field.ErrorList {
	s, path := &ds.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if s.Selector != nil { // nil selects nothing, also not what the template makes
		errs = podspec.ValidateSelector(s.Selector, "daemonset", path.Child("selector"))
	}
	errs = append(errs, podspec.ValidateLongRunning(&s.Template, s.Selector, "DaemonSet", path)...)
	errs = append(errs, fields.NonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, fields.NonNegativePtr(s.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	up := path.Child("updateStrategy")
	// OnDelete has no parameters to check.
	switch s.UpdateStrategy.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return errs
	case appsv1.RollingUpdateDaemonSetStrategyType:
		return append(errs, validateDaemonSetRolling(s.UpdateStrategy.RollingUpdate, up.Child("rollingUpdate"))...)
	}
	return append(errs, field.NotSupported(up, fields.GoNames(s.UpdateStrategy), []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType}))
}

// validateDaemonSetRolling is ValidateRollingUpdateDaemonSet: an update goes either
// by taking pods away first or by starting others first, never by both and never by
// neither.
func validateDaemonSetRolling(r *appsv1.RollingUpdateDaemonSet, path *field.Path) field.ErrorList {
	errs := fields.CountOrPercent(r.MaxUnavailable, path.Child("maxUnavailable"))
	errs = append(errs, fields.CountOrPercent(r.MaxSurge, path.Child("maxSurge"))...)
	errs = append(errs, fields.AtMost100Percent(r.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, fields.AtMost100Percent(r.MaxSurge, path.Child("maxSurge"))...)
	unavailable, surge := fields.NumberIn(r.MaxUnavailable) != 0, fields.NumberIn(r.MaxSurge) != 0
	switch {
	case unavailable && surge:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), r.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

// validateDaemonSetStatus is ValidateDaemonSetStatusUpdate.
func validateDaemonSetStatus(s, was *appsv1.DaemonSetStatus) field.ErrorList {
	errs := validateCounts(s.ObservedGeneration,
		count{"currentNumberScheduled", s.CurrentNumberScheduled}, count{"numberMisscheduled", s.NumberMisscheduled},
		count{"desiredNumberScheduled", s.DesiredNumberScheduled}, count{"numberReady", s.NumberReady},
		count{"updatedNumberScheduled", s.UpdatedNumberScheduled}, count{"numberAvailable", s.NumberAvailable}, count{"numberUnavailable", s.NumberUnavailable})
	return append(errs, validateCollisions(s.CollisionCount, was.CollisionCount)...)
}

func daemonSetTable() []kind.Column[appsv1.DaemonSet] {
	type set = appsv1.DaemonSet
	doc := appsv1.DaemonSetStatus{}.SwaggerDoc()
	columns := []kind.Column[set]{
		kind.NameColumn[set](),
		numberColumn("Desired", "integer", doc["desiredNumberScheduled"], func(s *set) int32 { return s.Status.DesiredNumberScheduled }),
		numberColumn("Current", "integer", doc["currentNumberScheduled"], func(s *set) int32 { return s.Status.CurrentNumberScheduled }),
		numberColumn("Ready", "integer", doc["numberReady"], func(s *set) int32 { return s.Status.NumberReady }),
		numberColumn("Up-to-date", "integer", doc["updatedNumberScheduled"], func(s *set) int32 { return s.Status.UpdatedNumberScheduled }),
		numberColumn("Available", "integer", doc["numberAvailable"], func(s *set) int32 { return s.Status.NumberAvailable }),
		textColumn("Node Selector", v1.PodSpec{}.SwaggerDoc()["nodeSelector"], func(s *set) string { return labels.FormatLabels(s.Spec.Template.Spec.NodeSelector) }),
		kind.AgeColumn[set](),
	}
	columns = append(columns, containerColumns(func(s *set) *v1.PodTemplateSpec { return &s.Spec.Template })...)
	return append(columns, selectorColumn(appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"], func(s *set) *metav1.LabelSelector { return s.Spec.Selector }))
}
