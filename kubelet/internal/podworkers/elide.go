package podworkers

import (
	"context"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
	"github.com/drydock-sim/drydock/kubelet/internal/volumemanager"
)

// A sync computes from the pod, its mirror, the runtime's picture of it, its
// status, the reason cache (which only a sync of the same pod changes), its
// volumes, the node's address and the network's state. The objects are replaced,
// never written to. So a sync that sees the same objects as the last one, which
// had nothing to do, is elided: its worker needs no task (launch), and if it
// comes of a resync the sync loop need not even take it up (Until). Resyncs of
// pods whose inputs all have versions need no tick: they are accounted for when
// a version grows.

// syncMemo is what the last sync of a pod saw, if it had nothing to do.
type syncMemo struct {
	pod, mirror *v1.Pod
	runtime     *kubecontainer.PodStatus
	status      *v1.PodStatus
	host        *v1.HostIP // the node's first; nil: none
	// seen is when this was last found to hold.
	seen syncVersions
}

// syncVersions are the versions of what a memo is compared with. While none has
// grown the comparison need not be made.
type syncVersions struct{ pods, runtime, statuses uint64 }

// replacePod puts the next version of an object in the place of the old one.
func (m *syncMemo) replacePod(old, pod *v1.Pod) {
	if m.pod == old {
		m.pod = pod
	}
	if m.mirror == old {
		m.mirror = pod
	}
}

// replaceStatus is replacePod for the pod's cached status.
func (m *syncMemo) replaceStatus(old, status *v1.PodStatus) {
	if m.status == old {
		m.status = status
	}
}

// Surroundings are what a sync goes by that is not its pod's alone.
type Surroundings interface {
	// FirstHost is the node's first address, the same object until it changes; nil:
	// statuses don't show it.
	FirstHost() *v1.HostIP
	// NetworkError is why no pod without the host's network is started, or nil.
	NetworkError() error
	// RuntimeErrorsFrom is the time from which on no pod is synced, if nothing is
	// heard of the runtime meanwhile; in the past if that is so now. In ns since
	// the Unix epoch.
	RuntimeErrorsFrom() int64
	// RuntimeQuiet reports whether the passes that ask the runtime are left out,
	// so that nothing new is heard of it until its version grows.
	RuntimeQuiet() bool
}

// ElideOptions are what Elide needs beside the workers.
type ElideOptions struct {
	Surroundings
	Pods     *kubepod.Manager
	Cache    *kubecontainer.Cache
	Statuses *status.Manager
	Volumes  *volumemanager.Manager
	// Node, Runtime and Health grow with what Surroundings return.
	Node, Runtime, Health *loop.Version
}

// Elided leaves out syncs that would see what the last one saw. It stands
// around the workers' syncer, before their launch, and before the sync loop's
// tick.
type Elided struct {
	Syncer
	launcher
	ElideOptions
	w *Workers
	// ticks are the sync loop's, by which pods that are due are synced.
	ticks *loop.Ticks
	// elided counts the syncs that were left out.
	elided uint64
	// assured: while the tick is parked, resyncs that are due before then are
	// elided without another look; ns since the Unix epoch.
	assured int64
	reads   []*loop.Version
	// deadlines counts the pods that have an activeDeadlineSeconds.
	deadlines int
}

// Elide has the workers' syncs elided.
func Elide(w *Workers, o ElideOptions) *Elided {
	e := &Elided{Syncer: w.Syncer, launcher: w.launcher, w: w, ElideOptions: o}
	w.Syncer, w.launcher = e, e
	o.Pods.OnChange(e.podChanged)
	return e
}

// podChanged is told of each pod that is another than before; nil: there was none,
// or is none any more.
func (e *Elided) podChanged(old, pod *v1.Pod) {
	if old != nil && old.Spec.ActiveDeadlineSeconds != nil {
		e.deadlines--
	}
	if pod != nil && pod.Spec.ActiveDeadlineSeconds != nil {
		e.deadlines++
	}
}

// ElideTicks has the sync loop's ticks elided that would find no pod to sync.
func (e *Elided) ElideTicks(ticks *loop.Ticks) {
	e.ticks = ticks
	ticks.Elide(e)
}

// Elided returns how many syncs were left out.
func (e *Elided) Elided() uint64 { return e.elided }

// Probed has the next sync of a pod run although nothing that its memo holds has
// changed. One that is in progress, and may have looked already, doesn't count.
func (e *Elided) Probed(uid types.UID) {
	if s := e.w.records.get(uid); s != nil {
		s.probed = true
	}
}

// Stale is Probed for a change that nobody has the pod synced for: the ticks that were left out
// are looked at again.
func (e *Elided) Stale(uid types.UID) {
	e.Probed(uid)
	e.Health.Grow()
}

// SyncPod remembers what a sync saw that had nothing to do.
func (e *Elided) SyncPod(ctx context.Context, updateType kubetypes.SyncPodType, pod, mirror *v1.Pod, runtime *kubecontainer.PodStatus) (SyncResult, error) {
	s := e.w.records.get(pod.UID)
	// A sync that fails, or isn't settled, must be run again whatever it saw.
	s.memo = syncMemo{}
	result, err := e.Syncer.SyncPod(ctx, updateType, pod, mirror, runtime)
	if err != nil || !result.Settled {
		return result, err
	}
	// Objects that were replaced meanwhile differ in nothing that the sync goes by.
	m := &s.memo
	m.pod, m.mirror, m.runtime, m.host = s.active.Pod, mirror, runtime, e.FirstHost()
	if s.run != nil {
		m.mirror = s.run.MirrorPod
	}
	m.status, _ = e.Statuses.GetPodStatus(pod.UID)
	return result, err
}

// launch leaves out a run that would do nothing.
func (e *Elided) launch(s *record, run *UpdatePodOptions, status *kubecontainer.PodStatus, err error) {
	if !s.probed && run.work == syncWork && err == nil && run.UpdateType == kubetypes.SyncPodSync &&
		s.active.Pod == s.memo.pod && e.unchanged(&s.memo, run.MirrorPod, status) {
		// The worker goes on as after a run, since an update may have come
		// meanwhile.
		e.leaveOut(s, e.w.l.UnixNano(), e.w.Queue.Enqueue)
		e.w.next(s)
		return
	}
	s.probed = false
	e.launcher.launch(s, run, status, err)
}

// leaveOut accounts for a run at a time, in ns since the Unix epoch, and has the
// pod enqueued again.
func (e *Elided) leaveOut(s *record, at int64, enqueue func(*queue.Item, int64)) {
	w := e.w
	e.elided++
	w.runs++
	s.cancelled = false
	s.lastRun = at
	enqueue(&s.item, at+int64(w.requeueDelay(s, nil)))
}

// unchanged reports whether a sync with this mirror and picture would see what
// the memo holds.
func (e *Elided) unchanged(m *syncMemo, mirror *v1.Pod, runtime *kubecontainer.PodStatus) bool {
	// A deadline passes with time alone, of which no object tells.
	if m.mirror != mirror || m.runtime != runtime || m.pod.Spec.ActiveDeadlineSeconds != nil || !e.surroundings(m) {
		return false
	}
	s, ok := e.Statuses.GetPodStatus(m.pod.UID)
	return ok && s == m.status
}

// surroundings reports whether what is not the pod's alone is as the memo holds.
func (e *Elided) surroundings(m *syncMemo) bool {
	return m.pod != nil && e.NetworkError() == nil && m.host == e.FirstHost() && e.Volumes.Settled(m.pod)
}

// sameInputs reports whether the sync loop, given the pod as due, would begin a sync
// that is unchanged: with the pod and mirror of the pod manager, and the picture
// of the pod cache.
func (e *Elided) sameInputs(s *record) bool {
	m := &s.memo
	if s.probed || !idle(s) || !e.surroundings(m) {
		return false
	}
	seen := syncVersions{e.Pods.Version().Count(), e.Cache.Version().Count(), e.Statuses.Version().Count()}
	if m.seen == seen {
		return true
	}
	if pod, _ := e.Pods.GetPodByUID(m.pod.UID); pod != m.pod {
		return false
	}
	mirror, _ := e.Pods.GetMirrorPodByPod(m.pod)
	runtime, err := e.Cache.Get(m.pod.UID)
	if err != nil || !e.unchanged(m, mirror, runtime) {
		return false
	}
	m.seen = seen
	return true
}

// idle reports whether the pod has started, is not to end, and nothing is in
// progress or to be done.
// Only then can a sync be accounted for without its worker.
func idle(s *record) bool {
	return s.started() && !s.terminationRequested() && !s.terminated() && !s.working && s.pending == nil &&
		!s.finished && !s.removed && s.active.Pod != nil && s.active.Pod == s.memo.pod
}

// maxDeferral bounds how long resyncs are deferred: those that are accounted for
// at once find the node's pods in the processor's cache.
const maxDeferral = time.Hour

// Reads implements loop.Elider for the sync loop's tick.
func (e *Elided) Reads() []*loop.Version {
	if e.reads == nil {
		e.reads = []*loop.Version{
			e.Pods.Version(), e.Cache.Version(), e.Statuses.Version(), &e.w.records.work, e.w.Queue.Version(),
			e.Node, e.Runtime, e.Health, e.Volumes.Untold(),
		}
	}
	return e.reads
}

// Until implements loop.Elider for the sync loop's tick. It leaves out the
// resyncs that are due and unchanged.
func (e *Elided) Until(now int64) int64 {
	e.resync(now, func(s *record) bool { return e.Cache.SeenSince(s.lastRunTime()) && e.sameInputs(s) })
	e.assured = 0
	deadline, down := e.nextDeadline(), e.RuntimeErrorsFrom()
	if e.w.Queue.Due(now) || deadline <= now || down <= now {
		return now
	}
	if e.RuntimeQuiet() {
		e.assured = min(e.firstThatMoves(), now+int64(maxDeferral), deadline-1)
		return e.assured + 1
	}
	return e.Plan(now)
}

// Defers implements loop.Deferrer.
func (e *Elided) Defers() bool { return e.assured != 0 }

// Plan implements loop.Planner: the next tick that the sync loop could not ignore
// is one that finds a pod due, or past its deadline, or the runtime in error.
func (e *Elided) Plan(int64) int64 {
	e.assured = 0
	at := min(e.nextDeadline(), e.RuntimeErrorsFrom())
	if it, due := e.w.Queue.First(); it != nil {
		at = min(at, due+1)
	}
	return at
}

// LeftOut implements loop.Elider: it accounts for the resyncs of ticks that were
// left out.
func (e *Elided) LeftOut(_, last int64) {
	if e.assured != 0 {
		e.resync(last, func(*record) bool { return true })
	}
}

// resync gives what was due at a tick up to now, and would have nothing to do,
// its next time. It is what the sync loop would bring about if it took up these
// pods: it would tell the workers of pods that they know, as they are, and these
// would be idle again at the same instant. It stops at the first pod for which
// elides is false.
func (e *Elided) resync(now int64, elides func(*record) bool) {
	for {
		it, due := e.w.Queue.First()
		if it == nil || due >= now || e.assured != 0 && due >= e.assured {
			return
		}
		at := e.ticks.After(due)
		s, _ := it.Owner.(*record)
		if s == nil || at > now || !elides(s) {
			return
		}
		e.leaveOut(s, at, e.w.Queue.Postpone)
	}
}

// firstThatMoves is when the first pod is due whose resync can't be deferred, in
// ns since the Unix epoch. It gives up looking when that is soon.
func (e *Elided) firstThatMoves() int64 {
	const soon = int64(2 * time.Second)
	q := e.w.Queue
	first := int64(math.MaxInt64)
	_, start := q.First()
	for i := range q.Len() {
		it, due := q.At(i)
		if due >= first {
			continue
		}
		if s, _ := it.Owner.(*record); s == nil || !e.sameInputs(s) || !e.Volumes.Fixed(s.memo.pod) {
			if first = due; first <= start+soon {
				break
			}
		}
	}
	return first
}

// nextDeadline is when the first pod passes its activeDeadlineSeconds, in ns
// since the Unix epoch; in the past if one has and is yet to end.
func (e *Elided) nextDeadline() int64 {
	next := int64(math.MaxInt64)
	if e.deadlines == 0 { // as on nearly all nodes
		return next
	}
	e.Pods.Each(func(pod *v1.Pod) {
		if pod.Spec.ActiveDeadlineSeconds == nil || e.w.DeadlineIsOver(pod) {
			return
		}
		if st := e.Statuses.PodStatus(pod); !st.StartTime.IsZero() {
			next = min(next, st.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second).UnixNano())
		}
	})
	return next
}
