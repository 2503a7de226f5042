package status

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// phaseCounts counts the containers of a pod by what they mean for its phase.
type phaseCounts struct {
	pendingInit, failedInit int
	pendingSidecar          int
	running, waiting        int
	stopped, succeeded      int
	// final containers have failed or ended in a way that no restart undoes.
	final, unknown int
}

// phase computes the pod's phase from its container statuses (upstream
// getPhase).
// The order of the cases is upstream's and decides mixed pods: a failed init
// container outweighs all, waiting outweighs running.
func (g *generation) phase(s *v1.PodStatus) v1.PodPhase {
	var n phaseCounts
	spec := &g.Pod.Spec
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		st := findStatus(s.InitContainerStatuses, c.Name)
		if kubecontainer.IsRestartableInit(c) {
			n.sidecar(st)
		} else {
			n.init(c, g.Pod, st)
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		n.regular(c, g.Pod, findStatus(s.ContainerStatuses, c.Name))
	}
	switch {
	case n.failedInit > 0:
		return v1.PodFailed
	case n.pendingInit > 0, n.pendingSidecar > 0 && !g.initialized(), n.waiting > 0:
		return v1.PodPending
	case n.running > 0 && n.unknown == 0:
		return v1.PodRunning
	case n.running == 0 && n.stopped > 0 && n.unknown == 0:
		return g.stoppedPhase(&n)
	}
	return v1.PodPending
}

// stoppedPhase is the phase of a pod whose containers all have stopped. While a
// container is going to restart the pod is Running; a static pod that would
// restart one is so even when its worker ends it.
func (g *generation) stoppedPhase(n *phaseCounts) v1.PodPhase {
	if (!g.Terminal || kubetypes.IsStaticPod(g.Pod)) && n.stopped != n.final {
		return v1.PodRunning
	}
	if n.stopped == n.succeeded {
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// init counts an init container that has to end.
func (n *phaseCounts) init(c *v1.Container, pod *v1.Pod, st *v1.ContainerStatus) {
	t := ended(st)
	switch {
	case t == nil:
		n.pendingInit++
	case t.ExitCode != 0 && !restartable(c, pod, t):
		n.failedInit++
	}
}

// sidecar counts an init container that keeps running. One that isn't started
// yet holds the pod back, but only until it is initialized.
func (n *phaseCounts) sidecar(st *v1.ContainerStatus) {
	switch {
	case st == nil:
		n.unknown++
	case st.State.Running != nil:
		if st.Started == nil || !*st.Started {
			n.pendingSidecar++
		}
		n.running++
	case ended(st) != nil:
		// it will be restarted
	case st.State.Waiting != nil:
		n.pendingSidecar++
		n.waiting++
	default:
		n.pendingSidecar++
		n.unknown++
	}
}

// regular counts a regular container. One that waits after a run counts as
// stopped: it is in back-off, and its pod stays Running.
func (n *phaseCounts) regular(c *v1.Container, pod *v1.Pod, st *v1.ContainerStatus) {
	switch {
	case st == nil:
		n.unknown++
	case st.State.Running != nil:
		n.running++
	case st.State.Terminated != nil:
		n.stopped++
		if st.State.Terminated.ExitCode == 0 {
			n.succeeded++
		}
		if !restartable(c, pod, st.State.Terminated) {
			n.final++
		}
	case st.State.Waiting == nil:
		n.unknown++
	case st.LastTerminationState.Terminated != nil:
		n.stopped++
		if !restartable(c, pod, st.LastTerminationState.Terminated) {
			n.final++
		}
	default:
		n.waiting++
	}
}

// ended returns how a container that is Terminated, or waits after an earlier
// run, has ended; nil for any other.
func ended(st *v1.ContainerStatus) *v1.ContainerStateTerminated {
	switch {
	case st == nil:
		return nil
	case st.State.Terminated != nil:
		return st.State.Terminated
	case st.State.Waiting != nil:
		return st.LastTerminationState.Terminated
	}
	return nil
}

// restartable reports whether a container that ended so is started again.
func restartable(c *v1.Container, pod *v1.Pod, t *v1.ContainerStateTerminated) bool {
	return t.Reason == reasonRestartingAll || kubecontainer.ShouldRestart(c, pod, t.ExitCode)
}

// initialized reports whether a regular container exists in the current
// sandbox, which means that all init containers have run.
func (g *generation) initialized() bool {
	r := g.Runtime
	if len(r.SandboxStatuses) == 0 || r.SandboxStatuses[0].State != runtimeapi.PodSandboxState_SANDBOX_READY {
		return false
	}
	for _, cs := range r.ContainerStatuses {
		if cs.PodSandboxID != r.SandboxStatuses[0].Id {
			continue
		}
		for i := range g.Pod.Spec.Containers {
			if g.Pod.Spec.Containers[i].Name == cs.Name {
				return true
			}
		}
	}
	return false
}
