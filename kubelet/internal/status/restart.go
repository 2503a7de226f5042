package status

import (
	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// isRestartingAll reports whether the pod is restarting all its containers: it
// was before, or one has exited by a rule that says so, as the runtime or,
// where that has it no more, the old status tells.
func (g *generation) isRestartingAll() bool {
	if !kubecontainer.HasRestartAllRule(g.Pod) {
		return false
	}
	if c := FindCondition(g.old.Conditions, v1.AllContainersRestarting); c != nil && c.Status == v1.ConditionTrue {
		return true
	}
	spec := &g.Pod.Spec
	return g.exitedByRule(spec.InitContainers, g.old.InitContainerStatuses) || g.exitedByRule(spec.Containers, g.old.ContainerStatuses)
}

// exitedByRule reports whether a container of the spec has ended by such a
// rule.
func (g *generation) exitedByRule(spec []v1.Container, old []v1.ContainerStatus) bool {
	for i := range spec {
		c := &spec[i]
		if len(c.RestartPolicyRules) == 0 {
			continue
		}
		if s := g.Runtime.FindContainerStatusByName(c.Name); s != nil {
			if kubecontainer.IsRestartAllSource(c, s) {
				return true
			}
			continue
		}
		s := findStatus(old, c.Name)
		if s != nil && s.State.Terminated != nil &&
			kubecontainer.MatchRestartRule(c, s.State.Terminated.ExitCode) == v1.ContainerRestartRuleActionRestartAllContainers {
			return true
		}
	}
	return false
}
