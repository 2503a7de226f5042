package status

import (
	"cmp"
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// mark has the next full batch look at an entry.
func (m *Manager) mark(e *entry) {
	if m.opts.Client == nil || e.inMarked {
		return
	}
	e.inMarked = true
	m.marked = append(m.marked, e)
	m.toSend.Grow()
}

// tick has a full batch run.
func (m *Manager) tick() {
	m.wantFull = true
	m.wake()
}

// wake has a task send, unless one does.
func (m *Manager) wake() {
	if m.g == nil || m.sending {
		return
	}
	m.sending = true
	m.g.Start("status", m.run)
}

// send runs batches until nobody wants one.
func (m *Manager) send(ctx context.Context) {
	defer m.sent()
	m.wantPartial = m.wantPartial || !m.wantFull
	for m.wantPartial || m.wantFull {
		full := !m.wantPartial
		if full {
			m.wantFull = false
		} else {
			m.wantPartial = false
		}
		list := m.batch(full)
		for i := range list {
			m.sync(ctx, &list[i])
		}
		m.full.Settle()
	}
}

// keptUpdates is for how many updates there is always memory.
const keptUpdates = 4

// sent ends send, also when its task is killed.
func (m *Manager) sent() {
	m.sending = false
	clear(m.updates)
	if m.updates = m.updates[:0]; cap(m.updates) > keptUpdates {
		m.updates = nil
	}
}

// update is what one entry's send is about: its state when the batch began.
type update struct {
	e        *entry
	apiUID   types.UID
	status   *v1.PodStatus
	room     *v1.Pod
	version  uint64
	finished bool
	since    int64
}

// sentTo reports whether the newest version has reached the pod of that UID.
func (e *entry) sentTo(apiUID types.UID) bool {
	return e.sentUID == apiUID && e.sentVersion >= e.version
}

// enqueue has the next partial batch look at an entry.
func (m *Manager) enqueue(e *entry) {
	if !e.inUnsent {
		e.inUnsent = true
		m.unsent = append(m.unsent, e)
	}
}

// batch lists what is to be sent, by the time of its first change, then UID. A
// static pod without a mirror waits for one. The list is good until the next
// batch.
func (m *Manager) batch(full bool) []update {
	m.unsent = keep(m.unsent, func(e *entry) bool {
		e.inUnsent = !e.gone && !e.sentTo(m.apiUID(e))
		return e.inUnsent
	})
	list := m.unsent
	if full {
		m.marked = keep(m.marked, func(e *entry) bool {
			e.inMarked = !e.gone && m.needsLook(e)
			return e.inMarked
		})
		list = m.marked
	}
	clear(m.updates)
	out := m.updates[:0]
	for _, e := range list {
		if apiUID := m.apiUID(e); apiUID != "" {
			out = append(out, update{e: e, apiUID: apiUID, status: e.status, room: e.room, version: e.version, finished: e.finished, since: e.firstUnsent})
		}
	}
	slices.SortFunc(out, func(a, b update) int {
		if c := cmp.Compare(a.since, b.since); c != 0 {
			return c
		}
		return strings.Compare(string(a.e.uid), string(b.e.uid))
	})
	m.updates = out
	return out
}

// keep filters a list in place; an empty one keeps no more memory than
// keptUpdates need.
func keep(list []*entry, want func(*entry) bool) []*entry {
	list = slices.DeleteFunc(list, func(e *entry) bool { return !want(e) })
	if len(list) == 0 && cap(list) > keptUpdates {
		return nil
	}
	return list
}

// needsLook reports whether a full batch sends an entry.
func (m *Manager) needsLook(e *entry) bool {
	apiUID := m.apiUID(e)
	if !e.sentTo(apiUID) {
		return true
	}
	if pod, ok := m.opts.PodManager.GetPodByUID(apiUID); ok && canBeDeleted(pod, e.finished) {
		return true
	}
	if m.needsReconcile(e) {
		e.sentVersion = 0
		return true
	}
	return false
}

// apiUID is the UID by which the API knows the entry's pod: for a static pod
// its mirror's; "" if it has none.
func (m *Manager) apiUID(e *entry) types.UID {
	if !e.static {
		return e.uid
	}
	if mirror, ok := m.opts.PodManager.MirrorUID(e.uid); ok {
		return mirror
	}
	if _, known := m.opts.PodManager.GetPodByUID(e.uid); known {
		return ""
	}
	return e.sentUID // removed, and still ending: its mirror goes last
}

// needsReconcile reports whether somebody changed what the kubelet owns of the
// status, as far as the pod manager's object shows.
func (m *Manager) needsReconcile(e *entry) bool {
	pod, ok := m.opts.PodManager.GetPodByUID(e.uid)
	if !ok {
		return false
	}
	if kubetypes.IsStaticPod(pod) {
		if pod, ok = m.opts.PodManager.GetMirrorPodByPod(pod); !ok {
			return false
		}
	}
	if equalByKubelet(&pod.Status, e.status) {
		return false
	}
	s := pod.Status
	normalize(pod, &s)
	return !equalByKubelet(&s, e.status)
}

// canBeDeleted reports whether a pod has ended for good.
func canBeDeleted(pod *v1.Pod, finished bool) bool {
	return finished && pod.DeletionTimestamp != nil && kubetypes.IsTerminalPhase(pod.Status.Phase) && !kubetypes.IsMirrorPod(pod)
}

// sync sends one status. What fails is tried again by the next batch.
// It asks for the pod first, as upstream does, although the pod manager has
// one: the patch is made against what the API has now.
func (m *Manager) sync(ctx context.Context, u *update) {
	e := u.e
	pod, err := m.opts.Client.GetPod(ctx, e.namespace, e.name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return // the entry goes with the pod
		}
		m.log("getting pod %s/%s for its status: %v", e.namespace, e.name, err)
		return
	}
	if m.opts.PodManager.TranslatePodUID(pod.UID) != e.uid {
		m.log("pod %s/%s was deleted and recreated, its old status is dropped", e.namespace, e.name)
		m.forget(e)
		return
	}
	// A newer status has come meanwhile: if the pod ends, how is its to say. It
	// follows, and a phase that has ended never changes.
	running := kubetypes.IsTerminalPhase(u.status.Phase) && // only then it matters
		(e.version > u.version || m.opts.DeletionSafety.PodCouldHaveRunningContainers(pod))
	merged := merge(&pod.Status, u.status, running, metav1.Time{Time: m.opts.Loop.Now()})
	if !identical(&pod.Status, merged) {
		room := u.room
		if merged != u.status {
			room = nil
		}
		patched, err := m.opts.Client.PatchPodStatus(ctx, e.namespace, e.name, pod.UID, &pod.Status, merged, room)
		if err != nil {
			m.log("patching the status of pod %s/%s: %v", e.namespace, e.name, err)
			return
		}
		pod = patched
	}
	m.opts.Metrics.StatusSent(m.opts.Loop.UnixNano() - e.firstUnsent)
	e.sentUID, e.sentVersion = u.apiUID, u.version
	m.progressed()
	if !canBeDeleted(pod, u.finished) {
		return
	}
	uid, zero := pod.UID, int64(0)
	err = m.opts.Client.DeletePod(ctx, pod.Namespace, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero,
		Preconditions:      &metav1.Preconditions{UID: &uid},
	})
	if err != nil {
		m.log("deleting pod %s/%s: %v", pod.Namespace, pod.Name, err)
		return
	}
	m.forget(e)
}

// merge puts the kubelet's status over the API's (upstream mergePodStatus):
// what others own stays, and a phase is not terminal while a container may run.
// If others own nothing it is the kubelet's itself, which nobody writes to.
func merge(api, own *v1.PodStatus, mayRun bool, now metav1.Time) *v1.PodStatus {
	if !kubetypes.IsTerminalPhase(own.Phase) && !claimed(api) && !claimed(own) && onlyOwned(api.Conditions) && onlyOwned(own.Conditions) {
		return own
	}
	s := *own
	ends := kubetypes.IsTerminalPhase(own.Phase) && !kubetypes.IsTerminalPhase(api.Phase)
	if kubetypes.IsTerminalPhase(own.Phase) || !onlyOwned(api.Conditions) || !onlyOwned(own.Conditions) {
		s.Conditions = mergeConditions(api.Conditions, own.Conditions, ends && !mayRun, now)
	} // else the list stays that of own
	s.ResourceClaimStatuses = api.ResourceClaimStatuses
	s.ExtendedResourceClaimStatus = api.ExtendedResourceClaimStatus
	s.NodeAllocatableResourceClaimStatuses = api.NodeAllocatableResourceClaimStatuses
	if ends && mayRun {
		s.Phase, s.Reason, s.Message = api.Phase, api.Reason, api.Message
	}
	if kubetypes.IsTerminalPhase(s.Phase) {
		unready(s.Conditions, s.Phase, now)
	}
	return &s
}

// onlyOwned reports whether all of the conditions are the kubelet's alone.
func onlyOwned(list []v1.PodCondition) bool {
	for i := range list {
		if !ownedByKubelet(list[i].Type) {
			return false
		}
	}
	return true
}

// mergeConditions returns a list of its own: what others own of the API's
// conditions, and what the kubelet owns of its own. Those that both write are
// taken over if shared says so.
func mergeConditions(api, own []v1.PodCondition, shared bool, now metav1.Time) []v1.PodCondition {
	out := make([]v1.PodCondition, 0, len(own)+foreign(api)) // the API may keep it
	for i := range api {
		if !ownedByKubelet(api[i].Type) {
			out = append(out, api[i])
		}
	}
	for i := range own {
		switch c := &own[i]; {
		case ownedByKubelet(c.Type):
			out = append(out, *c)
		case shared && sharedWithKubelet(c.Type):
			out = mergeShared(out, *c, now)
		}
	}
	return out
}

// foreign is how many conditions are not the kubelet's, nor shared with it.
func foreign(list []v1.PodCondition) (n int) {
	for i := range list {
		if t := list[i].Type; !ownedByKubelet(t) && !sharedWithKubelet(t) {
			n++
		}
	}
	return n
}

// mergeShared takes a condition over that others may have written, too; its
// transition time moves only with its status.
func mergeShared(list []v1.PodCondition, c v1.PodCondition, now metav1.Time) []v1.PodCondition {
	have := FindCondition(list, c.Type)
	c.LastTransitionTime = apiTime(now.Time)
	if have == nil {
		return append(list, c)
	}
	if have.Status == c.Status {
		c.LastTransitionTime = have.LastTransitionTime
	}
	*have = c
	return list
}

// unready makes a pod that has ended not ready.
// Endpoints go by these conditions, so they must not outlive the pod.
func unready(list []v1.PodCondition, phase v1.PodPhase, now metav1.Time) {
	reason := reasonPodCompleted
	if phase == v1.PodFailed {
		reason = reasonPodFailed
	}
	for _, t := range [...]v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		if c := FindCondition(list, t); c != nil && c.Status == v1.ConditionTrue {
			c.Status, c.Reason, c.Message = v1.ConditionFalse, reason, ""
			c.LastTransitionTime = apiTime(now.Time)
		}
	}
}
