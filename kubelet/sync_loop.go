package kubelet

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// The periods of the sync loop (pkg/kubelet/kubelet.go).
const (
	syncTickPeriod     = time.Second
	housekeepingPeriod = 2 * time.Second
	syncLoopBaseDelay  = 100 * time.Millisecond
	syncLoopMaxDelay   = 5 * time.Second
	syncLoopMinHealth  = 5 * time.Minute
)

// errSyncLoopSlow is the failure of the syncloop health check.
var errSyncLoopSlow = errors.New("sync Loop took longer than expected")

// syncLoopState is what belongs to the sync loop alone.
type syncLoopState struct {
	// syncTick and housekeeping are the tickers' one undelivered tick each. A
	// tick that would find nothing to do is not delivered to a loop that is
	// waiting for one: the loop could only go on waiting. To a loop that is
	// busy, or held up by runtime errors, every tick is delivered, since there
	// may be something to do when it looks.
	syncTick     loop.Signal
	housekeeping loop.Signal
	// ticker makes syncTick. While the loop waits, ticks before the next that
	// could find something to do are skipped, see planSyncTick.
	ticker *loop.Ticker
	// housekeeper makes housekeeping. It is parked while the loop waits and a
	// pass would find nothing to do, if the runtime tells of its changes
	// (notified).
	housekeeper *loop.Ticker
	notified    bool
	waiting     bool
	// lazy: resyncs may be put off, see stir; catchingUp: and are being run.
	lazy, catchingUp bool
	// busySince is when the loop last stopped waiting, in ns.
	busySince int64
	stamp     time.Time
	clean     cleanMark
}

// syncLoop handles one message from one channel at a time. Of several that are
// ready the order below decides; upstream picks at random.
func (kl *Kubelet) syncLoop(ctx context.Context) {
	kl.logf("Starting kubelet main sync loop")
	s := &kl.loop
	s.busySince = kl.l.UnixNano()
	s.ticker = kl.g.Every("sync-tick", syncTickPeriod, 0, kl.syncTick)
	kl.queue.OnEarlier = func(int64) { kl.planSyncTick() }
	s.housekeeper = kl.g.Every("housekeeping-tick", housekeepingPeriod, 0, kl.housekeepingTick)
	channels := []loop.Waitable{kl.podConfig.Updates(), kl.pleg.Events, &s.syncTick,
		kl.probes.Liveness.Updates(), kl.probes.Readiness.Updates(), kl.probes.Startup.Updates(), &s.housekeeping}
	delay := syncLoopBaseDelay
	for {
		if err := kl.state.runtimeErrors(); err != nil {
			kl.logf("Skipping pod synchronization: %v", err)
			if kl.l.Sleep(ctx, delay) != nil {
				return
			}
			delay = min(2*delay, syncLoopMaxDelay)
			continue
		}
		delay = syncLoopBaseDelay
		if kl.l.UnixNano() != s.busySince { // ticks that were skipped count, too
			if s.ticker.TickedSince(s.busySince) {
				s.syncTick.Notify()
			}
			if s.housekeeper.TickedSince(s.busySince) {
				s.housekeeping.Notify()
			}
		}
		s.waiting = true
		i, err := loop.WaitAny(ctx, channels...)
		kl.stir()
		s.waiting, s.busySince = false, kl.l.UnixNano()
		if err != nil {
			return
		}
		s.stamp = kl.l.Now()
		switch i {
		case 0:
			kl.handleConfig(ctx)
		case 1:
			kl.handlePLEG()
		case 2:
			kl.handlePodSyncs(kl.podsDue())
		case 3:
			kl.handleLiveness()
		case 4:
			kl.handleReadiness()
		case 5:
			kl.handleStartup()
		case 6:
			kl.handleHousekeeping(ctx)
		}
		s.stamp = kl.l.Now()
	}
}

// syncTick is called by the ticker.
func (kl *Kubelet) syncTick() {
	s, now := &kl.loop, kl.l.UnixNano()
	if s.waiting && !kl.opts.NoElide {
		kl.loop.catchingUp = true
		kl.workers.resyncUnchanged(now, s.ticker.After)
		kl.loop.catchingUp = false
		if !kl.queue.Due(now) && !kl.deadlines.due(now) && kl.state.errorsFrom() > now {
			kl.loop.lazy = false
			kl.planSyncTick()
			kl.beLazy()
			return
		}
		kl.loop.lazy = false
	}
	s.syncTick.Notify()
}

// housekeepingTick is called by the ticker.
func (kl *Kubelet) housekeepingTick() {
	s := &kl.loop
	if s.waiting && !kl.housekeepingDue() {
		if s.notified {
			s.housekeeper.Park()
		}
		return
	}
	s.housekeeping.Notify()
}

// unparkHousekeeping is called at each change that a pass could act on. A loop
// that is not waiting looks itself whether there was a tick meanwhile.
func (kl *Kubelet) unparkHousekeeping() {
	if h := kl.loop.housekeeper; h != nil && h.Parked() {
		h.SkipTo(kl.l.UnixNano())
	}
}

// planSyncTick sets the ticker, while the loop waits, to the next tick that it
// could not ignore: that which finds a pod due, or passing its deadline, or the
// runtime in error. Whoever brings one of these forward calls it. A loop that is
// not waiting looks itself whether there was a tick meanwhile.
func (kl *Kubelet) planSyncTick() {
	if !kl.loop.waiting || kl.loop.syncTick.Ready() || kl.opts.NoElide || kl.loop.catchingUp {
		return
	}
	if kl.loop.lazy {
		kl.stir()
		return
	}
	at := kl.state.errorsFrom() - 1
	if it, due := kl.queue.First(); it != nil {
		at = min(at, due)
	}
	if d := &kl.deadlines; d.stale && d.pods > 0 {
		at = 0
	} else if d.pods > 0 {
		at = min(at, d.next-1)
	}
	kl.loop.ticker.SkipTo(at)
}

func (kl *Kubelet) handleConfig(ctx context.Context) {
	u, ok := kl.podConfig.Updates().TryGet()
	if !ok {
		return
	}
	if kl.log != nil && len(u.Pods) > 0 {
		kl.log("SyncLoop %s source=%s pods=%s", u.Op, u.Source, podNames(u.Pods))
	}
	switch u.Op {
	case kubetypes.ADD:
		kl.handlePodAdditions(ctx, u.Pods)
	case kubetypes.UPDATE, kubetypes.DELETE:
		kl.handlePodUpdates(ctx, u.Pods)
	case kubetypes.REMOVE:
		kl.handlePodRemoves(ctx, u.Pods)
	case kubetypes.RECONCILE:
		kl.handlePodReconcile(ctx, u.Pods)
	}
	kl.podConfig.MarkSeen(u.Source)
	kl.volumes.SourcesSeen()
}

func (kl *Kubelet) handlePLEG() {
	e, ok := kl.pleg.Events.TryGet()
	if !ok {
		return
	}
	if e.Type != pleg.ContainerRemoved {
		if pod, ok := kl.pods.GetPodByUID(e.ID); ok {
			if kl.log != nil {
				kl.log("SyncLoop (PLEG): event for pod pod=%s event=%s %s", podName(pod), e.Type, e.Data)
			}
			kl.handlePodSync(pod)
		}
	}
	if e.Type == pleg.ContainerDied {
		kl.cleanUpContainersInPod(e.ID, e.Data)
	}
}

func (kl *Kubelet) handleHousekeeping(ctx context.Context) {
	if !kl.podConfig.AllReady() {
		return
	}
	start := kl.l.Now()
	if err := kl.handlePodCleanups(ctx); err != nil {
		kl.logf("Failed cleaning pods: %v", err)
	}
	if d := kl.l.Since(start); d > time.Second {
		kl.logf("Housekeeping took longer than expected expected=1s actual=%v", d)
	}
}

// podsDue returns the pods that the work queue or their active deadline says
// are to be synced, by due time, then UID.
func (kl *Kubelet) podsDue() []*v1.Pod {
	var out []*v1.Pod
	now := kl.l.UnixNano()
	for _, uid := range kl.queue.Take(now) {
		if pod, ok := kl.pods.GetPodByUID(uid); ok {
			out = append(out, pod)
		}
	}
	if kl.deadlines.due(now) {
		out = kl.appendPastDeadline(out)
	}
	return out
}

// Healthy is the syncloop health check: an error when the loop has not turned
// for max(2 × syncFrequency, 5 min). A loop that never turned is healthy.
func (kl *Kubelet) Healthy() error {
	limit := max(2*kl.cfg.SyncFrequency.Duration, syncLoopMinHealth)
	if !kl.loop.stamp.IsZero() && !kl.loop.waiting && kl.l.Since(kl.loop.stamp) > limit {
		return errSyncLoopSlow
	}
	return nil
}

// deadlines knows when the next pod passes its activeDeadlineSeconds. Pods
// without one cost nothing.
type deadlines struct {
	pods  int   // pods that have one; an upper bound until the next scan
	next  int64 // ns; only good while not stale
	stale bool
}

func (d *deadlines) due(now int64) bool { return d.pods > 0 && (d.stale || now >= d.next) }

// noteDeadline says that a pod's deadline or start time may have changed.
func (kl *Kubelet) noteDeadline(pod *v1.Pod) {
	if pod.Spec.ActiveDeadlineSeconds != nil {
		kl.deadlines.pods = max(kl.deadlines.pods, 1)
		kl.deadlines.stale = true
		kl.planSyncTick()
	}
}

// appendPastDeadline adds the pods past their active deadline, and finds out
// when the next is. A finished pod's sync is no longer anything.
func (kl *Kubelet) appendPastDeadline(out []*v1.Pod) []*v1.Pod {
	d := &kl.deadlines
	now := kl.l.Now()
	*d = deadlines{next: 1<<63 - 1}
	for _, pod := range kl.pods.GetPods() {
		if pod.Spec.ActiveDeadlineSeconds == nil || kl.workers.Known(pod.UID) && kl.workers.ShouldPodBeFinished(pod.UID) {
			continue
		}
		d.pods++
		st := kl.podStatus(pod)
		if st.StartTime.IsZero() {
			continue // noted when it is set
		}
		if status.PastActiveDeadline(pod, st, now) {
			d.next = 0
			if !containsPod(out, pod) {
				out = append(out, pod)
			}
			continue
		}
		d.next = min(d.next, st.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second).UnixNano())
	}
	return out
}

func containsPod(pods []*v1.Pod, pod *v1.Pod) bool {
	for _, p := range pods {
		if p == pod {
			return true
		}
	}
	return false
}
