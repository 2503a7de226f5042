package status

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// NeedsReadinessReconcile reports whether a pod with readiness gates has, in the
// API, a Ready condition that its gates and its ContainersReady condition do
// not imply: somebody else changed a gate.
func NeedsReadinessReconcile(pod *v1.Pod) bool {
	if len(pod.Spec.ReadinessGates) == 0 {
		return false
	}
	ready := FindCondition(pod.Status.Conditions, v1.PodReady)
	if ready == nil {
		return false
	}
	status, message := v1.ConditionTrue, ""
	if c := FindCondition(pod.Status.Conditions, v1.ContainersReady); c != nil && c.Status != v1.ConditionTrue {
		status, message = c.Status, c.Message
	} else if message = unreadyGates(pod); message != "" {
		status = v1.ConditionFalse
	}
	return ready.Status != status || ready.Message != message
}

// unreadyGates says which readiness gates are not met.
func unreadyGates(pod *v1.Pod) string {
	var out []string
	for _, g := range pod.Spec.ReadinessGates {
		c := FindCondition(pod.Status.Conditions, g.ConditionType)
		switch {
		case c == nil:
			out = append(out, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		case c.Status != v1.ConditionTrue:
			out = append(out, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", g.ConditionType, c.Status))
		}
	}
	return strings.Join(out, ", ")
}
