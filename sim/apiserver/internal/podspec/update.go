package podspec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// ValidateUpdate checks that an update through a subresource changes only what may
// change (ValidatePodUpdate and its kin).
func ValidateUpdate(pod, old *v1.Pod, sub string) field.ErrorList {
	switch sub {
	case "status":
		return append(validateAnnotationsUpdate(pod, old), validateStatusUpdate(pod, old)...)
	case "resize":
		return validateResize(pod, old)
	case "ephemeralcontainers":
		return validateEphemeralUpdate(pod, old)
	}
	return validateSpecUpdate(pod, old)
}

// validateAnnotationsUpdate is ValidatePodSpecificAnnotationUpdates. Whether a pod mirrors
// a static one never changes: a kubelet tells its own mirrors by that.
func validateAnnotationsUpdate(pod, old *v1.Pod) field.ErrorList {
	if len(pod.Annotations)+len(old.Annotations) == 0 {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("metadata", "annotations")
	fixed := func(k string) string {
		switch {
		case k == v1.MirrorPodAnnotationKey:
			return "mirror pod annotation"
		case strings.HasPrefix(k, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			return "AppArmor annotations"
		}
		return ""
	}
	for _, k := range fields.SortedKeys(old.Annotations) {
		if v, ok := pod.Annotations[k]; fixed(k) != "" && (!ok || v != old.Annotations[k]) {
			errs = append(errs, field.Forbidden(path.Key(k), "may not remove or update "+fixed(k)))
		}
	}
	for _, k := range fields.SortedKeys(pod.Annotations) {
		if _, ok := old.Annotations[k]; fixed(k) != "" && !ok {
			errs = append(errs, field.Forbidden(path.Key(k), "may not add "+fixed(k)))
		}
	}
	c := checker{spec: &pod.Spec, pod: pod}
	return append(errs, c.validateAnnotations(pod.Annotations, path)...)
}

// validateSpecUpdate checks an update of the pod itself: of its spec, hardly
// anything may change once containers may run by it. Lists of containers are
// compared before their members, which are matched by position. Upstream's order: the first
// mistake of shape ends it, since members could not be matched.
func validateSpecUpdate(pod, old *v1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := append(validatePod(pod), validateAnnotationsUpdate(pod, old)...)
	for _, l := range []struct {
		name    string
		is, was []v1.Container
	}{{"containers", pod.Spec.Containers, old.Spec.Containers}, {"initContainers", pod.Spec.InitContainers, old.Spec.InitContainers}} {
		p := spec.Child(l.name)
		if len(l.is) != len(l.was) {
			return append(errs, field.Forbidden(p, "pod updates may not add or remove containers"))
		}
		for i := range l.is { // what they may change is looked at once more
			errs = append(errs, required(l.is[i].Image, p.Index(i).Child("image"))...)
			errs = append(errs, trimmedImage(&l.is[i], p.Index(i))...)
		}
	}
	deadline, stop := validateDeadlineUpdate(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds, spec.Child("activeDeadlineSeconds"))
	errs = append(errs, deadline...)
	if stop {
		return errs
	}
	errs = append(errs, onlyAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations, spec.Child("tolerations"))...)
	errs = append(errs, onlyOldGates(pod.Spec.SchedulingGates, old.Spec.SchedulingGates, spec.Child("schedulingGates"))...)
	if equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return errs
	}
	s := muted(pod, old)
	if len(old.Spec.SchedulingGates) > 0 {
		errs = append(errs, muteGated(&s, &old.Spec, spec)...)
	}
	if !equality.Semantic.DeepEqual(s, old.Spec) {
		errs = append(errs, field.Forbidden(spec, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"+fields.Diff(old.Spec, s)))
	}
	return errs
}

// validateDeadlineUpdate lets a deadline be set and brought nearer: it may not move away
// from a pod that counts on it. It reports whether nothing more is looked at.
func validateDeadlineUpdate(d, was *int64, path *field.Path) (errs field.ErrorList, stop bool) {
	switch {
	case d == nil && was != nil:
		return field.ErrorList{field.Invalid(path, d, "must not update from a positive integer to nil value")}, false
	case d == nil:
		return nil, false
	case *d < 0 || *d > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *d, validation.InclusiveRangeError(0, math.MaxInt32))}, true
	case was != nil && *d > *was:
		return field.ErrorList{field.Invalid(path, *d, "must be less than or equal to previous value")}, true
	}
	return nil, false
}

// muted is pod's spec with what may change set to what it was in old: images, a
// shorter deadline, more tolerations, a negative grace period set to 1, fewer
// gates. Equality with old's spec then says that nothing else changed, whatever
// fields a spec will get. Only the slices that are written to are copied.
func muted(pod, old *v1.Pod) v1.PodSpec {
	s := pod.Spec
	s.Containers = slices.Clone(s.Containers)
	for i := range s.Containers {
		s.Containers[i].Image = old.Spec.Containers[i].Image
	}
	s.InitContainers = slices.Clone(s.InitContainers)
	for i := range s.InitContainers {
		s.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	s.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	s.Tolerations, s.SchedulingGates = old.Spec.Tolerations, old.Spec.SchedulingGates
	if g := old.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 && s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds == 1 {
		s.TerminationGracePeriodSeconds = g
	}
	return s
}

// muteGated sets back what more may change of a pod that waits for its gates: where it
// may run, but only to fewer places. Errors are about changes to more of them.
func muteGated(s, old *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, k := range fields.SortedKeys(old.NodeSelector) {
		if v, ok := s.NodeSelector[k]; !ok || v != old.NodeSelector[k] {
			errs = append(errs, field.Invalid(path.Child("nodeSelector"), s.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	s.NodeSelector = old.NodeSelector
	nodes := func(a *v1.Affinity) *v1.NodeAffinity {
		if a == nil {
			return nil
		}
		return a.NodeAffinity
	}
	is, was := nodes(s.Affinity), nodes(old.Affinity)
	if equality.Semantic.DeepEqual(is, was) {
		return errs
	}
	errs = append(errs, onlyNarrowed(is, was, path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"))...)
	var a v1.Affinity
	if s.Affinity != nil {
		a = *s.Affinity
	}
	a.NodeAffinity = was
	s.Affinity = &a
	if old.Affinity == nil && a == (v1.Affinity{}) {
		s.Affinity = nil
	}
	return errs
}

// onlyNarrowed lets terms of required node affinity get more requirements
// (validateNodeAffinityMutation). Where there were none, anything may be asked for.
func onlyNarrowed(is, was *v1.NodeAffinity, path *field.Path) field.ErrorList {
	terms := func(a *v1.NodeAffinity) []v1.NodeSelectorTerm {
		if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return nil
		}
		return a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	now, before := terms(is), terms(was)
	if len(before) > 0 && len(now) != len(before) {
		return field.ErrorList{field.Invalid(path, fields.GoNames(now), "no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	var errs field.ErrorList
	begins := func(now, before []v1.NodeSelectorRequirement) bool {
		return len(now) >= len(before) && equality.Semantic.DeepEqual(now[:len(before)], before)
	}
	for i := range before {
		t, o := &now[i], &before[i]
		// An empty term matches no node; it stays so.
		empty := len(o.MatchExpressions)+len(o.MatchFields) == 0 && len(t.MatchExpressions)+len(t.MatchFields) > 0
		if empty || len(o.MatchExpressions) > 0 && !begins(t.MatchExpressions, o.MatchExpressions) || len(o.MatchFields) > 0 && !begins(t.MatchFields, o.MatchFields) {
			errs = append(errs, field.Invalid(path.Index(i), fields.GoNames(*t), "only additions are allowed (no mutations or deletions)"))
		}
	}
	return errs
}

// onlyAddedTolerations is validateOnlyAddedTolerations. Of one that was there,
// tolerationSeconds may change: the taint eviction of a running pod reads it anew.
func onlyAddedTolerations(list, old []v1.Toleration, path *field.Path) field.ErrorList {
	for _, o := range old {
		if !slices.ContainsFunc(list, func(t v1.Toleration) bool {
			t.TolerationSeconds = o.TolerationSeconds
			return equality.Semantic.DeepEqual(t, o)
		}) {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return ValidateTolerations(list, path) // once more, as upstream
}

// onlyOldGates lets gates be taken away.
func onlyOldGates(list, old []v1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, g := range list {
		if !slices.Contains(old, g) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name)))
		}
	}
	return errs
}

// validateEphemeralUpdate is ValidatePodEphemeralContainersUpdate: containers are
// only ever added, since the kubelet starts each once and never ends it.
func validateEphemeralUpdate(pod, old *v1.Pod) field.ErrorList {
	if IsMirror(old) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	path := field.NewPath("spec", "ephemeralContainers")
	errs := append(validatePod(pod), validateAnnotationsUpdate(pod, old)...)
	// What is there already must be in the new list as it was, wherever it stands
	// in it.
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		j := slices.IndexFunc(pod.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == was.Name })
		switch {
		case j < 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name)))
		case !equality.Semantic.DeepEqual(*was, pod.Spec.EphemeralContainers[j]):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", was.Name, fields.Diff(*was, pod.Spec.EphemeralContainers[j]))))
		}
	}
	return errs
}

// IsMirror reports whether the object mirrors a static pod. The kubelet puts the
// annotation there; its value is the static pod's hash.
func IsMirror(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[v1.MirrorPodAnnotationKey]
	return ok
}
