package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ReplicaSet is the kind of replica sets, most of which deployments make.
const ReplicaSet kind.Kind = "ReplicaSet"

// replicaSet returns the row of ReplicaSet
// (pkg/registry/apps/replicaset/strategy.go).
func replicaSet(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: ReplicaSet, Group: "apps", Version: "v1", Resource: "replicasets", ShortNames: []string{"rs"}, Categories: []string{"all"}, Namespaced: true,
		Strategy: &kind.Typed[appsv1.ReplicaSet, *appsv1.ReplicaSet]{
			Defaults: func(o *appsv1.ReplicaSet) { setReplicaSetDefaults(o, on) },
			Halves: kind.SpecAndStatus(func(o *appsv1.ReplicaSet) (*appsv1.ReplicaSetSpec, *appsv1.ReplicaSetStatus) {
				return &o.Spec, &o.Status
			}),
			CountsSpec: true,
			Check:      validateReplicaSet,
			CheckUpdate: func(o, old *appsv1.ReplicaSet, sub string) field.ErrorList {
				if sub != "" {
					return validateReplicaSetStatus(&o.Status)
				}
				return append(validateReplicaSet(o), fields.Immutable(o.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
			},
			Scaled: func(o *appsv1.ReplicaSet) kind.Scale {
				return kind.Scale{Replicas: &o.Spec.Replicas, Status: o.Status.Replicas, Selector: o.Spec.Selector}
			},
			Warn: func(o, old *appsv1.ReplicaSet, sub string) []string {
				switch {
				case sub != "" || old != nil && old.Generation == o.Generation:
					return nil
				case old != nil:
					return podspec.TemplateWarnings(&o.Spec.Template, templatePath())
				}
				return append(hostNameWarnings(o.Name), podspec.TemplateWarnings(&o.Spec.Template, templatePath())...)
			},
			Table: replicaSetTable(),
		},
	}
}

// setReplicaSetDefaults is SetDefaults_ReplicaSet. The labels that upstream once
// took from the template are a thing of v1beta1.
func setReplicaSetDefaults(rs *appsv1.ReplicaSet, on features.Gates) {
	podspec.DefaultTemplate(&rs.Spec.Template, on)
	fields.DefaultPtr(&rs.Spec.Replicas, 1)
}

// validateReplicaSet is ValidateReplicaSetSpec, which calls its selector a
// deployment's.
func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	s, path := &rs.Spec, field.NewPath("spec")
	errs := fields.NonNegativePtr(s.Replicas, path.Child("replicas"))
	errs = append(errs, fields.NonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	// Upstream's text says so.
	errs = append(errs, podspec.ValidateSelector(s.Selector, "deployment", path.Child("selector"))...)
	return append(errs, validateReplicas(&s.Template, s.Selector, path)...)
}

// validateReplicas checks the pods that a replica set or a deployment makes. What nothing
// can be selected by, upstream refuses twice, and then looks no further.
func validateReplicas(t *v1.PodTemplateSpec, sel *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(sel); err != nil {
		errs := metavalidation.ValidateLabelSelector(sel, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))
		return append(errs, field.Invalid(path.Child("selector"), sel, "invalid label selector"))
	}
	return podspec.ValidateLongRunning(t, sel, "ReplicaSet", path)
}

// validateReplicaSetStatus is ValidateReplicaSetStatus.
func validateReplicaSetStatus(s *appsv1.ReplicaSetStatus) field.ErrorList {
	labeled, ready, available := count{"fullyLabeledReplicas", s.FullyLabeledReplicas}, count{"readyReplicas", s.ReadyReplicas}, count{"availableReplicas", s.AvailableReplicas}
	errs := validateCounts(s.ObservedGeneration, count{"replicas", s.Replicas}, labeled, ready, available, count{"terminatingReplicas", valueOf(s.TerminatingReplicas)})
	errs = append(errs, atMost(s.Replicas, "status.replicas", labeled, ready, available)...)
	return append(errs, atMost(s.ReadyReplicas, "readyReplicas", available)...)
}

func replicaSetTable() []kind.Column[appsv1.ReplicaSet] {
	type set = appsv1.ReplicaSet
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	columns := []kind.Column[set]{
		kind.NameColumn[set](),
		numberColumn("Desired", "integer", spec["replicas"], func(s *set) int32 { return valueOf(s.Spec.Replicas) }),
		numberColumn("Current", "integer", status["replicas"], func(s *set) int32 { return s.Status.Replicas }),
		numberColumn("Ready", "integer", status["readyReplicas"], func(s *set) int32 { return s.Status.ReadyReplicas }),
		kind.AgeColumn[set](),
	}
	columns = append(columns, containerColumns(func(s *set) *v1.PodTemplateSpec { return &s.Spec.Template })...)
	return append(columns, selectorColumn(spec["selector"], func(s *set) *metav1.LabelSelector { return s.Spec.Selector }))
}
