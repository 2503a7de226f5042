package allocation

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// PushPendingResize has a pod's resize decided by the next retry.
func (m *Manager) PushPendingResize(uid types.UID) {
	if slices.Contains(m.pending, uid) {
		return
	}
	m.pending = append(m.pending, uid)
	m.sortPending()
	m.arm()
}

// HasPendingResizes reports whether a resize waits for its decision.
func (m *Manager) HasPendingResizes() bool { return len(m.pending) > 0 }

// resizeOrder is what the order of pending resizes goes by.
type resizeOrder struct {
	uid        types.UID
	increases  bool
	priority   int32
	guaranteed bool
	since      time.Time // zero: not pending yet
}

// sortPending orders the pending resizes: first those that ask for no more than
// the pod has, then by priority, Guaranteed ones before others, and the longest
// waiting first.
func (m *Manager) sortPending() {
	list := make([]resizeOrder, 0, len(m.pending))
	for _, uid := range m.pending {
		o := resizeOrder{uid: uid}
		if pod, ok := m.o.PodByUID(uid); ok {
			allocated, _ := m.UpdatePodFromAllocation(pod)
			o.increases = increases(pod, allocated)
			if pod.Spec.Priority != nil {
				o.priority = *pod.Spec.Priority
			}
			o.guaranteed = qos.Class(pod) == v1.PodQOSGuaranteed
		}
		if pending, _ := m.o.Status.PodResizeConditions(uid); pending != nil {
			o.since = pending.LastTransitionTime.Time
		}
		list = append(list, o)
	}
	slices.SortStableFunc(list, compareResizes)
	for i := range list {
		m.pending[i] = list[i].uid
	}
}

// compareResizes orders waiting resizes, since what is left may not be enough for
// all: those that only give back first, then by priority, Guaranteed pods, and
// how long they have waited (KEP-1287).
func compareResizes(a, b resizeOrder) int {
	first := func(x, y bool) int { // x first
		switch {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	}
	return cmp.Or(
		first(!a.increases, !b.increases),
		cmp.Compare(b.priority, a.priority),
		first(a.guaranteed, b.guaranteed),
		first(!a.since.IsZero(), !b.since.IsZero()),
		a.since.Compare(b.since),
	)
}

// increases reports whether a pod asks for more cpu or memory than it was
// allocated.
func increases(pod, allocated *v1.Pod) bool {
	want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	have := resourcehelper.PodRequests(allocated, resourcehelper.PodResourcesOptions{})
	return want.Cpu().Cmp(*have.Cpu()) > 0 || want.Memory().Cmp(*have.Memory()) > 0
}

// RetryPendingResizes decides about the pending resizes, in their order; those
// that do not fit stay pending, those that never can are dropped (upstream
// RetryPendingResizes). It may wait. trigger is for the log.
func (m *Manager) RetryPendingResizes(ctx context.Context, trigger string) {
	m.since = m.o.Loop.UnixNano()
	if !m.o.SourcesReady() {
		m.delay = initialRetryDelay
		m.arm()
		return
	}
	m.delay = retryDelay
	if len(m.pending) == 0 {
		return
	}
	tried := m.pending
	m.pending = nil
	var kept []types.UID
	for _, uid := range tried {
		pod, ok := m.o.PodByUID(uid)
		if !ok || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		if m.retry(ctx, pod, trigger) {
			kept = append(kept, uid)
		}
	}
	// What was pushed meanwhile comes after those that were there before.
	for _, uid := range m.pending {
		if !slices.Contains(kept, uid) {
			kept = append(kept, uid)
		}
	}
	m.pending = kept
	m.arm()
}

// retry decides about one resize; it reports whether that stays pending.
func (m *Manager) retry(ctx context.Context, pod *v1.Pod, trigger string) (keep bool) {
	oldPending, oldProgress := m.o.Status.PodResizeConditions(pod.UID)
	allocated := m.handleResize(ctx, pod)
	pending, progress := m.o.Status.PodResizeConditions(pod.UID)
	if allocated || !sameCondition(oldPending, pending) || !sameCondition(oldProgress, progress) {
		m.log("Pod resize was decided pod=%s/%s trigger=%s allocated=%t", pod.Namespace, pod.Name, trigger, allocated)
		m.o.Sync(pod)
	}
	return pending != nil && pending.Reason == v1.PodReasonDeferred
}

// sameCondition compares what a condition says, not when.
func sameCondition(a, b *v1.PodCondition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration
}

// handleResize decides about the resize of one pod, if it asks for one; it
// reports whether the pod has got what it asks for.
func (m *Manager) handleResize(ctx context.Context, pod *v1.Pod) bool {
	e := m.state.Get(pod.UID)
	allocatedPod, updated := m.UpdatePodFromAllocation(pod)
	if !updated {
		m.o.Status.ClearPodResizePending(pod.UID)
		if e != nil {
			m.settle(pod.UID, e)
		}
		return false
	}
	r := m.canResize(ctx, pod, allocatedPod)
	if now, ok := m.o.PodByUID(pod.UID); !ok || now != pod && !sharesSpec(now, pod) || m.state.Get(pod.UID) != e {
		return false // it changed while a handler waited; whoever changed it has it tried
	}
	if r.Admit {
		e.Allocate(state.Of(pod))
		m.o.Status.ClearPodResizePending(pod.UID)
		m.o.Status.ClearPodResizeInProgress(pod.UID)
		m.o.Status.SetPodResizeInProgress(pod.UID, "", "", pod.Generation)
		m.checkpoint()
		m.o.Event(pod, v1.EventTypeNormal, events.ResizeStarted, ResizeMessage("started", pod, pod.Generation, ""))
		return true
	}
	reason, event := v1.PodReasonDeferred, events.ResizeDeferred
	if r.Reason == v1.PodReasonInfeasible {
		reason, event = v1.PodReasonInfeasible, events.ResizeInfeasible
	}
	if m.o.Status.SetPodResizePending(pod.UID, reason, r.Message, pod.Generation) {
		m.o.Event(pod, v1.EventTypeWarning, event, ResizeMessage(reason, pod, pod.Generation, r.Message))
	}
	return false
}

// canResize judges a resize beside all other pods with what they were
// allocated.
func (m *Manager) canResize(ctx context.Context, pod, allocated *v1.Pod) lifecycle.PodAdmitResult {
	if r := m.o.Limits.admit(pod, allocated); !r.Admit {
		return r
	}
	others := func() []*v1.Pod {
		all := m.AllocatedPods(m.o.ActivePods())
		return slices.DeleteFunc(all, func(o *v1.Pod) bool { return o.UID == pod.UID })
	}
	return m.o.Handlers.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others})
}

// ClearPendingResize says that a pod's spec is its allocation again.
func (m *Manager) ClearPendingResize(pod *v1.Pod) {
	m.o.Status.ClearPodResizePending(pod.UID)
	if e := m.state.Get(pod.UID); e != nil {
		m.settle(pod.UID, e)
	}
}

// arm sets the clock of retries, if there is anything to retry: its ticks are
// at every delay after the last retry, whether or not there was anything.
func (m *Manager) arm() {
	if !m.started || len(m.pending) == 0 {
		return
	}
	next := m.since + int64(m.delay)
	if now := m.o.Loop.UnixNano(); next <= now {
		next += (now - next + int64(m.delay)) / int64(m.delay) * int64(m.delay)
	}
	m.ticker.Reset(time.Duration(next - m.o.Loop.UnixNano()))
}
