// Package actions decides what a pod's sync has to do in the runtime: from the
// pod's spec, its cached status and the results of its probes follow a sandbox
// to make, containers to kill, to start and to resize. [Compute] does nothing
// itself, so that every decision has a row in a table of its tests; the
// kuberuntime package carries out what it returns.
//
// actions.go decides about the sandbox and the regular containers,
// init_containers.go about init containers and sidecars, resize.go about
// resources that change in place.
package actions

import (
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// Reason is why a container is killed. It decides the grace period, since a
// probe can have one of its own (upstream kuberuntime containerKillReason).
type Reason string

// The reasons that there are.
const (
	ReasonUnknown       Reason = "Unknown"
	ReasonNone          Reason = ""
	ReasonStartupProbe  Reason = "StartupProbe"
	ReasonLivenessProbe Reason = "LivenessProbe"
	ReasonRestartAll    Reason = "RestartAllContainers"

	ReasonFailedPostStartHook Reason = "FailedPostStartHook"
)

// ProbeResult is the last result of a probe of a container.
type ProbeResult uint8

// The results of probes.
const (
	ProbeNone ProbeResult = iota // no result yet
	ProbeSuccess
	ProbeFailure
	ProbeUnknown
)

// ProbeResults returns the last results of probes by CRI container ID.
type ProbeResults interface {
	Liveness(containerID string) ProbeResult
	Startup(containerID string) ProbeResult
}

// Actions is what a sync has to do, in the order in which it does it (upstream
// kuberuntime podActions).
type Actions struct {
	// KillPod stops all running containers and every sandbox.
	KillPod bool
	// CreateSandbox makes a new sandbox, after the kill; what there is of
	// init containers is removed.
	CreateSandbox bool
	// SandboxID is that of the sandbox in use, "" if a new one has nothing to
	// take over. Attempt is that of the sandbox in use or to be made.
	SandboxID string
	Attempt   uint32
	// The containers to start, as indexes into the spec's lists.
	InitContainersToStart      []int
	ContainersToStart          []int
	EphemeralContainersToStart []int
	// ContainersToKill in the order of the spec: init containers first.
	ContainersToKill []Kill
	// ContainersToReset are removed so that all containers start anew.
	ContainersToReset []Reset
	// Resizes is nil if no resources change, which is nearly always so.
	Resizes *Resizes
}

// Kill is a container to kill; it may be started again by the same sync.
type Kill struct {
	ID, Name string
	// Message is that of the event; "" stands for the usual one.
	Message string
	Reason  Reason
}

// Reset is a container to remove before all containers start anew (KEP-5532,
// RestartAllContainers).
type Reset struct {
	ID, Name string
	// KillFirst: it is not known to have ended.
	KillFirst bool
}

// Input is what the actions of a sync follow from.
type Input struct {
	Pod        *v1.Pod
	Status     *kubecontainer.PodStatus
	RestartAll bool
	Hasher     *kubecontainer.Hasher
	Probes     ProbeResults // nil: started and alive
	// Resources are what containers were given; nil: what the spec says.
	Resources *state.Entry
}

// Compute decides what a sync has to do (upstream kuberuntime_manager.go
// computePodActions). It changes nothing, and allocates nothing when there is
// nothing to do: most syncs find a pod as it should be.
func Compute(in Input) Actions {
	var a Actions
	changed, attempt, id := kubecontainer.SandboxChanged(in.Pod, in.Status)
	a.KillPod, a.CreateSandbox, a.Attempt, a.SandboxID = changed, changed, attempt, id
	switch {
	case in.RestartAll:
		a.ContainersToReset = containersToReset(in)
		return a
	case changed:
		a.forNewSandbox(in)
		return a
	}
	for i := range in.Pod.Spec.EphemeralContainers {
		if in.Status.FindContainerStatusByName(in.Pod.Spec.EphemeralContainers[i].Name) == nil {
			a.EphemeralContainersToStart = append(a.EphemeralContainersToStart, i)
		}
	}
	initialized := a.forInitContainers(in)
	if a.KillPod || !initialized {
		return a
	}
	kept := a.forContainers(in)
	if kept == 0 && len(a.ContainersToStart) == 0 {
		// Sidecars must not keep a finished pod alive.
		a.KillPod = true
		a.InitContainersToStart = nil
	}
	a.resizePod(&in)
	return a
}

// Idle reports whether there is nothing to do.
func (a *Actions) Idle() bool {
	return !a.KillPod && !a.CreateSandbox && len(a.ContainersToKill) == 0 && len(a.ContainersToReset) == 0 &&
		!a.Starts() && a.Resizes.None()
}

// Starts reports whether a container is to be started.
func (a *Actions) Starts() bool {
	return len(a.InitContainersToStart)+len(a.ContainersToStart)+len(a.EphemeralContainersToStart) > 0
}

// forNewSandbox decides what a new sandbox starts with, if there is to be one:
// not for a pod that has run and must not restart, nor for one whose containers
// have all succeeded.
func (a *Actions) forNewSandbox(in Input) {
	pod, status := in.Pod, in.Status
	if pod.Spec.RestartPolicy == v1.RestartPolicyNever && a.Attempt != 0 && len(status.ContainerStatuses) != 0 {
		a.CreateSandbox = false
		return
	}
	var start []int
	created := false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s := status.FindContainerStatusByName(c.Name)
		if s != nil && s.State != kubecontainer.StateUnknown {
			created = true
		}
		if kubecontainer.EffectiveRestartPolicy(c, pod) == v1.RestartPolicyOnFailure &&
			s != nil && s.State == kubecontainer.StateExited && s.ExitCode == 0 {
			continue
		}
		start = append(start, i)
	}
	if len(start) == 0 && created {
		a.CreateSandbox = false
		return
	}
	if len(pod.Spec.InitContainers) > 0 {
		a.InitContainersToStart = []int{0}
		return
	}
	a.ContainersToStart = start
}

// forContainers decides about the regular containers; it returns how many are
// kept as they are.
// A container that must die is started again by the same sync, after the kill.
func (a *Actions) forContainers(in Input) (kept int) {
	pod := in.Pod
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s := in.Status.FindContainerStatusByName(c.Name)
		if s == nil || s.State != kubecontainer.StateRunning {
			if !shouldStart(c, pod, s) {
				continue
			}
			if s != nil && s.State == kubecontainer.StateUnknown {
				a.kill(s, `Container is in "unknown" state, try killing it before restart`, ReasonUnknown)
			}
			a.ContainersToStart = append(a.ContainersToStart, i)
			continue
		}
		why, reason, restart := a.mustDie(in, c, s)
		if why == "" {
			if a.resize(&in, c, s) {
				kept++
			} else {
				a.ContainersToStart = append(a.ContainersToStart, i)
			}
			continue
		}
		message := "Container " + c.Name + " " + why
		if restart {
			message += ", will be restarted"
			a.ContainersToStart = append(a.ContainersToStart, i)
		}
		a.kill(s, message, reason)
	}
	return kept
}

// shouldStart reports whether a regular container that doesn't run is to be
// started. A pod that is being deleted starts nothing.
func shouldStart(c *v1.Container, pod *v1.Pod, s *kubecontainer.Status) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	return s == nil || s.State != kubecontainer.StateExited || kubecontainer.ShouldRestart(c, pod, s.ExitCode)
}

// mustDie returns why a running container has to be killed ("" if it hasn't),
// and whether it starts again: a changed definition restarts it whatever its
// policy says.
func (a *Actions) mustDie(in Input, c *v1.Container, s *kubecontainer.Status) (why string, reason Reason, restart bool) {
	restart = kubecontainer.EffectiveRestartPolicy(c, in.Pod) != v1.RestartPolicyNever
	switch {
	case s.Hash != in.Hasher.Hash(c):
		return "definition changed", ReasonNone, true
	case in.Probes == nil:
	case c.LivenessProbe != nil && in.Probes.Liveness(s.ID) == ProbeFailure:
		return "failed liveness probe", ReasonLivenessProbe, restart
	case c.StartupProbe != nil && in.Probes.Startup(s.ID) == ProbeFailure:
		return "failed startup probe", ReasonStartupProbe, restart
	}
	return "", ReasonNone, false
}

// kill notes a container to kill.
func (a *Actions) kill(s *kubecontainer.Status, message string, reason Reason) {
	a.ContainersToKill = append(a.ContainersToKill, Kill{ID: s.ID, Name: s.Name, Message: message, Reason: reason})
}

// containersToReset lists every status of every container: those that did not
// ask for it before those that did, regular before init containers.
func containersToReset(in Input) []Reset {
	lists := [...][]v1.Container{in.Pod.Spec.Containers, in.Pod.Spec.InitContainers}
	var out []Reset
	for _, source := range [...]bool{false, true} {
		for _, list := range lists {
			for i := range list {
				for _, s := range in.Status.ContainerStatuses {
					if s.Name != list[i].Name || kubecontainer.IsRestartAllSource(&list[i], s) != source {
						continue
					}
					out = append(out, Reset{ID: s.ID, Name: s.Name, KillFirst: s.State != kubecontainer.StateExited})
				}
			}
		}
	}
	return out
}
