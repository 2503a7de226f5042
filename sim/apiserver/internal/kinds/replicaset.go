package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ReplicaSet is the kind of replica sets, most of which deployments make.
const ReplicaSet kind.Kind = "ReplicaSet"

// replicaSet returns the row of ReplicaSet
// (pkg/registry/apps/replicaset/strategy.go).
func replicaSet() *kind.Info {
	return &kind.Info{
		Kind: ReplicaSet, Group: "apps", Version: "v1", Resource: "replicasets", Namespaced: true,
		Strategy: &kind.Typed[appsv1.ReplicaSet, *appsv1.ReplicaSet]{
			Defaults: setReplicaSetDefaults,
			Halves: kind.SpecAndStatus(func(o *appsv1.ReplicaSet) (*appsv1.ReplicaSetSpec, *appsv1.ReplicaSetStatus) {
				return &o.Spec, &o.Status
			}),
			CountsSpec:   true,
			Check:        validateReplicaSet,
			TrustsStatus: true,
			CheckUpdate: func(o, old *appsv1.ReplicaSet, _ string) field.ErrorList {
				return append(validateReplicaSet(o), fields.Immutable(o.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
			},
			Scaled: func(o *appsv1.ReplicaSet) kind.Scale {
				return kind.Scale{Replicas: &o.Spec.Replicas, Status: o.Status.Replicas, Selector: o.Spec.Selector}
			},
		},
	}
}

// setReplicaSetDefaults is SetDefaults_ReplicaSet. The labels that upstream once
// took from the template are a thing of v1beta1.
func setReplicaSetDefaults(rs *appsv1.ReplicaSet) {
	podspec.DefaultTemplate(&rs.Spec.Template)
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
	return append(errs, podspec.ValidateLongRunning(&s.Template, s.Selector, "ReplicaSet", path)...)
}
