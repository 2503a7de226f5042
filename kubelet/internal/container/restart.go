package container

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// IsRestartableInit reports whether an init container is a sidecar, that is, has
// restartPolicy Always.
func IsRestartableInit(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// HasSidecar reports whether one of the pod's init containers is a sidecar.
func HasSidecar(pod *v1.Pod) bool {
	for i := range pod.Spec.InitContainers {
		if IsRestartableInit(&pod.Spec.InitContainers[i]) {
			return true
		}
	}
	return false
}

// EffectiveRestartPolicy is the container's own restart policy, or else the
// pod's.
func EffectiveRestartPolicy(c *v1.Container, pod *v1.Pod) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		return v1.RestartPolicy(*c.RestartPolicy)
	}
	return pod.Spec.RestartPolicy
}

// MatchRestartRule returns the action of the first of the container's
// restartPolicyRules that matches an exit code, or "". Rules count only in a
// container that has a restartPolicy of its own.
func MatchRestartRule(c *v1.Container, exitCode int32) v1.ContainerRestartRuleAction {
	if c.RestartPolicy == nil {
		return ""
	}
	for i := range c.RestartPolicyRules {
		codes := c.RestartPolicyRules[i].ExitCodes
		if codes == nil {
			continue
		}
		listed := slices.Contains(codes.Values, exitCode)
		switch codes.Operator {
		case v1.ContainerRestartRuleOnExitCodesOpIn:
			if listed {
				return c.RestartPolicyRules[i].Action
			}
		case v1.ContainerRestartRuleOnExitCodesOpNotIn:
			if !listed {
				return c.RestartPolicyRules[i].Action
			}
		}
	}
	return ""
}

// ShouldRestart decides whether a container that exited with a code starts
// again, by its rules, its own policy, or the pod's (upstream
// pkg/kubelet/container/helpers.go, pkg/api/v1/pod/util.go).
func ShouldRestart(c *v1.Container, pod *v1.Pod, exitCode int32) bool {
	switch MatchRestartRule(c, exitCode) {
	case v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers:
		return true
	}
	switch EffectiveRestartPolicy(c, pod) {
	case v1.RestartPolicyOnFailure:
		return exitCode != 0
	case v1.RestartPolicyNever:
		return false
	}
	return true
}

// ShouldBeRestarted decides whether a container should be started now, given
// the pod's status in the runtime: never in a pod that is being deleted.
func ShouldBeRestarted(c *v1.Container, pod *v1.Pod, status *PodStatus) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	return shouldBeRestarted(c, pod, status.FindContainerStatusByName(c.Name))
}

func shouldBeRestarted(c *v1.Container, pod *v1.Pod, s *Status) bool {
	switch {
	case s == nil:
		return true
	case s.State == StateRunning:
		return false
	case s.State == StateExited:
		return ShouldRestart(c, pod, s.ExitCode)
	}
	return true
}

// HasRestartAllRule reports whether one of the pod's containers has a rule with
// the action RestartAllContainers.
func HasRestartAllRule(pod *v1.Pod) bool {
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for j := range list[i].RestartPolicyRules {
				if list[i].RestartPolicyRules[j].Action == v1.ContainerRestartRuleActionRestartAllContainers {
					return true
				}
			}
		}
	}
	return false
}

// IsRestartAllSource reports whether the status is that of a container whose
// exit asks for all of the pod's containers to be restarted.
func IsRestartAllSource(c *v1.Container, s *Status) bool {
	return s != nil && s.State == StateExited &&
		MatchRestartRule(c, s.ExitCode) == v1.ContainerRestartRuleActionRestartAllContainers
}
