package kinds

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// StatefulSet is the kind of stateful sets. The claims of their volumes are
// refused, since no volume here outlives a pod.
const StatefulSet kind.Kind = "StatefulSet"

// statefulSet returns the row of StatefulSet
// (pkg/registry/apps/statefulset/strategy.go). Its name is a DNS label: its pods'
// host names begin with it.
func statefulSet() *kind.Info {
	return &kind.Info{
		Kind: StatefulSet, Group: "apps", Version: "v1", Resource: "statefulsets", Namespaced: true, CheckName: apivalidation.NameIsDNSLabel,
		Strategy: &kind.Typed[appsv1.StatefulSet, *appsv1.StatefulSet]{
			Defaults: setStatefulSetDefaults,
			Halves: kind.SpecAndStatus(func(o *appsv1.StatefulSet) (*appsv1.StatefulSetSpec, *appsv1.StatefulSetStatus) {
				return &o.Spec, &o.Status
			}),
			CountsSpec:   true,
			Check:        validateStatefulSet,
			TrustsStatus: true,
			CheckUpdate:  validateStatefulSetUpdate,
			Scaled: func(o *appsv1.StatefulSet) kind.Scale {
				return kind.Scale{Replicas: &o.Spec.Replicas, Status: o.Status.Replicas, Selector: o.Spec.Selector}
			},
			Gated: droppedOfStatefulSet,
		},
	}
}

// setStatefulSetDefaults is SetDefaults_StatefulSet. A strategy that was named
// without parameters is left without: only one that was not named gets them.
func setStatefulSetDefaults(set *appsv1.StatefulSet) {
	s := &set.Spec
	podspec.DefaultTemplate(&s.Template)
	fields.Default(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	u := &s.UpdateStrategy
	if u.Type == "" {
		u.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if u.RollingUpdate == nil {
			u.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
	}
	// A gate that is off takes its field out before anybody sees it.
	if u.Type == appsv1.RollingUpdateStatefulSetStrategyType && u.RollingUpdate != nil {
		fields.DefaultPtr(&u.RollingUpdate.Partition, 0)
		u.RollingUpdate.MaxUnavailable = nil // see droppedOfStatefulSet
	}
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	fields.Default(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	fields.Default(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	fields.DefaultPtr(&s.Replicas, 1)
	fields.DefaultPtr(&s.RevisionHistoryLimit, 10)
}

// validateStatefulSet is ValidateStatefulSetSpec. The template may have a host name
// and a subdomain, which the controller replaces by each pod's own.
func validateStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	s, path := &set.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if p := s.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(path.Child("podManagementPolicy"), p, fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)))
	}
	errs = append(errs, validateStatefulSetStrategy(&s.UpdateStrategy, path.Child("updateStrategy"))...)
	keep := path.Child("persistentVolumeClaimRetentionPolicy")
	for _, f := range []struct {
		name  string
		value appsv1.PersistentVolumeClaimRetentionPolicyType
	}{{"whenDeleted", s.PersistentVolumeClaimRetentionPolicy.WhenDeleted}, {"whenScaled", s.PersistentVolumeClaimRetentionPolicy.WhenScaled}} {
		errs = append(errs, fields.OneOf(f.value, keep.Child(f.name), appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)...)
	}
	// Refused rather than ignored: the pods would wait for their claims.
	if len(s.VolumeClaimTemplates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("volumeClaimTemplates"), "persistent volume claims are not simulated; give the template an emptyDir or a hostPath volume instead"))
	}
	errs = append(errs, fields.NonNegativePtr(s.Replicas, path.Child("replicas"))...)
	errs = append(errs, fields.NonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	// The first pod's number; the others follow it.
	if s.Ordinals != nil {
		errs = append(errs, fields.NonNegative(int64(s.Ordinals.Start), path.Child("ordinals.start"))...)
	}
	if s.ServiceName != "" {
		errs = append(errs, fields.DNSLabel(s.ServiceName, path.Child("serviceName"))...)
	}
	errs = append(errs, podspec.ValidateSelector(s.Selector, "statefulset", path.Child("selector"))...)
	t := s.Template
	t.Spec.Hostname, t.Spec.Subdomain = "", "" // the controller's own
	return append(errs, podspec.ValidateLongRunning(&t, s.Selector, "StatefulSet", path)...)
}

// validateStatefulSetStrategy checks the update strategy: parameters of rolling
// updates come with rolling updates only.
func validateStatefulSetStrategy(u *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	r, rolling := u.RollingUpdate, path.Child("rollingUpdate")
	switch {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType && r != nil:
		return field.ErrorList{field.Invalid(rolling, r, "only allowed for updateStrategy 'RollingUpdate'")}
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return nil
	case u.Type != appsv1.RollingUpdateStatefulSetStrategyType:
		return field.ErrorList{field.Invalid(path, u, "must be 'RollingUpdate' or 'OnDelete'")}
	case r == nil:
		return nil
	}
	return fields.NonNegativePtr(r.Partition, rolling.Child("partition"))
}

// validateStatefulSetUpdate is ValidateStatefulSetUpdate. What may change is set to
// what it was; equality says that nothing else did, of fields to come too.
func validateStatefulSetUpdate(set, old *appsv1.StatefulSet, _ string) field.ErrorList {
	errs := validateStatefulSet(set)
	s, was := set.Spec, &old.Spec
	s.Replicas, s.Template, s.UpdateStrategy, s.MinReadySeconds = was.Replicas, was.Template, was.UpdateStrategy, was.MinReadySeconds
	s.Ordinals, s.RevisionHistoryLimit, s.PersistentVolumeClaimRetentionPolicy = was.Ordinals, was.RevisionHistoryLimit, was.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(&s, was) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
	}
	return errs
}

// droppedOfStatefulSet is dropStatefulSetDisabledFields of
// pkg/registry/apps/statefulset/strategy.go, in words.
func droppedOfStatefulSet(set *appsv1.StatefulSet) []string {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		return []string{"spec.updateStrategy.rollingUpdate.maxUnavailable: dropped, the gate MaxUnavailableStatefulSet is off"}
	}
	return nil
}
