package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// matchFailure finds the first rule that a failed pod matches: whether the
// failure counts, the rule's action ("" for none), and for FailJob why
// (pod_failure_policy.go). A failure that no rule matches counts, as without a
// policy. Rules are tried in order; the first that matches decides (KEP-3329).
func matchFailure(policy *batchv1.PodFailurePolicy, p *v1.Pod) (message string, counts bool, action batchv1.PodFailurePolicyAction) {
	if policy == nil {
		return "", true, ""
	}
	for i := range policy.Rules {
		r := &policy.Rules[i]
		var why string
		if r.OnExitCodes != nil {
			st := matchExitCode(&p.Status, r.OnExitCodes)
			if st == nil {
				continue
			}
			why = fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v matching %v rule at index %d", st.Name, p.Namespace, p.Name, st.State.Terminated.ExitCode, r.Action, i)
		} else {
			c := matchCondition(&p.Status, r.OnPodConditions)
			if c == nil {
				continue
			}
			why = fmt.Sprintf("Pod %s/%s has condition %v matching %v rule at index %d", p.Namespace, p.Name, c.Type, r.Action, i)
		}
		switch r.Action {
		case batchv1.PodFailurePolicyActionIgnore:
			return "", false, r.Action
		case batchv1.PodFailurePolicyActionFailJob:
			return why, true, r.Action
		}
		return "", true, r.Action
	}
	return "", true, ""
}

// matchExitCode is the first container whose exit code the rule is about. A code
// of 0 matches nothing: a container that succeeded is no reason to fail. Init containers come
// after the others.
func matchExitCode(st *v1.PodStatus, on *batchv1.PodFailurePolicyOnExitCodesRequirement) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses} {
		for i := range list {
			t := list[i].State.Terminated
			if t == nil || t.ExitCode == 0 || on.ContainerName != nil && *on.ContainerName != list[i].Name {
				continue
			}
			if slices.Contains(on.Values, t.ExitCode) == (on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
				return &list[i]
			}
		}
	}
	return nil
}

// matchCondition is the first of a pod's conditions that the rule is about.
func matchCondition(st *v1.PodStatus, on []batchv1.PodFailurePolicyOnPodConditionsPattern) *v1.PodCondition {
	for i := range st.Conditions {
		c := &st.Conditions[i]
		if slices.ContainsFunc(on, func(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return p.Type == c.Type && p.Status == c.Status
		}) {
			return c
		}
	}
	return nil
}

// matchSuccess reports whether the completed indexes meet a rule of the success
// policy, and which (success_policy.go). The text stands in the job's condition. The rules are
// tried in order (KEP-3998). The policy ends the job also while other indexes still run.
func matchSuccess(policy *batchv1.SuccessPolicy, completions int, done intervals) (string, bool) {
	if policy == nil || len(done) == 0 {
		return "", false
	}
	for i, r := range policy.Rules {
		met := false
		if r.SucceededIndexes != nil {
			want := parseIntervals(*r.SucceededIndexes, completions)
			n := overlap(want, done)
			met = len(want) > 0 && (n == want.total() || r.SucceededCount != nil && n >= int(*r.SucceededCount))
		} else if r.SucceededCount != nil {
			met = done.total() >= int(*r.SucceededCount)
		}
		if met {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

// overlap counts the indexes that both have. It walks both lists once.
func overlap(a, b intervals) int {
	n, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		n += max(min(a[i].last, b[j].last)-max(a[i].first, b[j].first)+1, 0)
		if a[i].last < b[j].last {
			i++
		} else {
			j++
		}
	}
	return n
}
