package status

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// The reasons and messages of container statuses that the kubelet makes up.
const (
	reasonPodInitializing   = "PodInitializing"
	reasonContainerCreating = "ContainerCreating"
	reasonStatusUnknown     = "ContainerStatusUnknown"
	reasonRestartingAll     = "RestartingAllContainers"
	messageRestartingAll    = "The container is removed because RestartAllContainers in place"
	messageDeleted          = "The container could not be located when the pod was deleted.  The container used to be Running"
	messageTerminated       = "The container could not be located when the pod was terminated"
	messageInitDone         = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"
	exitUnknown             = 137
)

// kind is in which of the spec's lists a container is.
type kind uint8

const (
	regular kind = iota
	initial
	ephemeral
)

// scratchSize is kept small: the scratch space stands in the deepest stack of
// each pod's start, and a stack that must grow costs more than all the rest.
const scratchSize = 2

// container returns the i-th container of a kind, or nil.
func (k kind) container(spec *v1.PodSpec, i int) *v1.Container {
	switch {
	case k == regular && i < len(spec.Containers):
		return &spec.Containers[i]
	case k == initial && i < len(spec.InitContainers):
		return &spec.InitContainers[i]
	case k == ephemeral && i < len(spec.EphemeralContainers):
		return (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
	}
	return nil
}

// list makes the statuses of one kind of containers: regular and ephemeral
// ones by name, init containers in the order of the spec.
// The statuses are in scratch space where there is room, so they are good until
// the generation ends; settle copies what has changed.
func (g *generation) list(k kind, hasInit bool, old []v1.ContainerStatus) []v1.ContainerStatus {
	spec := &g.Pod.Spec
	n := [...]int{len(spec.Containers), len(spec.InitContainers), len(spec.EphemeralContainers)}[k]
	if n == 0 {
		return nil
	}
	var out []v1.ContainerStatus
	if g.used+n <= scratchSize {
		out = g.scratch[g.used : g.used : g.used+n]
		g.used += n
	} else {
		out = make([]v1.ContainerStatus, 0, n)
	}
	for i := range n {
		c := k.container(spec, i)
		out = append(out, g.one(c, k, hasInit, findStatus(old, c.Name)))
	}
	if k != initial && n > 1 {
		slices.SortStableFunc(out, func(a, b v1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

// settle returns old if it says the same as list, else a copy of list on the
// heap.
func settle(list, old []v1.ContainerStatus) []v1.ContainerStatus {
	if len(list) == 0 {
		return nil
	}
	if containerStatusesEqual(list, old) {
		return old
	}
	return append(make([]v1.ContainerStatus, 0, len(list)), list...)
}

// one makes the status of one container.
func (g *generation) one(c *v1.Container, k kind, hasInit bool, prev *v1.ContainerStatus) v1.ContainerStatus {
	newest, second := g.newest(c.Name)
	var s v1.ContainerStatus
	if newest == nil {
		s = g.missing(c, hasInit, prev)
	} else {
		s = g.convert(c, k, newest, prev)
		if second != nil {
			s.LastTerminationState, _ = g.state(second, prev)
		}
	}
	g.waiting(&s, c, k, newest)
	if k == regular && g.Env.Devices != nil {
		s.AllocatedResourcesStatus = g.Env.Devices(g.Pod.UID, c.Name)
	}
	if k == regular && len(c.Resources.Claims) > 0 && g.Env.Claims != nil {
		s.AllocatedResourcesStatus = append(s.AllocatedResourcesStatus, g.Env.Claims(g.Pod, c)...)
	}
	return s
}

// newest returns the two newest runtime statuses of a name.
func (g *generation) newest(name string) (first, second *kubecontainer.Status) {
	for _, s := range g.Runtime.ContainerStatuses {
		if s.Name != name {
			continue
		}
		if first != nil {
			return first, s
		}
		first = s
	}
	return first, nil
}

// missing makes the status of a container that the runtime doesn't have.
// It waits, unless the last status knows better: what has ended stays ended,
// and what ran is shown as lost, since nobody will ever learn how it ended.
func (g *generation) missing(c *v1.Container, hasInit bool, prev *v1.ContainerStatus) v1.ContainerStatus {
	reason := reasonContainerCreating
	if hasInit {
		reason = reasonPodInitializing
	}
	s := v1.ContainerStatus{Name: c.Name, Image: c.Image}
	s.State.Waiting = g.waitingState(prev, reason, "")
	if prev == nil {
		s.VolumeMounts = g.mounts(c)
		return s
	}
	if prev.State.Terminated != nil {
		s = *prev
	} else {
		s.RestartCount = prev.RestartCount
		s.LastTerminationState = prev.LastTerminationState
		s.VolumeMounts = g.mounts(c)
	}
	if g.restartingAll && prev.State.Waiting == nil {
		s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reasonRestartingAll, Message: messageRestartingAll}}
		s.LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: reasonRestartingAll, Message: messageRestartingAll, ExitCode: exitUnknown}}
		s.RestartCount = prev.RestartCount + 1
		return s
	}
	if prev.State.Running != nil && s.LastTerminationState.Terminated == nil {
		// It shows as stopped, not as waiting, so the pod's phase doesn't fall
		// back to Pending.
		s.LastTerminationState.Terminated = &v1.ContainerStateTerminated{
			Reason: reasonStatusUnknown, Message: messageDeleted, ExitCode: exitUnknown}
		if g.Pod.DeletionTimestamp == nil {
			s.RestartCount++
		}
	}
	return s
}

// convert makes the status of a container out of its newest runtime status.
// The restart count never falls: a runtime that lost its containers counts from
// its log files, the API's count may be higher.
func (g *generation) convert(c *v1.Container, k kind, cs *kubecontainer.Status, prev *v1.ContainerStatus) v1.ContainerStatus {
	s := v1.ContainerStatus{
		Name:         c.Name,
		RestartCount: cs.RestartCount,
		Image:        cs.Image,
		ImageID:      cs.ImageRef,
		ContainerID:  g.containerID(cs.ID, prev),
	}
	var lost bool
	s.State, lost = g.state(cs, prev)
	s.Resources = g.resources(c, k, cs, s.ContainerID, prev)
	s.AllocatedResources = c.Resources.Requests
	s.User = cs.User
	if prev == nil {
		return s
	}
	s.VolumeMounts = prev.VolumeMounts
	switch {
	case lost, cs.State == kubecontainer.StateRunning && prev.State.Terminated != nil && prev.RestartCount >= cs.RestartCount:
		s.RestartCount = prev.RestartCount + 1
	default:
		s.RestartCount = max(cs.RestartCount, prev.RestartCount)
	}
	if prev.State.Terminated != nil && prev.ContainerID != s.ContainerID {
		s.LastTerminationState.Terminated = prev.State.Terminated
	} else if prev.LastTerminationState.Terminated != nil {
		s.LastTerminationState = prev.LastTerminationState
	}
	// So that a restart of the kubelet doesn't reset it. A container that was
	// restarted within one sync inherits it, too, until its startup probe's
	// next tick.
	if cs.State == kubecontainer.StateRunning {
		s.Started = prev.Started
	}
	return s
}

// state converts a runtime state. lost means that the container had been
// running and nobody knows how it ended.
// 137 stands for an end that nobody saw, as if the container had been killed.
func (g *generation) state(cs *kubecontainer.Status, prev *v1.ContainerStatus) (st v1.ContainerState, lost bool) {
	switch cs.State {
	case kubecontainer.StateRunning:
		started := apiTime(cs.StartedAt)
		if prev != nil && prev.State.Running != nil && prev.State.Running.StartedAt.Equal(&started) {
			st.Running = prev.State.Running
		} else {
			st.Running = &v1.ContainerStateRunning{StartedAt: started}
		}
	case kubecontainer.StateExited:
		t := v1.ContainerStateTerminated{
			ExitCode: cs.ExitCode, Reason: cs.Reason, Message: cs.Message,
			StartedAt: apiTime(cs.StartedAt), FinishedAt: apiTime(cs.FinishedAt),
		}
		st.Terminated = g.terminated(&t, cs.ID, prev)
	case kubecontainer.StateUnknown:
		if prev != nil && prev.State.Running != nil {
			reason := reasonStatusUnknown
			if g.restartingAll {
				reason = reasonRestartingAll
			}
			st.Terminated = &v1.ContainerStateTerminated{Reason: reason, Message: messageTerminated, ExitCode: exitUnknown}
			return st, true
		}
		st.Waiting = g.waitingState(prev, "", "")
	default:
		st.Waiting = g.waitingState(prev, "", "")
	}
	return st, false
}

// terminated returns t with its container ID, shared with prev where that
// says the same.
func (g *generation) terminated(t *v1.ContainerStateTerminated, id string, prev *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if prev != nil {
		for _, o := range [...]*v1.ContainerStateTerminated{prev.State.Terminated, prev.LastTerminationState.Terminated} {
			if o == nil || !g.isID(o.ContainerID, id) {
				continue
			}
			t.ContainerID = o.ContainerID
			if terminatedEqual(o, t) {
				return o
			}
		}
	}
	out := *t
	out.ContainerID = g.containerID(id, prev)
	return &out
}

// waiting turns a status into Waiting if the next sync starts the container
// and the last attempt failed.
// That is how CrashLoopBackOff and ErrImagePull become visible: the state of
// the run before moves to LastTerminationState. An init container that the
// runtime has no more, while a regular one is there, has done its work.
func (g *generation) waiting(s *v1.ContainerStatus, c *v1.Container, k kind, newest *kubecontainer.Status) {
	if k == initial {
		if newest != nil && newest.State == kubecontainer.StateExited && newest.ExitCode == 0 {
			return
		}
		if newest == nil && !kubecontainer.IsRestartableInit(c) && s.State.Waiting != nil && g.hasRegular() {
			s.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", Message: messageInitDone}}
			return
		}
	}
	if g.Env.Reason == nil || !kubecontainer.ShouldBeRestarted(c, g.Pod, g.Runtime) {
		return
	}
	reason, message, ok := g.Env.Reason(g.Pod.UID, c.Name)
	if !ok {
		return
	}
	if s.State.Terminated != nil {
		s.LastTerminationState = s.State
	}
	s.State = v1.ContainerState{Waiting: g.waitingState(findStatus(g.oldList(k), c.Name), reason.Error(), message)}
}

// oldList are the last statuses of a kind.
func (g *generation) oldList(k kind) []v1.ContainerStatus {
	switch k {
	case initial:
		return g.old.InitContainerStatuses
	case ephemeral:
		return g.old.EphemeralContainerStatuses
	}
	return g.old.ContainerStatuses
}

// hasRegular reports whether the runtime has any regular container of the pod.
func (g *generation) hasRegular() bool {
	for i := range g.Pod.Spec.Containers {
		s := g.Runtime.FindContainerStatusByName(g.Pod.Spec.Containers[i].Name)
		if s != nil && s.State != kubecontainer.StateUnknown {
			return true
		}
	}
	return false
}

// waitingState shares the last one where that says the same.
func (g *generation) waitingState(prev *v1.ContainerStatus, reason, message string) *v1.ContainerStateWaiting {
	if prev != nil && prev.State.Waiting != nil && prev.State.Waiting.Reason == reason && prev.State.Waiting.Message == message {
		return prev.State.Waiting
	}
	return &v1.ContainerStateWaiting{Reason: reason, Message: message}
}

// containerID returns the API's form of an ID, shared with prev if that is it.
func (g *generation) containerID(id string, prev *v1.ContainerStatus) string {
	if prev != nil && g.isID(prev.ContainerID, id) {
		return prev.ContainerID
	}
	return kubecontainer.ContainerID{Type: g.Env.RuntimeName, ID: id}.String()
}

// isID reports whether an ID of the API is the runtime's id, without a
// concatenation.
func (g *generation) isID(api, id string) bool {
	t := len(g.Env.RuntimeName)
	return len(api) == t+len("://")+len(id) && id != "" && api[:t] == g.Env.RuntimeName && api[t:t+3] == "://" && api[t+3:] == id
}

// mounts returns the volume mounts as a status shows them.
func (g *generation) mounts(c *v1.Container) []v1.VolumeMountStatus {
	if len(c.VolumeMounts) == 0 {
		return nil
	}
	out := make([]v1.VolumeMountStatus, 0, len(c.VolumeMounts))
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		s := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			if m.RecursiveReadOnly != nil && (*m.RecursiveReadOnly == v1.RecursiveReadOnlyEnabled ||
				*m.RecursiveReadOnly == v1.RecursiveReadOnlyIfPossible && g.Env.RecursiveReadOnly) {
				mode = v1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		out = append(out, s)
	}
	return out
}

// probes fills started and ready (upstream prober.Manager.UpdatePodStatus).
func (g *generation) probes(s *v1.PodStatus) {
	for i := range s.ContainerStatuses {
		g.probe(&s.ContainerStatuses[i], true)
	}
	for i := range s.InitContainerStatuses {
		c := &g.Pod.Spec.InitContainers[i]
		st := &s.InitContainerStatuses[i]
		if kubecontainer.IsRestartableInit(c) {
			g.probe(st, true)
			continue
		}
		g.probe(st, false)
		if t := st.State.Terminated; t != nil && t.ExitCode == 0 {
			st.Ready = true
		}
	}
}

// The two values of ContainerStatus.Started, shared by all statuses.
var (
	startedTrue  = true
	startedFalse = false
)

// probe fills one container's. Without a startup probe a running container has
// started; one that has a probe, whose result is not known yet, keeps what the
// last status said. A container without a readiness probe is ready once it has
// started. One that isn't ready has its probe run at once, since this status
// may be the news of its start.
func (g *generation) probe(st *v1.ContainerStatus, ready bool) {
	running := st.State.Running != nil
	was := st.Started != nil && *st.Started
	p := g.Env.Probes
	var id kubecontainer.ContainerID
	if p != nil {
		id = kubecontainer.ContainerID{Type: g.Env.RuntimeName, ID: strings.TrimPrefix(st.ContainerID, g.Env.RuntimeName+"://")}
	}
	started := running
	if running && ready && p != nil {
		if ok, known := p.Startup(id); known {
			started = ok
		} else {
			started = was || !p.HasStartupWorker(g.Pod.UID, st.Name)
		}
	}
	st.Started = &startedFalse
	if started {
		st.Started = &startedTrue
	}
	if !ready || !started {
		return
	}
	st.Ready = true
	if p == nil {
		return
	}
	ok, known := p.Readiness(id)
	if !known || !ok {
		worker := p.HasReadinessWorker(g.Pod.UID, st.Name)
		st.Ready = !worker
		if worker {
			p.TriggerReadiness(g.Pod.UID, st.Name)
		}
	}
	g.protect(st, known)
}

// protect keeps the readiness of a container that ran before the kubelet did
// as the API has it, until its probe was run often enough to say otherwise.
func (g *generation) protect(st *v1.ContainerStatus, known bool) {
	if known || !st.State.Running.StartedAt.Time.Before(g.Env.KubeletStart.Add(-startGrace)) {
		return
	}
	st.Ready = true
	if hasReadinessProbe(g.Pod, st.Name) {
		c := FindCondition(g.Pod.Status.Conditions, v1.PodReady)
		st.Ready = c != nil && c.Status == v1.ConditionTrue
	}
}

// hasReadinessProbe reports whether the container of that name has one.
func hasReadinessProbe(pod *v1.Pod, name string) bool {
	for _, list := range [...][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return list[i].ReadinessProbe != nil
			}
		}
	}
	return false
}

// apiTime is a time as the API keeps it: whole seconds, UTC.
func apiTime(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// findStatus returns the status of that name, or nil.
func findStatus(list []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// FindCondition returns the condition of that type, or nil.
func FindCondition(list []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}
