package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelKeys calls fn for each selector of a pod's spread constraints and
// affinity terms that the pod's own labels complete: matchLabelKeys, and
// mismatchLabelKeys. It is the one place that knows where such keys can stand (KEP-3243 for
// spreading, KEP-3633 for affinity).
func labelKeys(spec *v1.PodSpec, fn func(sel **metav1.LabelSelector, match, mismatch []string)) {
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.LabelSelector != nil && len(c.MatchLabelKeys) > 0 {
			fn(&c.LabelSelector, c.MatchLabelKeys, nil)
		}
	}
	term := func(t *v1.PodAffinityTerm) {
		if t.LabelSelector != nil && len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0 {
			fn(&t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)
		}
	}
	terms := func(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
		for i := range required {
			term(&required[i])
		}
		for i := range preferred {
			term(&preferred[i].PodAffinityTerm)
		}
	}
	if spec.Affinity == nil {
		return
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		terms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		terms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// NamedLabelKeys are the labels of its own that a pod's selectors are completed by. Callers use
// it to find out whether two pods of one template can share a spec: the values go into it.
func NamedLabelKeys(spec *v1.PodSpec) (keys []string) {
	labelKeys(spec, func(_ **metav1.LabelSelector, match, mismatch []string) {
		keys = append(append(keys, match...), mismatch...)
	})
	return keys
}

// MergeLabelKeys completes a new pod's selectors (pkg/registry/core/pod,
// mutatePodAffinity and mutateTopologySpreadConstraints). What the spec shares
// with others is copied. It happens at creation only, so a label that changes later doesn't move
// the pod's terms.
func MergeLabelKeys(pod *v1.Pod) {
	if len(NamedLabelKeys(&pod.Spec)) == 0 {
		return
	}
	pod.Spec.TopologySpreadConstraints = slices.Clone(pod.Spec.TopologySpreadConstraints)
	pod.Spec.Affinity = pod.Spec.Affinity.DeepCopy()
	labelKeys(&pod.Spec, func(sel **metav1.LabelSelector, match, mismatch []string) {
		merged := (*sel).DeepCopy()
		add := func(keys []string, op metav1.LabelSelectorOperator) {
			for _, k := range keys {
				if v, ok := pod.Labels[k]; ok {
					merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
				}
			}
		}
		add(match, metav1.LabelSelectorOpIn)
		add(mismatch, metav1.LabelSelectorOpNotIn)
		*sel = merged
	})
}
