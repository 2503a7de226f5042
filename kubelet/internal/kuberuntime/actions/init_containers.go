package actions

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// initFailed reports whether an init container's last run was no success.
// Runtimes are known to report a container that was killed for its memory as
// exited with 0, hence the reason.
func initFailed(s *kubecontainer.Status) bool {
	return s.Reason == "OOMKilled" ||
		s.State == kubecontainer.StateExited && s.ExitCode != 0 ||
		s.State == kubecontainer.StateUnknown
}

// forInitContainers decides about the init containers; it reports whether they
// have all done their work, so that regular containers may run (upstream
// computeInitContainerActions).
//
// It walks from the last to the first, since init containers that ended may be
// gone from the runtime: one that has a status proves that the earlier ones
// did their work once.
func (a *Actions) forInitContainers(in Input) (initialized bool) {
	list := in.Pod.Spec.InitContainers
	if len(list) == 0 {
		return true
	}
	passed := anyContainerCreated(in)
	initialized = passed
	w := initWalk{a: *a, in: in, passed: passed} // by value, so that nothing escapes
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		s := in.Status.FindContainerStatusByName(c.Name)
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

// anyContainerCreated reports whether a regular container was created in the
// present sandbox; one that has exited may be of an earlier sandbox.
func anyContainerCreated(in Input) bool {
	for i := range in.Pod.Spec.Containers {
		s := in.Status.FindContainerStatusByName(in.Pod.Spec.Containers[i].Name)
		if s != nil && (s.State == kubecontainer.StateCreated || s.State == kubecontainer.StateRunning) {
			return true
		}
	}
	return false
}

// initWalk is the walk over the init containers, from the last to the first.
type initWalk struct {
	a           Actions
	in          Input
	passed      bool // a later container has begun, so this one has done its part
	initialized bool // the last one has done its part: regular ones may run
}

// start notes an init container to start; forInitContainers turns the order
// round.
func (w *initWalk) start(i int) { w.a.InitContainersToStart = append(w.a.InitContainersToStart, i) }

// done notes that init container i lets the next one go.
func (w *initWalk) done(i int) {
	if i == len(w.in.Pod.Spec.InitContainers)-1 {
		w.initialized = true
	} else if !w.passed {
		w.start(i + 1)
	}
}

// unknownInit is the message of the kill of a container in an unknown state.
const unknownInit = `Init container is in "unknown" state, try killing it before restart`

// ordinary decides about an init container that has to end before the next
// begins; false means that the pod has failed.
func (w *initWalk) ordinary(i int, c *v1.Container, s *kubecontainer.Status) bool {
	switch s.State {
	case kubecontainer.StateCreated:
		w.start(i)
	case kubecontainer.StateExited:
		switch {
		case !initFailed(s):
			w.done(i)
		case !kubecontainer.ShouldBeRestarted(c, w.in.Pod, w.in.Status):
			return false
		default:
			w.start(i)
		}
	case kubecontainer.StateUnknown:
		if kubecontainer.EffectiveRestartPolicy(c, w.in.Pod) == v1.RestartPolicyNever {
			return false
		}
		w.a.kill(s, unknownInit, ReasonUnknown)
		w.start(i)
	case kubecontainer.StateRunning: // wait
		if !w.a.resize(&w.in, c, s) {
			w.start(i)
		}
	}
	return true
}

// sidecar decides about an init container that keeps running (KEP-753): it lets
// the next one go once it has started up, and is restarted whatever happens.
func (w *initWalk) sidecar(i int, c *v1.Container, s *kubecontainer.Status) {
	switch s.State {
	case kubecontainer.StateCreated, kubecontainer.StateExited:
		w.start(i)
		return
	case kubecontainer.StateUnknown:
		w.a.kill(s, unknownInit, ReasonUnknown)
		w.start(i)
		return
	}
	probes := w.in.Probes
	if probes != nil && c.StartupProbe != nil {
		switch probes.Startup(s.ID) {
		case ProbeNone, ProbeUnknown:
			return // wait
		case ProbeFailure:
			w.a.kill(s, "Init container "+c.Name+" failed startup probe", ReasonStartupProbe)
			w.start(i)
			return
		}
	}
	w.done(i)
	if s.Hash != w.in.Hasher.Hash(c) {
		w.a.kill(s, "Init container "+c.Name+" definition changed", ReasonNone)
		w.start(i)
		return
	}
	if probes != nil && c.LivenessProbe != nil {
		switch probes.Liveness(s.ID) {
		case ProbeNone:
			return
		case ProbeFailure:
			w.a.kill(s, "Init container "+c.Name+" failed liveness probe", ReasonLivenessProbe)
			w.start(i)
			return
		}
	}
	if !w.a.resize(&w.in, c, s) {
		w.start(i)
	}
}
