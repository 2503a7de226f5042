package status

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// syncPeriod is the time between two looks at all statuses.
const syncPeriod = 10 * time.Second

// PodManager is what the manager asks of the pod manager. Pods are shared.
type PodManager interface {
	// GetPodByUID returns a regular or static pod by its own UID.
	GetPodByUID(uid types.UID) (*v1.Pod, bool)
	// GetMirrorPodByPod returns the mirror of a static pod.
	GetMirrorPodByPod(pod *v1.Pod) (*v1.Pod, bool)
	// TranslatePodUID turns a mirror's UID into its static pod's; any other
	// stays.
	TranslatePodUID(uid types.UID) types.UID
	// MirrorUID returns the UID of a static pod's mirror, if both are known.
	MirrorUID(static types.UID) (types.UID, bool)
}

// DeletionSafety tells what the pod workers know of a pod.
type DeletionSafety interface {
	// PodCouldHaveRunningContainers is false once the pod's containers are
	// stopped for good. The pod is the API's (for a static pod: the mirror).
	PodCouldHaveRunningContainers(pod *v1.Pod) bool
}

// PodClient is what the manager needs of the API.
type PodClient interface {
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// PatchPodStatus sends the difference of two statuses. room, if not nil, is a
	// pod that has nothing but status in it. The client may make the API's object
	// of it, as long as it has no name yet: the caller looks at the status only.
	PatchPodStatus(ctx context.Context, namespace, name string, uid types.UID, base, status *v1.PodStatus, room *v1.Pod) (*v1.Pod, error)
	DeletePod(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) error
}

// Options configure a Manager.
type Options struct {
	// Metrics counts; nil: nobody does.
	Metrics *metrics.Kubelet
	Loop    *loop.Loop
	// Client is nil in standalone mode: statuses are kept and never sent.
	Client         PodClient
	PodManager     PodManager
	DeletionSafety DeletionSafety
	// Log is told what goes wrong; nil: nobody is.
	Log func(format string, args ...any)
}

// Manager keeps the newest status of each pod and brings it to the API. It is
// for use on one loop.
type Manager struct {
	opts Options
	g    *loop.Group
	pods map[types.UID]*entry
	// unsent are the entries with a version that was not sent. marked are those
	// that the next full batch looks at: whose cached status or pod object
	// changed since they last needed nothing. All that a full batch decides by
	// is the entry and the pod manager's object, so an entry that needed
	// nothing needs nothing until one of them changes: looking at the marked
	// ones is looking at all.
	unsent []*entry
	marked []*entry

	// resizes has the pods that have conditions about resizes, nearly none.
	resizes map[types.UID]resizeConditions

	// onChange is told whose cached status is a new one.
	onChange func(uid types.UID)
	// Shared, if set, is told that a cached status is another object by now,
	// which says the same.
	Shared func(uid types.UID, old, status *v1.PodStatus)

	// version grows with every change of a cached status.
	version     loop.Version
	full        *loop.Periodic // the full batch's clock
	toSend      loop.Version   // grows with each entry that is marked
	wantPartial bool
	wantFull    bool
	sending     bool
	run         func(context.Context) // send, as a function
	updates     []update              // of the batch being sent: memory for the next
	// progress is Flush's; nil: nobody waits.
	progress *loop.Signal
}

// entry is the cached status of one pod.
type entry struct {
	uid             types.UID
	namespace, name string
	// status is shared: it is replaced, never written to.
	status *v1.PodStatus
	// room is the pod that status was made in, for PodClient.PatchPodStatus; nil
	// if it is in another.
	room    *v1.Pod
	version uint64
	// firstUnsent is when the oldest change that was not sent came in, in ns.
	firstUnsent int64
	// sentVersion is the version last sent to the pod sentUID of the API (a
	// static pod's mirror may be replaced by another).
	sentVersion uint64
	sentUID     types.UID

	static, finished, gone bool
	inUnsent, inMarked     bool
}

// New returns a manager that sends nothing until Start.
func New(opts Options) *Manager {
	m := &Manager{opts: opts, pods: map[types.UID]*entry{}}
	m.run = m.send
	return m
}

// Start has statuses sent by a task of g, which exists while there is
// something to send. Without a client it does nothing.
func (m *Manager) Start(g *loop.Group) {
	if m.opts.Client == nil {
		return
	}
	m.g = g
	m.full = g.Every("status-sync", syncPeriod, 0, m.tick)
	m.elide()
	if len(m.unsent) > 0 {
		m.wake()
	}
}

// Version grows with every change of a cached status.
func (m *Manager) Version() *loop.Version { return &m.version }

// OnStatusChange has fn called with the UID of each pod that gets a new status, or
// has none any more.
func (m *Manager) OnStatusChange(fn func(uid types.UID)) { m.onChange = fn }

// GetPodStatus returns a pod's cached status, which is shared; a mirror's UID
// means its static pod.
func (m *Manager) GetPodStatus(uid types.UID) (*v1.PodStatus, bool) {
	e := m.pods[m.opts.PodManager.TranslatePodUID(uid)]
	if e == nil {
		return nil, false
	}
	return e.status, true
}

// PodStatus returns a pod's cached status, or else the one that the API has.
func (m *Manager) PodStatus(pod *v1.Pod) *v1.PodStatus {
	if s, ok := m.GetPodStatus(pod.UID); ok {
		return s
	}
	return &pod.Status
}

// SetPodStatus stores a pod's new status and has it sent if it says something
// new. The status is shared from now on; its conditions, unless they are the
// list of the cached status or of the pod, are to be nobody else's, since their
// transition times are set here. A deleted pod's is always sent anew.
func (m *Manager) SetPodStatus(pod *v1.Pod, status v1.PodStatus) {
	status.ObservedGeneration = pod.Generation
	m.store(pod, &status, pod.DeletionTimestamp != nil, false)
}

// SetReadyToStartContainers makes PodReadyToStartContainers true in a pod's
// status, in the middle of a sync: its sandbox is ready.
func (m *Manager) SetReadyToStartContainers(pod *v1.Pod) {
	status := pod.Status
	if e := m.pods[pod.UID]; e != nil {
		status = *e.status
	}
	status.Conditions = withCondition(status.Conditions, v1.PodCondition{
		Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation})
	m.SetPodStatus(pod, status)
}

// SetContainerReadiness sets a container's readiness, as a probe found it, and
// what follows from it for the pod. It is ignored for a container that the
// cached status doesn't have.
func (m *Manager) SetContainerReadiness(uid types.UID, id kubecontainer.ContainerID, ready bool) {
	var status v1.PodStatus
	pod, c := m.findContainer(uid, id, &status)
	if pod == nil || c.status().Ready == ready {
		return
	}
	c.copied().Ready = ready
	cr := containersReady(&pod.Spec, status.InitContainerStatuses, status.ContainerStatuses, status.Phase)
	cr.ObservedGeneration = pod.Generation
	status.Conditions = withCondition(status.Conditions, readyCondition(&pod.Spec, status.Conditions, &cr))
	status.Conditions = putCondition(status.Conditions, cr)
	m.store(pod, &status, false, false)
}

// SetContainerStartup sets whether a container has started, as a probe found
// it.
func (m *Manager) SetContainerStartup(uid types.UID, id kubecontainer.ContainerID, started bool) {
	var status v1.PodStatus
	pod, c := m.findContainer(uid, id, &status)
	if pod == nil {
		return
	}
	if was := c.status().Started; was != nil && *was == started {
		return
	}
	value := &startedFalse
	if started {
		value = &startedTrue
	}
	c.copied().Started = value
	m.store(pod, &status, false, false)
}

// containerAt is the place of a container's status in a pod's.
type containerAt struct {
	list *[]v1.ContainerStatus
	i    int
}

func (c containerAt) status() *v1.ContainerStatus { return &(*c.list)[c.i] }

// copied is the container's status in a copy of its list, which takes the
// list's place.
func (c containerAt) copied() *v1.ContainerStatus {
	*c.list = slices.Clone(*c.list)
	return c.status()
}

// findContainer makes s a copy of the pod's status, whose lists are shared, and
// finds the container in it; no pod if either is not known.
func (m *Manager) findContainer(uid types.UID, id kubecontainer.ContainerID, s *v1.PodStatus) (*v1.Pod, containerAt) {
	pod, ok := m.opts.PodManager.GetPodByUID(uid)
	e := m.pods[uid]
	if !ok || e == nil {
		m.log("pod %s or its status is not known, dropped a probe's result for %s", uid, id)
		return nil, containerAt{}
	}
	*s = *e.status
	for _, list := range [...]*[]v1.ContainerStatus{&s.ContainerStatuses, &s.InitContainerStatuses, &s.EphemeralContainerStatuses} {
		for i := range *list {
			if bears((*list)[i].ContainerID, id) {
				return pod, containerAt{list: list, i: i}
			}
		}
	}
	m.log("container %s is not in the status of pod %s, dropped a probe's result", id, uid)
	return nil, containerAt{}
}

// bears reports whether the text of the API is that of the ID.
func bears(text string, id kubecontainer.ContainerID) bool {
	kind, rest, ok := strings.Cut(text, "://")
	return ok && kind == id.Type && rest == id.ID
}

// TerminatePod says that a pod's containers are stopped and its resources are
// released: containers that nobody has seen end get an end, the phase becomes
// terminal, and the pod may be deleted.
func (m *Manager) TerminatePod(pod *v1.Pod) {
	old := &pod.Status
	if e := m.pods[pod.UID]; e != nil {
		old = e.status
	}
	status := *old
	if hasBeenInitialized(pod) {
		status.ContainerStatuses = endAll(status.ContainerStatuses)
	}
	if n := initEnd(status.InitContainerStatuses); n > 0 {
		ended := endAll(status.InitContainerStatuses[:n])
		status.InitContainerStatuses = append(ended[:n:n], status.InitContainerStatuses[n:]...)
	}
	if !kubetypes.IsStaticPod(pod) && !kubetypes.IsTerminalPhase(status.Phase) {
		status.Phase = v1.PodFailed
	}
	m.store(pod, &status, true, true)
}

// endAll gives every container that has not ended an unknown end.
func endAll(list []v1.ContainerStatus) []v1.ContainerStatus {
	copied := false
	for i := range list {
		if list[i].State.Terminated != nil {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		list[i].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: reasonStatusUnknown, Message: messageTerminated, ExitCode: exitUnknown}}
	}
	return list
}

// initEnd returns how many init containers were reached: all but the last ones
// that wait and have never ended, but at least the first.
func initEnd(list []v1.ContainerStatus) int {
	n := len(list)
	for n > 1 && list[n-1].State.Waiting != nil && list[n-1].LastTerminationState.Terminated == nil {
		n--
	}
	return n
}

// hasBeenInitialized tells, from the API's status, whether the pod's regular
// containers were reached (upstream hasPodInitialized).
func hasBeenInitialized(pod *v1.Pod) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.LastTerminationState.Terminated != nil || s.State.Waiting == nil {
			return true
		}
	}
	n := len(pod.Status.InitContainerStatuses)
	if n == 0 || n > len(pod.Spec.InitContainers) {
		return false
	}
	s, c := &pod.Status.InitContainerStatuses[n-1], &pod.Spec.InitContainers[n-1]
	switch {
	case c.Name != s.Name: // a status of something else
		return false
	case kubecontainer.IsRestartableInit(c):
		return s.State.Running != nil && s.Started != nil && *s.Started
	}
	if t := s.LastTerminationState.Terminated; t != nil && t.ExitCode == 0 {
		return true
	}
	t := s.State.Terminated
	return t != nil && t.ExitCode == 0
}

// PodChanged says that the pod manager's object of a pod, or its mirror, was
// added, replaced or removed. Either's UID does. Every such change must be
// told: the full batch looks at no pod of which it heard nothing.
func (m *Manager) PodChanged(uid types.UID) {
	e := m.pods[m.opts.PodManager.TranslatePodUID(uid)]
	if e == nil || m.opts.Client == nil {
		return
	}
	if !e.sentTo(m.apiUID(e)) { // a static pod's mirror was replaced
		m.enqueue(e)
	}
	m.share(e)
	m.mark(e)
}

// share makes the status in the API's object the cached one if it says exactly
// the same, so that there is one in memory.
func (m *Manager) share(e *entry) {
	pod, ok := m.opts.PodManager.GetPodByUID(e.uid)
	if !ok || e.static || e.status == &pod.Status || claimed(e.status) || claimed(&pod.Status) || !identical(e.status, &pod.Status) {
		return
	}
	old := e.status
	e.status, e.room = &pod.Status, nil
	if m.Shared != nil {
		m.Shared(e.uid, old, e.status)
	}
}

// claimed reports whether a status has anything about claims, which identical
// does not look at.
func claimed(s *v1.PodStatus) bool {
	return s.ResourceClaimStatuses != nil || s.ExtendedResourceClaimStatus != nil || s.NodeAllocatableResourceClaimStatuses != nil
}

// RemoveOrphanedStatuses forgets the pods that are not known any more.
func (m *Manager) RemoveOrphanedStatuses(known func(uid types.UID) bool) {
	for uid, e := range m.pods { //drydock:unordered removes from a set
		if !known(uid) {
			m.forget(e)
		}
	}
}

func (m *Manager) forget(e *entry) {
	e.gone = true // the lists drop it at their next batch
	delete(m.resizes, e.uid)
	if m.pods[e.uid] == e {
		delete(m.pods, e.uid)
	}
	m.changed(e)
	m.progressed()
}

// changed tells that a pod's cached status is another one, or gone.
func (m *Manager) changed(e *entry) {
	m.version.Grow()
	if m.onChange != nil {
		m.onChange(e.uid)
	}
}

// store is the one way into the cache (upstream updateStatusInternal). The
// status is the caller's own struct; what it points to is shared.
func (m *Manager) store(pod *v1.Pod, s *v1.PodStatus, force, finished bool) {
	e := m.pods[pod.UID]
	old := m.oldStatus(pod, e)
	shared := sameList(s.Conditions, old.Conditions) || sameList(s.Conditions, pod.Status.Conditions)
	if old.StartTime != nil {
		s.StartTime = old.StartTime
	}
	s.ObservedGeneration = max(s.ObservedGeneration, old.ObservedGeneration)
	if e != nil && !force && equalByKubelet(old, s) {
		return
	}
	if why := illegalTransition(pod, old, s); why != "" {
		m.log("pod %s/%s: status update dropped: %s", pod.Namespace, pod.Name, why)
		return
	}
	now := metav1.Time{Time: m.opts.Loop.Now()}
	if s.StartTime.IsZero() {
		s.StartTime = new(apiTime(now.Time))
	}
	if shared {
		s.Conditions = slices.Clone(s.Conditions)
	}
	setTransitions(s.Conditions, old.Conditions, now)
	normalize(pod, s)
	if e != nil && !force && equalByKubelet(old, s) {
		return
	}
	if e == nil {
		e = &entry{uid: pod.UID, namespace: pod.Namespace, name: pod.Name, static: kubetypes.IsStaticPod(pod)}
		m.pods[pod.UID] = e
	}
	if e.sentVersion >= e.version {
		e.firstUnsent = now.UnixNano()
	}
	m.countEnds(old.InitContainerStatuses, s.InitContainerStatuses, metrics.InitContainer)
	m.countEnds(old.ContainerStatuses, s.ContainerStatuses, metrics.Container)
	m.countEnds(old.EphemeralContainerStatuses, s.EphemeralContainerStatuses, metrics.EphemeralContainer)
	e.setStatus(s, m.opts.Client != nil)
	e.version++
	m.changed(e)
	e.finished = finished || e.finished && !kubetypes.IsStaticPod(pod)
	if m.opts.Client == nil {
		return
	}
	m.enqueue(e)
	m.mark(e)
	m.wantPartial = true
	m.wake()
}

// countEnds counts the containers that are terminated now and were not before.
func (m *Manager) countEnds(old, list []v1.ContainerStatus, of metrics.ContainerType) {
	for i := range list {
		end := list[i].State.Terminated
		if end == nil || slices.ContainsFunc(old, func(o v1.ContainerStatus) bool { return o.Name == list[i].Name && o.State.Terminated != nil }) {
			continue
		}
		m.opts.Metrics.Ended(of, end.ExitCode, end.Reason)
	}
}

// setStatus takes a copy of s, in one piece with the API's object to be if it is
// to be sent.
func (e *entry) setStatus(s *v1.PodStatus, send bool) {
	s.Conditions = slices.Clip(s.Conditions)
	if !send {
		e.status = new(*s)
		return
	}
	e.room = &v1.Pod{Status: *s}
	e.status = &e.room.Status
}

func (m *Manager) oldStatus(pod *v1.Pod, e *entry) *v1.PodStatus {
	if e != nil {
		return e.status
	}
	if kubetypes.IsStaticPod(pod) {
		if mirror, ok := m.opts.PodManager.GetMirrorPodByPod(pod); ok {
			return &mirror.Status
		}
	}
	return &pod.Status
}

// sameList reports whether two lists are in the same memory.
func sameList(a, b []v1.PodCondition) bool {
	return len(a) > 0 && len(b) > 0 && &a[0] == &b[0]
}

// setTransitions sets the transition times of the conditions that the manager
// keeps them for.
func setTransitions(list, old []v1.PodCondition, now metav1.Time) {
	now = apiTime(now.Time)
	for i := range list {
		c := &list[i]
		if !managedTransition(c.Type) {
			continue
		}
		c.LastTransitionTime = now
		if o := FindCondition(old, c.Type); o != nil && o.Status == c.Status {
			c.LastTransitionTime = o.LastTransitionTime
		}
	}
}

// withCondition returns a copy of the list with c in place of its type's.
func withCondition(list []v1.PodCondition, c v1.PodCondition) []v1.PodCondition {
	n := len(list)
	if FindCondition(list, c.Type) == nil {
		n++
	}
	out := make([]v1.PodCondition, 0, n) // the API may keep it
	return putCondition(append(out, list...), c)
}

// putCondition puts c in place of its type's in the list itself.
func putCondition(list []v1.PodCondition, c v1.PodCondition) []v1.PodCondition {
	if have := FindCondition(list, c.Type); have != nil {
		*have = c
		return list
	}
	return append(list, c)
}

// illegalTransition tells why a container may not go from ended to not ended,
// or "" (upstream checkContainerStateTransition).
func illegalTransition(pod *v1.Pod, old, s *v1.PodStatus) string {
	if pod.Spec.RestartPolicy == v1.RestartPolicyAlways || kubecontainer.HasRestartAllRule(pod) {
		return ""
	}
	for i := range pod.Spec.Containers {
		if why := illegalState(pod, &pod.Spec.Containers[i], old.ContainerStatuses, s.ContainerStatuses); why != "" {
			return why
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if kubecontainer.IsRestartableInit(c) {
			continue
		}
		if why := illegalState(pod, c, old.InitContainerStatuses, s.InitContainerStatuses); why != "" {
			return why
		}
	}
	return ""
}

func illegalState(pod *v1.Pod, c *v1.Container, old, list []v1.ContainerStatus) string {
	o := findStatus(old, c.Name)
	if o == nil || o.State.Terminated == nil {
		return ""
	}
	n := findStatus(list, c.Name)
	if n == nil || n.State.Terminated != nil {
		return ""
	}
	code := o.State.Terminated.ExitCode
	if pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure && code != 0 || kubecontainer.ShouldRestart(c, pod, code) {
		return ""
	}
	return "terminated container " + c.Name + " attempted illegal transition to non-terminated state"
}

func (m *Manager) log(format string, args ...any) {
	if m.opts.Log != nil {
		m.opts.Log(format, args...)
	}
}
