package kuberuntime

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// killReason is why a container is killed; it decides the grace period.
type killReason string

const (
	reasonUnknown       killReason = "Unknown"
	reasonNone          killReason = ""
	reasonStartupProbe  killReason = "StartupProbe"
	reasonLivenessProbe killReason = "LivenessProbe"
	reasonRestartAll    killReason = "RestartAllContainers"

	reasonFailedPostStartHook killReason = "FailedPostStartHook"
)

// podActions is what a sync has to do.
type podActions struct {
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
	ContainersToKill []containerToKill
	// ContainersToReset are removed so that all containers start anew.
	ContainersToReset []containerToReset
	// resizes is nil if no resources change.
	resizes *resizes
}

type containerToKill struct {
	id, name, message string
	reason            killReason
}

type containerToReset struct {
	id, name  string
	killFirst bool
}

// actionsInput is what the actions of a sync follow from.
type actionsInput struct {
	pod        *v1.Pod
	status     *kubecontainer.PodStatus
	restartAll bool
	hasher     *kubecontainer.Hasher
	probes     ProbeResults // nil: started and alive
	// resources are what containers were given; nil: what the spec says.
	resources *state.Entry
}

// sandboxChanged decides whether the pod needs a new sandbox (upstream
// kuberuntime/util.PodSandboxChanged): with which attempt number, and which
// sandbox it replaces or keeps.
func sandboxChanged(pod *v1.Pod, status *kubecontainer.PodStatus) (changed bool, attempt uint32, id string) {
	if len(status.SandboxStatuses) == 0 {
		return true, 0, ""
	}
	ready := 0
	for _, s := range status.SandboxStatuses {
		if s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			ready++
		}
	}
	newest := status.SandboxStatuses[0]
	last := newest.GetMetadata().GetAttempt()
	if ready > 1 || newest.State != runtimeapi.PodSandboxState_SANDBOX_READY {
		return true, last + 1, newest.Id
	}
	if newest.GetLinux().GetNamespaces().GetOptions().GetNetwork() != networkMode(pod) {
		return true, last + 1, ""
	}
	if !pod.Spec.HostNetwork && newest.Network != nil && newest.Network.Ip == "" {
		return true, last + 1, newest.Id
	}
	return false, last, newest.Id
}

// PodSandboxReady tells whether the pod has the sandbox that it wants; it is
// the condition PodReadyToStartContainers.
func PodSandboxReady(pod *v1.Pod, status *kubecontainer.PodStatus) bool {
	changed, _, _ := sandboxChanged(pod, status)
	return !changed
}

// computePodActions decides what a sync has to do (upstream
// kuberuntime_manager.go computePodActions). It changes nothing, and allocates
// nothing when there is nothing to do.
func computePodActions(in actionsInput) podActions {
	var a podActions
	changed, attempt, id := sandboxChanged(in.pod, in.status)
	a.KillPod, a.CreateSandbox, a.Attempt, a.SandboxID = changed, changed, attempt, id
	switch {
	case in.restartAll:
		a.ContainersToReset = containersToReset(in)
		return a
	case changed:
		a.forNewSandbox(in)
		return a
	}
	for i := range in.pod.Spec.EphemeralContainers {
		if in.status.FindContainerStatusByName(in.pod.Spec.EphemeralContainers[i].Name) == nil {
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

// forNewSandbox decides what a new sandbox starts with, if there is to be one.
func (a *podActions) forNewSandbox(in actionsInput) {
	pod, status := in.pod, in.status
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
func (a *podActions) forContainers(in actionsInput) (kept int) {
	pod := in.pod
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s := in.status.FindContainerStatusByName(c.Name)
		if s == nil || s.State != kubecontainer.StateRunning {
			if !shouldStart(c, pod, s) {
				continue
			}
			if s != nil && s.State == kubecontainer.StateUnknown {
				a.kill(s, `Container is in "unknown" state, try killing it before restart`, reasonUnknown)
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

func shouldStart(c *v1.Container, pod *v1.Pod, s *kubecontainer.Status) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	return s == nil || s.State != kubecontainer.StateExited || kubecontainer.ShouldRestart(c, pod, s.ExitCode)
}

// mustDie tells why a running container has to be killed ("" if it hasn't),
// and whether it starts again.
func (a *podActions) mustDie(in actionsInput, c *v1.Container, s *kubecontainer.Status) (why string, reason killReason, restart bool) {
	restart = kubecontainer.EffectiveRestartPolicy(c, in.pod) != v1.RestartPolicyNever
	switch {
	case s.Hash != in.hasher.Hash(c):
		return "definition changed", reasonNone, true
	case in.probes == nil:
	case c.LivenessProbe != nil && in.probes.Liveness(s.ID) == ProbeFailure:
		return "failed liveness probe", reasonLivenessProbe, restart
	case c.StartupProbe != nil && in.probes.Startup(s.ID) == ProbeFailure:
		return "failed startup probe", reasonStartupProbe, restart
	}
	return "", reasonNone, false
}

func (a *podActions) kill(s *kubecontainer.Status, message string, reason killReason) {
	a.ContainersToKill = append(a.ContainersToKill, containerToKill{id: s.ID, name: s.Name, message: message, reason: reason})
}

// containersToReset lists every status of every container: those that did not
// ask for it before those that did, regular before init containers.
func containersToReset(in actionsInput) []containerToReset {
	lists := [...][]v1.Container{in.pod.Spec.Containers, in.pod.Spec.InitContainers}
	var out []containerToReset
	for _, source := range [...]bool{false, true} {
		for _, list := range lists {
			for i := range list {
				for _, s := range in.status.ContainerStatuses {
					if s.Name != list[i].Name || kubecontainer.IsRestartAllSource(&list[i], s) != source {
						continue
					}
					out = append(out, containerToReset{id: s.ID, name: s.Name, killFirst: s.State != kubecontainer.StateExited})
				}
			}
		}
	}
	return out
}
