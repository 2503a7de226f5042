package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules of group apps (pkg/apis/apps/validation/validation.go).

// validateTemplate checks a pod template (ValidatePodTemplateSpec).
func validateTemplate(t *v1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, validatePodSpec(&t.Spec, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

// validateLongRunning checks a template whose pods are to run for ever, and that
// the selector selects them. kind is for the message.
func validateLongRunning(t *v1.PodTemplateSpec, sel *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabelSelector(sel, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))
	tmpl := path.Child("template")
	s, err := metav1.LabelSelectorAsSelector(sel)
	if err == nil && !s.Empty() && !s.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(tmpl.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, validateTemplate(t, tmpl)...)
	if p := t.Spec.RestartPolicy; p != v1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(tmpl.Child("spec", "restartPolicy"), p, []v1.RestartPolicy{v1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(tmpl.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// validateSelector requires a selector that selects something.
func validateSelector(sel *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	if sel == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(sel.MatchLabels)+len(sel.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(path, sel, "empty selector is invalid for "+kind)}
	}
	return nil
}

// nonNegativePtr checks an optional number.
func nonNegativePtr[T int32 | int64](v *T, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	return nonNegative(int64(*v), path)
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	s, path := &d.Spec, field.NewPath("spec")
	errs := nonNegativePtr(s.Replicas, path.Child("replicas"))
	errs = append(errs, validateSelector(s.Selector, "deployment", path.Child("selector"))...)
	errs = append(errs, validateLongRunning(&s.Template, s.Selector, "ReplicaSet", path)...)
	errs = append(errs, validateDeploymentStrategy(&s.Strategy, path.Child("strategy"))...)
	errs = append(errs, nonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, nonNegativePtr(s.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if p := s.ProgressDeadlineSeconds; p != nil {
		errs = append(errs, nonNegativePtr(p, path.Child("progressDeadlineSeconds"))...)
		if *p <= s.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	r := s.RollingUpdate
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if r != nil {
			return field.ErrorList{field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		path = path.Child("rollingUpdate")
		errs := countOrPercent(r.MaxUnavailable, path.Child("maxUnavailable"))
		errs = append(errs, countOrPercent(r.MaxSurge, path.Child("maxSurge"))...)
		if numberIn(r.MaxUnavailable) == 0 && numberIn(r.MaxSurge) == 0 {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
		return append(errs, atMost100Percent(r.MaxUnavailable, path.Child("maxUnavailable"))...)
	}
	return field.ErrorList{field.NotSupported(path, s.Type, []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	s, path := &rs.Spec, field.NewPath("spec")
	errs := nonNegativePtr(s.Replicas, path.Child("replicas"))
	errs = append(errs, nonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, validateSelector(s.Selector, "deployment", path.Child("selector"))...)
	return append(errs, validateLongRunning(&s.Template, s.Selector, "ReplicaSet", path)...)
}

func validateDaemonSet(ds *appsv1.DaemonSet) field.ErrorList {
	s, path := &ds.Spec, field.NewPath("spec")
	errs := validateSelector(s.Selector, "daemonset", path.Child("selector"))
	errs = append(errs, validateLongRunning(&s.Template, s.Selector, "DaemonSet", path)...)
	errs = append(errs, nonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, nonNegativePtr(s.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	up := path.Child("updateStrategy")
	switch s.UpdateStrategy.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return errs
	case appsv1.RollingUpdateDaemonSetStrategyType:
		return append(errs, validateDaemonSetRolling(s.UpdateStrategy.RollingUpdate, up.Child("rollingUpdate"))...)
	}
	return append(errs, field.NotSupported(up, s.UpdateStrategy.Type, []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType}))
}

func validateDaemonSetRolling(r *appsv1.RollingUpdateDaemonSet, path *field.Path) field.ErrorList {
	errs := countOrPercent(r.MaxUnavailable, path.Child("maxUnavailable"))
	errs = append(errs, countOrPercent(r.MaxSurge, path.Child("maxSurge"))...)
	errs = append(errs, atMost100Percent(r.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, atMost100Percent(r.MaxSurge, path.Child("maxSurge"))...)
	unavailable, surge := numberIn(r.MaxUnavailable) != 0, numberIn(r.MaxSurge) != 0
	switch {
	case unavailable && surge:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), r.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

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
		errs = append(errs, oneOf(f.value, keep.Child(f.name), appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)...)
	}
	if len(s.VolumeClaimTemplates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("volumeClaimTemplates"), "persistent volume claims are not simulated; give the template an emptyDir or a hostPath volume instead"))
	}
	errs = append(errs, nonNegativePtr(s.Replicas, path.Child("replicas"))...)
	errs = append(errs, nonNegative(int64(s.MinReadySeconds), path.Child("minReadySeconds"))...)
	if s.Ordinals != nil {
		errs = append(errs, nonNegative(int64(s.Ordinals.Start), path.Child("ordinals.start"))...)
	}
	if s.ServiceName != "" {
		errs = append(errs, dnsLabel(s.ServiceName, path.Child("serviceName"))...)
	}
	errs = append(errs, validateSelector(s.Selector, "statefulset", path.Child("selector"))...)
	t := s.Template
	t.Spec.Hostname, t.Spec.Subdomain = "", "" // the controller's own
	return append(errs, validateLongRunning(&t, s.Selector, "StatefulSet", path)...)
}

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
	return nonNegativePtr(r.Partition, rolling.Child("partition"))
}

// validateControllerRevision checks a new revision.
func validateControllerRevision(r *appsv1.ControllerRevision) field.ErrorList {
	errs := nonNegative(r.Revision, field.NewPath("revision"))
	data := field.NewPath("data")
	var v any
	switch err := json.Unmarshal(r.Data.Raw, &v); {
	case r.Data.Raw == nil || err == nil && v == nil:
		errs = append(errs, field.Required(data, "data is mandatory"))
	case err != nil:
		errs = append(errs, field.Invalid(data, "<value omitted>", fmt.Sprintf("error parsing data: %v", err)))
	default:
		if _, ok := v.(map[string]any); !ok {
			errs = append(errs, field.Required(data, "data must be a valid JSON object"))
		}
	}
	return errs
}

// validateAppsUpdate checks what an update of group apps may not change. Status
// updates go through unchecked: only controllers make them.
func validateAppsUpdate(obj, old Object, sub string) field.ErrorList {
	if sub != "" {
		return nil
	}
	selector := field.NewPath("spec", "selector")
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return append(validateDeployment(o), immutable(o.Spec.Selector, old.(*appsv1.Deployment).Spec.Selector, selector)...)
	case *appsv1.ReplicaSet:
		return append(validateReplicaSet(o), immutable(o.Spec.Selector, old.(*appsv1.ReplicaSet).Spec.Selector, selector)...)
	case *appsv1.DaemonSet:
		return append(validateDaemonSet(o), immutable(o.Spec.Selector, old.(*appsv1.DaemonSet).Spec.Selector, selector)...)
	case *appsv1.StatefulSet:
		errs := validateStatefulSet(o)
		s, was := o.Spec, &old.(*appsv1.StatefulSet).Spec
		s.Replicas, s.Template, s.UpdateStrategy, s.MinReadySeconds = was.Replicas, was.Template, was.UpdateStrategy, was.MinReadySeconds
		s.Ordinals, s.RevisionHistoryLimit, s.PersistentVolumeClaimRetentionPolicy = was.Ordinals, was.RevisionHistoryLimit, was.PersistentVolumeClaimRetentionPolicy
		if !equality.Semantic.DeepEqual(&s, was) {
			errs = append(errs, field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
		}
		return errs
	case *appsv1.ControllerRevision:
		errs := nonNegative(o.Revision, field.NewPath("revision"))
		return append(errs, immutable(o.Data, old.(*appsv1.ControllerRevision).Data, field.NewPath("data"))...)
	}
	return nil
}

// countOrPercent requires a number that is not negative, or a percentage
// (ValidatePositiveIntOrPercent).
func countOrPercent(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v.Type == intstr.Int {
		return nonNegative(int64(v.IntVal), path)
	}
	var errs field.ErrorList
	for _, msg := range validation.IsValidPercent(v.StrVal) {
		errs = append(errs, field.Invalid(path, v, msg))
	}
	return errs
}

func percent(v *intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(v.StrVal[:len(v.StrVal)-1])
	return n, err == nil
}

// numberIn is the number, of a percentage too.
func numberIn(v *intstr.IntOrString) int {
	if n, ok := percent(v); ok {
		return n
	}
	return v.IntValue()
}

func atMost100Percent(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if n, ok := percent(v); ok && n > 100 {
		return field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return nil
}
