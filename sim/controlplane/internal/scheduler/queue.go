package scheduler

import (
	"container/heap"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"
)

// The queue's times (pkg/scheduler/backend/queue); how long pods back off is configured.
const (
	// backoffWindow is what ends of back-off are rounded down to.
	backoffWindow = time.Second
	// A pod stays unschedulable for no longer than this without a try; it is
	// looked for every flushInterval.
	maxInUnschedulable = 5 * time.Minute
	flushInterval      = 30 * time.Second
)

// place is where a pod that has no node is. A pod is in exactly one place, and
// put moves it: upstream's activeQ, backoffQ and unschedulablePods are three of
// them.
type place uint8

const (
	nowhere       place = iota // being scheduled or bound, or passed over
	gated                      // it has scheduling gates, or waits for its claims
	arriving                   // not yet heard of
	active                     // to be tried
	backingOff                 // to be tried when nothing is active, or when its back-off ends
	errorBackoff               // to be tried when its back-off ends
	unschedulable              // until something changes
)

// queued is a pod without a node. It is all that is kept of a pod that waits: the
// pod itself is read from the API when its turn comes.
type queued struct {
	namespace, name string
	uid             types.UID
	priority        int32
	place           place
	index           int // in its heap or list
	labels          *labelSet
	seq             uint64 // of its coming, for ties
	// timestamp: ns, of its last coming to a queue.
	timestamp int64
	attempts  int
	// unschedulable and errors count tries for the back-off.
	unschedulable, errors int
	backoffUntil          int64 // ns; 0: to be computed
	rejectors             plugins
	nominated             *nodeInfo
	// preempting: its evictions are under way, so nothing wakes it
	// (Scheduler.preempting).
	preempting bool
	// lastVictim: the last of them, from when its turn comes.
	lastVictim *v1.Pod
	// waitsFor: the claim without which it does not come into the queue; "": none
	// (Scheduler.waitingFor).
	waitsFor string
}

// before is the order of PrioritySort: by priority, then by the time of coming.
func (q *queued) before(o *queued) bool {
	if q.priority != o.priority {
		return q.priority > o.priority
	}
	if q.timestamp != o.timestamp {
		return q.timestamp < o.timestamp
	}
	return q.seq < o.seq
}

// backoffEnd returns when a pod's back-off ends: 0 when it has none. It doubles
// with each try, from 1 s to 10 s unless configured, and is rounded down to whole
// windows, so that pods which fail together are tried together, in the order of
// their priority.
func (u *queue) backoffEnd(q *queued) int64 {
	count := q.unschedulable
	if q.errors > 0 {
		count = q.errors
	}
	if count == 0 {
		return 0
	}
	if q.backoffUntil == 0 {
		d := u.maxBackoff
		if u.initialBackoff <= u.maxBackoff>>(count-1) {
			d = u.initialBackoff << (count - 1)
		}
		q.backoffUntil = window(q.timestamp + int64(d))
	}
	return q.backoffUntil
}

// window rounds down to a window's begin.
func window(ns int64) int64 { return ns - ns%int64(backoffWindow) }

// podHeap is a heap of pods, in the order of less.
type podHeap struct {
	items []*queued
	less  func(a, b *queued) bool
}

func (h *podHeap) Len() int           { return len(h.items) }
func (h *podHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *podHeap) Push(x any)         { q := x.(*queued); q.index = len(h.items); h.items = append(h.items, q) }
func (h *podHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}
func (h *podHeap) Pop() any {
	k := len(h.items) - 1
	q := h.items[k]
	h.items[k] = nil
	h.items = h.items[:k]
	return q
}

// queue holds the pods that have no node. errors are kept apart from backoff: a
// pod whose try failed by an error must not be tried early when nothing else is
// active.
type queue struct {
	active, backoff, errors podHeap
	unschedulable           []*queued
	seq                     uint64

	initialBackoff, maxBackoff time.Duration
}

func newQueue(initialBackoff, maxBackoff time.Duration) *queue {
	u := &queue{initialBackoff: initialBackoff, maxBackoff: maxBackoff}
	active := func(a, b *queued) bool { return a.before(b) }
	byEnd := func(a, b *queued) bool {
		if x, y := u.backoffEnd(a), u.backoffEnd(b); x != y {
			return x < y
		}
		return a.before(b)
	}
	u.active, u.backoff, u.errors = podHeap{less: active}, podHeap{less: byEnd}, podHeap{less: byEnd}
	return u
}

// put moves a pod to a place. All heaps know the index of each pod, so leaving
// one costs O(log n); the order of unschedulable means nothing, so there the last
// one fills the gap.
func (u *queue) put(q *queued, to place) {
	switch q.place {
	case active:
		heap.Remove(&u.active, q.index)
	case backingOff:
		heap.Remove(&u.backoff, q.index)
	case errorBackoff:
		heap.Remove(&u.errors, q.index)
	case unschedulable:
		k := len(u.unschedulable) - 1
		last := u.unschedulable[k]
		u.unschedulable[q.index], last.index = last, q.index
		u.unschedulable[k] = nil
		u.unschedulable = u.unschedulable[:k]
	}
	q.place = to
	switch to {
	case active:
		heap.Push(&u.active, q)
	case backingOff:
		heap.Push(&u.backoff, q)
	case errorBackoff:
		heap.Push(&u.errors, q)
	case unschedulable:
		q.index = len(u.unschedulable)
		u.unschedulable = append(u.unschedulable, q)
	}
}

// pop takes the next pod to be tried; nil when there is none. When nothing is
// active, the first that backs off is tried early (KEP-5142).
func (u *queue) pop(now int64) *queued {
	// What has backed off for long enough is as good as active.
	for _, h := range []*podHeap{&u.backoff, &u.errors} {
		for len(h.items) > 0 && u.backoffEnd(h.items[0]) < window(now) {
			u.put(h.items[0], active)
		}
	}
	var q *queued
	switch {
	case len(u.active.items) > 0:
		q = u.active.items[0]
	case len(u.backoff.items) > 0:
		q = u.backoff.items[0]
	default:
		return nil
	}
	// Out of every place, until its cycle says where it goes.
	u.put(q, nowhere)
	q.attempts++
	q.backoffUntil = 0
	return q
}

// requeue puts a pod where it is tried again: at once, or after its back-off.
func (u *queue) requeue(q *queued, now int64) {
	switch end := u.backoffEnd(q); {
	case end == 0 || end < window(now):
		u.put(q, active)
	case q.rejectors == 0:
		u.put(q, errorBackoff)
	default:
		u.put(q, backingOff)
	}
}

// known notes a pod that the scheduler is to place, and how it has changed. A pod
// with scheduling gates is kept outside of the queue until it has none.
func (s *Scheduler) known(p, old *v1.Pod) {
	q := s.pending[p.UID]
	if q == nil {
		s.queue.seq++
		q = &queued{namespace: p.Namespace, name: p.Name, uid: p.UID, priority: corev1helper.PodPriority(p), seq: s.queue.seq}
		s.pending[p.UID] = q
		s.relabel(q, p)
		s.nominate(q, p.Status.NominatedNodeName)
		if s.gated(p) || s.gatedByClaims(q, p) {
			q.place = gated
			return
		}
		s.arrive(q)
		return
	}
	if old != nil && !sameLabels(old.Labels, p.Labels) {
		s.relabel(q, p)
	}
	if old == nil {
		return
	}
	// Nothing that becomes of a pod stops its binding; what its deletion sets free is others' at once
	// (handleAssumedPodDeletion).
	if a := s.assumed[p.UID]; a != nil {
		if p.DeletionTimestamp != nil && old.DeletionTimestamp == nil {
			s.unassume(a)
		}
		return
	}
	// A pod that was passed over is tried again with each change.
	if q.place == nowhere {
		if p.DeletionTimestamp != nil {
			q.timestamp = s.l.UnixNano()
			s.queue.put(q, active)
			s.wake(s.delivery())
		}
		return
	}
	if q.place == gated {
		if !s.gated(p) && !s.gatedByClaims(q, p) {
			s.arrive(q)
		}
		return
	}
	if s.updated(q, p, old) && q.place == unschedulable && !s.preempting(q) {
		s.queue.requeue(q, s.l.UnixNano())
		s.wake(s.delivery())
	}
	if was := old.Status.NominatedNodeName; was != "" && was != p.Status.NominatedNodeName {
		s.moved(event{kind: denominated, pod: old})
	}
}

// gated reports whether scheduling gates keep a pod out of the queue.
func (s *Scheduler) gated(p *v1.Pod) bool {
	return len(p.Spec.SchedulingGates) > 0 && s.profiles.of(p).gates
}

// arrive has the queue hear of a pod after the watch's latency, in order. Changes
// don't overtake each other on a watch, so none arrives before the last one that
// was sent.
func (s *Scheduler) arrive(q *queued) {
	q.place = arriving
	at := max(s.l.UnixNano()+int64(s.delivery()), s.lastArrival)
	s.lastArrival = at
	s.arrivals = append(s.arrivals, arrival{q, at})
	if len(s.arrivals) == 1 {
		s.wake(time.Duration(at - s.l.UnixNano()))
	}
}

// arrival is a pod and the time, in ns, when the queue hears of it.
type arrival struct {
	q  *queued
	at int64
}

// admit takes in the pods whose arrival has come.
func (s *Scheduler) admit(now int64) {
	i := 0
	for ; i < len(s.arrivals) && s.arrivals[i].at <= now; i++ {
		if q := s.arrivals[i].q; q.place == arriving {
			q.timestamp = now
			s.queue.put(q, active)
		}
		s.arrivals[i] = arrival{}
	}
	if s.arrivals = s.arrivals[i:]; len(s.arrivals) == 0 {
		s.arrivals = nil
	}
}

// forget drops a pod that has a node or is gone. It returns false for one that it
// does not know.
func (s *Scheduler) forget(uid types.UID) bool {
	q := s.pending[uid]
	if q == nil {
		return false
	}
	s.queue.put(q, nowhere)
	s.nominate(q, "")
	s.stopWaiting(q)
	delete(s.pending, uid)
	q.labels.waiting--
	s.labels.drop(q.labels)
	return true
}

// relabel notes the labels that a pod has while it is to be placed. Once it is bound it
// may have others: its node's zone and region come with that.
func (s *Scheduler) relabel(q *queued, p *v1.Pod) {
	old := q.labels
	q.labels = s.labels.of(p)
	q.labels.waiting++
	if old != nil {
		old.waiting--
		s.labels.drop(old)
	}
}

// nominate sets the node that a pod waits for; "" for none.
func (s *Scheduler) nominate(q *queued, node string) {
	if q.nominated != nil {
		if q.nominated.name == node {
			return
		}
		n := q.nominated
		for i, o := range n.nominated {
			if o == q {
				n.nominated = append(n.nominated[:i:i], n.nominated[i+1:]...)
				break
			}
		}
		q.nominated = nil
		s.version++
		s.table.release(n)
	}
	if node != "" {
		q.nominated = s.table.info(node)
		q.nominated.nominated = append(q.nominated.nominated, q)
		s.version++
	}
}

// flush has pods tried again that were left alone for five minutes. Upstream's
// flushUnschedulablePodsLeftover, for what no event woke.
func (s *Scheduler) flush() {
	now := s.l.UnixNano()
	for i := len(s.queue.unschedulable) - 1; i >= 0; i-- {
		q := s.queue.unschedulable[i]
		if now-q.timestamp > int64(maxInUnschedulable) && !s.preempting(q) {
			s.queue.requeue(q, now)
		}
	}
	s.wake(0)
	s.armFlush()
}

// armFlush sets the timer of the next flush that finds something. Flushes are at
// multiples of their interval after the scheduler's start. Without a pod that
// waits there is no timer.
func (s *Scheduler) armFlush() {
	if len(s.queue.unschedulable) == 0 || s.flusher.Set() {
		return
	}
	oldest := s.queue.unschedulable[0].timestamp
	for _, q := range s.queue.unschedulable {
		oldest = min(oldest, q.timestamp)
	}
	due := max(oldest+int64(maxInUnschedulable), s.l.UnixNano()) - s.started
	s.flusher.Reset(time.Duration(s.started + (due/int64(flushInterval)+1)*int64(flushInterval) - s.l.UnixNano()))
}
