package kuberuntime

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// initFailed tells whether an init container's last run was no success.
func initFailed(s *kubecontainer.Status) bool {
	return s.Reason == "OOMKilled" ||
		s.State == kubecontainer.StateExited && s.ExitCode != 0 ||
		s.State == kubecontainer.StateUnknown
}

// forInitContainers decides about the init containers; it tells whether they
// have all done their work, so that regular containers may run (upstream
// computeInitContainerActions). It walks from the last to the first: what has
// a status makes the earlier ones count as done.
func (a *podActions) forInitContainers(in actionsInput) (initialized bool) {
	list := in.pod.Spec.InitContainers
	if len(list) == 0 {
		return true
	}
	passed := anyContainerCreated(in)
	initialized = passed
	w := initWalk{a: *a, in: in, passed: passed} // by value, so that nothing escapes
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		s := in.status.FindContainerStatusByName(c.Name)
		sidecar := kubecontainer.IsRestartableInit(c)
		switch {
		case s == nil:
			if sidecar && w.passed {
				w.start(i)
			}
			continue
		case !sidecar && w.passed:
			continue
		}
		if sidecar {
			w.sidecar(i, c, s)
		} else if !w.ordinary(i, c, s) {
			a.KillPod = true
			a.InitContainersToStart = nil
			return false
		}
		initialized = initialized || w.initialized
		w.passed = true
	}
	if !w.passed {
		w.start(0)
	}
	*a = w.a
	slices.Reverse(a.InitContainersToStart)
	slices.Reverse(a.ContainersToKill)
	return initialized
}

// anyContainerCreated tells whether a regular container was created in the
// present sandbox; one that has exited may be of an earlier sandbox.
func anyContainerCreated(in actionsInput) bool {
	for i := range in.pod.Spec.Containers {
		s := in.status.FindContainerStatusByName(in.pod.Spec.Containers[i].Name)
		if s != nil && (s.State == kubecontainer.StateCreated || s.State == kubecontainer.StateRunning) {
			return true
		}
	}
	return false
}

type initWalk struct {
	a           podActions
	in          actionsInput
	passed      bool // a later container has begun, so this one has done its part
	initialized bool
}

func (w *initWalk) start(i int) { w.a.InitContainersToStart = append(w.a.InitContainersToStart, i) }

// done notes that init container i lets the next one go.
func (w *initWalk) done(i int) {
	if i == len(w.in.pod.Spec.InitContainers)-1 {
		w.initialized = true
	} else if !w.passed {
		w.start(i + 1)
	}
}

const unknownInit = `Init container is in "unknown" state, try killing it before restart`

// ordinary decides about an init container that has to end; false means that
// the pod has failed.
func (w *initWalk) ordinary(i int, c *v1.Container, s *kubecontainer.Status) bool {
	switch s.State {
	case kubecontainer.StateCreated:
		w.start(i)
	case kubecontainer.StateExited:
		switch {
		case !initFailed(s):
			w.done(i)
		case !kubecontainer.ShouldBeRestarted(c, w.in.pod, w.in.status):
			return false
		default:
			w.start(i)
		}
	case kubecontainer.StateUnknown:
		if kubecontainer.EffectiveRestartPolicy(c, w.in.pod) == v1.RestartPolicyNever {
			return false
		}
		w.a.kill(s, unknownInit, reasonUnknown)
		w.start(i)
	case kubecontainer.StateRunning: // wait
		if !w.a.resize(&w.in, c, s) {
			w.start(i)
		}
	}
	return true
}

// sidecar decides about an init container that keeps running.
func (w *initWalk) sidecar(i int, c *v1.Container, s *kubecontainer.Status) {
	switch s.State {
	case kubecontainer.StateCreated, kubecontainer.StateExited:
		w.start(i)
		return
	case kubecontainer.StateUnknown:
		w.a.kill(s, unknownInit, reasonUnknown)
		w.start(i)
		return
	}
	probes := w.in.probes
	if probes != nil && c.StartupProbe != nil {
		switch probes.Startup(s.ID) {
		case ProbeNone, ProbeUnknown:
			return // wait
		case ProbeFailure:
			w.a.kill(s, "Init container "+c.Name+" failed startup probe", reasonStartupProbe)
			w.start(i)
			return
		}
	}
	w.done(i)
	if s.Hash != w.in.hasher.Hash(c) {
		w.a.kill(s, "Init container "+c.Name+" definition changed", reasonNone)
		w.start(i)
		return
	}
	if probes != nil && c.LivenessProbe != nil {
		switch probes.Liveness(s.ID) {
		case ProbeNone:
			return
		case ProbeFailure:
			w.a.kill(s, "Init container "+c.Name+" failed liveness probe", reasonLivenessProbe)
			w.start(i)
			return
		}
	}
	if !w.a.resize(&w.in, c, s) {
		w.start(i)
	}
}
