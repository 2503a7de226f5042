package kinds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// StatefulSet is the kind of stateful sets.
const StatefulSet kind.Kind = "StatefulSet"

// statefulSet returns the row of StatefulSet
// (pkg/registry/apps/statefulset/strategy.go). Its name is a DNS label: its pods'
// host names begin with it.
func statefulSet(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: StatefulSet, Group: "apps", Version: "v1", Resource: "statefulsets", ShortNames: []string{"sts"}, Categories: []string{"all"}, Namespaced: true, CheckName: apivalidation.NameIsDNSLabel,
		Strategy: &kind.Typed[appsv1.StatefulSet, *appsv1.StatefulSet]{
			Defaults: func(o *appsv1.StatefulSet) { setStatefulSetDefaults(o, on) },
			Halves: kind.SpecAndStatus(func(o *appsv1.StatefulSet) (*appsv1.StatefulSetSpec, *appsv1.StatefulSetStatus) {
				return &o.Spec, &o.Status
			}),
			CountsSpec:  true,
			Check:       func(set *appsv1.StatefulSet) field.ErrorList { return validateStatefulSet(set, nil) },
			CheckUpdate: validateStatefulSetUpdate,
			Warn:        warningsOfStatefulSet,
			Table:       statefulSetTable(),
			Scaled: func(o *appsv1.StatefulSet) kind.Scale {
				return kind.Scale{Replicas: &o.Spec.Replicas, Status: o.Status.Replicas, Selector: o.Spec.Selector}
			},
			Gated: droppedOfStatefulSet,
		},
	}
}

// setStatefulSetDefaults is SetDefaults_StatefulSet. A strategy that was named
// without parameters is left without: only one that was not named gets them.
func setStatefulSetDefaults(set *appsv1.StatefulSet, on features.Gates) {
	s := &set.Spec
	podspec.DefaultTemplate(&s.Template, on)
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
	for i := range s.VolumeClaimTemplates {
		c := &s.VolumeClaimTemplates[i]
		c.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		fields.Default(&c.Status.Phase, v1.ClaimPending)
		podspec.DefaultClaim(&c.Spec)
	}
}

// validateStatefulSet is ValidateStatefulSetSpec. The template may have a host name
// and a subdomain, which the controller replaces by each pod's own. What can't change is
// not checked again when there is an old one.
func validateStatefulSet(set, old *appsv1.StatefulSet) field.ErrorList {
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
	for i := range s.VolumeClaimTemplates {
		if old == nil {
			errs = append(errs, podspec.ValidateClaim(&s.VolumeClaimTemplates[i].Spec, path.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
		}
	}
	errs = append(errs, fields.NonNegativePtr(s.Replicas, path.Child("replicas"))...)
	errs = append(errs, fields.NonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	// The first pod's number; the others follow it.
	if s.Ordinals != nil {
		errs = append(errs, fields.NonNegative(int64(s.Ordinals.Start), path.Child("ordinals.start"))...)
	}
	if s.ServiceName != "" && old == nil {
		errs = append(errs, fields.DNSLabel(s.ServiceName, path.Child("serviceName"))...)
	}
	errs = append(errs, podspec.ValidateSelector(s.Selector, "statefulset", path.Child("selector"))...)
	return append(errs, validateStatefulSetTemplate(s, path)...)
}

// validateStatefulSetTemplate checks the template with what the controller adds to it.
func validateStatefulSetTemplate(s *appsv1.StatefulSetSpec, path *field.Path) field.ErrorList {
	tmpl := path.Child("template")
	if _, err := metav1.LabelSelectorAsSelector(s.Selector); err != nil {
		errs := metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))
		errs = append(errs, field.Invalid(path.Child("selector"), s.Selector, ""))
		return append(errs, podspec.ValidateEndless(&s.Template, "StatefulSet", tmpl)...)
	}
	t := s.Template
	t.Spec.Hostname, t.Spec.Subdomain = "", ""
	if len(s.VolumeClaimTemplates) > 0 {
		t.Spec.Volumes = withClaims(t.Spec.Volumes, s.VolumeClaimTemplates)
	}
	errs := podspec.ValidateLongRunning(&t, s.Selector, "StatefulSet", path)
	// Upstream checks these twice.
	errs = append(errs, metavalidation.ValidateLabels(t.Labels, tmpl.Child("labels"))...)
	return append(errs, apivalidation.ValidateAnnotations(t.Annotations, tmpl.Child("annotations"))...)
}

// withClaims are a template's volumes with those of the claims, which come first and win.
func withClaims(volumes []v1.Volume, claims []v1.PersistentVolumeClaim) []v1.Volume {
	var out []v1.Volume
	named := map[string]bool{}
	for _, c := range claims {
		if named[c.Name] {
			continue
		}
		named[c.Name] = true
		out = append(out, v1.Volume{Name: c.Name, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}})
	}
	for _, v := range volumes {
		if !named[v.Name] {
			out = append(out, v)
		}
	}
	return out
}

// validateStatefulSetStrategy checks the update strategy: parameters of rolling
// updates come with rolling updates only.
func validateStatefulSetStrategy(u *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	r, rolling := u.RollingUpdate, path.Child("rollingUpdate")
	switch {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType && r != nil:
		c := *r
		fields.DefaultPtr(&c.Partition, 0) // upstream's own type has it always
		return field.ErrorList{field.Invalid(rolling, fields.GoNames(c), "only allowed for updateStrategy 'RollingUpdate'")}
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return nil
	case u.Type != appsv1.RollingUpdateStatefulSetStrategyType:
		return field.ErrorList{field.Invalid(path, fields.GoNames(*u), "must be 'RollingUpdate' or 'OnDelete'")}
	case r == nil:
		return nil
	}
	return fields.NonNegativePtr(r.Partition, rolling.Child("partition"))
}

// validateStatefulSetUpdate is ValidateStatefulSetUpdate. What may change is set to
// what it was; equality says that nothing else did, of fields to come too.
func validateStatefulSetUpdate(set, old *appsv1.StatefulSet, sub string) field.ErrorList {
	if sub != "" {
		return validateStatefulSetStatus(&set.Status, &old.Status)
	}
	errs := validateStatefulSet(set, old)
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

// validateStatefulSetStatus is ValidateStatefulSetStatusUpdate.
func validateStatefulSetStatus(s, was *appsv1.StatefulSetStatus) field.ErrorList {
	ready, available := count{"readyReplicas", s.ReadyReplicas}, count{"availableReplicas", s.AvailableReplicas}
	current, updated := count{"currentReplicas", s.CurrentReplicas}, count{"updatedReplicas", s.UpdatedReplicas}
	errs := validateCounts(s.ObservedGeneration, count{"replicas", s.Replicas}, ready, current, updated, available)
	errs = append(errs, atMost(s.Replicas, "status.replicas", ready, current, updated, available)...)
	errs = append(errs, atMost(s.ReadyReplicas, "status.readyReplicas", available)...)
	return append(errs, validateCollisions(s.CollisionCount, was.CollisionCount)...)
}

func warningsOfStatefulSet(set, old *appsv1.StatefulSet, sub string) []string {
	if sub != "" {
		return nil
	}
	var out []string
	if old == nil || old.Generation != set.Generation {
		out = podspec.TemplateWarnings(&set.Spec.Template, templatePath())
	}
	for i := range set.Spec.VolumeClaimTemplates {
		path := field.NewPath("spec", "volumeClaimTemplates").Index(i)
		if old != nil {
			path = path.Child("Spec") // so upstream says of updates
		}
		out = append(out, podspec.ClaimWarnings(&set.Spec.VolumeClaimTemplates[i].Spec, path)...)
	}
	if n := set.Spec.RevisionHistoryLimit; n != nil && *n < 0 {
		out = append(out, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	return out
}

func statefulSetTable() []kind.Column[appsv1.StatefulSet] {
	type set = appsv1.StatefulSet
	columns := []kind.Column[set]{
		kind.NameColumn[set](),
		textColumn("Ready", "Number of the pod with ready state", func(s *set) string {
			return fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, valueOf(s.Spec.Replicas))
		}),
		kind.AgeColumn[set](),
	}
	return append(columns, containerColumns(func(s *set) *v1.PodTemplateSpec { return &s.Spec.Template })...)
}
