package kubelet

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A resync of a pod about which nothing has changed finds nothing to do. While
// all that such a pod depends on tells of its changes, its resyncs are not even
// run when they are due: they are caught up with, in their order and at their
// times, right before something changes (stir), or when somebody looks.

// lazyResync bounds how long resyncs are put off: what is caught up with at once
// finds the node's pods in the processor's cache.
const lazyResync = time.Hour

// stir is called before a change of anything that quiet resyncs go by: the pods,
// the pod cache, the statuses, a worker's record, the runtime, the node.
func (kl *Kubelet) stir() {
	if kl.loop.lazy {
		kl.catchUpResyncs()
		kl.loop.lazy = false
		kl.planSyncTick()
	}
}

// catchUpResyncs runs the resyncs that were put off.
func (kl *Kubelet) catchUpResyncs() {
	if s := &kl.loop; s.lazy && !s.catchingUp {
		s.catchingUp = true
		kl.workers.resyncUnchanged(kl.l.UnixNano(), s.ticker.After)
		s.catchingUp = false
	}
}

// beLazy puts off the resyncs of what tells of its changes, if the sync loop has
// nothing else to wait for than a change.
func (kl *Kubelet) beLazy() {
	if kl.opts.NoElide || !kl.loop.notified || !kl.state.assured || !kl.pleg.Parked() {
		return
	}
	kl.loop.lazy = true
	at := min(kl.workers.firstThatMoves(), kl.l.UnixNano()+int64(lazyResync))
	if d := &kl.deadlines; d.pods > 0 {
		at = min(at, d.next-1)
	}
	kl.loop.ticker.SkipTo(at)
}

// resyncUnchanged gives what was due at a tick up to now, and would have nothing
// to do, its next time. It is what the sync loop would bring about if it took up
// these pods: it would tell the workers of pods that they know, as they are, and
// these would be idle again at the same instant. It stops at the first pod for
// which that is not certain. tick returns the first tick after a time.
func (w *podWorkers) resyncUnchanged(now int64, tick func(int64) int64) {
	if w.NoElide {
		return
	}
	for {
		it, due := w.Queue.First()
		if it == nil || due >= now {
			return
		}
		s, _ := it.Owner.(*podState)
		if s == nil || !s.idle() || !w.Cache.SeenSince(s.lastRunTime()) || !w.Syncer.Unmoved(&s.quiet) {
			return
		}
		at := tick(due)
		if at > now {
			return
		}
		w.quietRun(s, at)
	}
}

// quietRun is a run that is left out.
func (w *podWorkers) quietRun(s *podState, at int64) {
	w.quiets++
	w.runs++
	s.cancelled = false
	s.lastRun = at
	w.Queue.Enqueue(&s.item, at+int64(w.requeueDelay(s, nil)))
}

// enqueue has the pod due later. While resyncs are put off the queue's first item
// may lie in the past, and nobody would learn that this one comes before the next
// tick: so they are made first.
func (w *podWorkers) enqueue(s *podState, d time.Duration) {
	if w.Stir != nil {
		w.Stir()
	}
	w.Queue.Enqueue(&s.item, w.l.UnixNano()+int64(d))
}

// firstThatMoves is when the first pod is due whose resync can't be put off,
// in nanoseconds since the Unix epoch. It gives up looking when that is soon.
func (w *podWorkers) firstThatMoves() int64 {
	const soon = int64(2 * time.Second)
	first := int64(math.MaxInt64)
	_, start := w.Queue.First()
	for i := range w.Queue.Len() {
		it, due := w.Queue.At(i)
		if due >= first {
			continue
		}
		if s, _ := it.Owner.(*podState); s == nil || !s.idle() || !w.Syncer.Unmoved(&s.quiet) || !w.Syncer.Fixed(s.quiet.pod) {
			if first = due; first <= start+soon {
				break
			}
		}
	}
	return first
}

// Fixed tells whether the pod's volumes stay settled by themselves.
func (kl *Kubelet) Fixed(pod *v1.Pod) bool { return kl.volumes.Fixed(pod) }
