package kubelet

import (
	"context"
	"errors"
	"slices"
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

// syncLoop is what belongs to the sync loop alone.
type syncLoop struct {
	// ticks have pods synced that are due; housekeeping has what is left of pods
	// that are gone cleaned up.
	ticks, housekeeping *loop.Ticks
	stamp               time.Time // when the loop last turned; zero: never
}

func newSyncLoop(g *loop.Group) syncLoop {
	return syncLoop{
		ticks:        g.Ticks("sync-tick", syncTickPeriod),
		housekeeping: g.Ticks("housekeeping-tick", housekeepingPeriod),
	}
}

// syncSource is something that gives the sync loop something to do.
type syncSource struct {
	ready  loop.Waitable
	handle func(kl *Kubelet, ctx context.Context)
}

// syncSources are upstream's channels. Of several that are ready the first is
// taken; upstream picks at random.
func (kl *Kubelet) syncSources() [7]syncSource {
	return [...]syncSource{
		{kl.podConfig.Updates(), (*Kubelet).handleConfig},
		{kl.pleg.Events(), (*Kubelet).handlePLEG},
		{kl.loop.ticks, (*Kubelet).handleSyncTick},
		{kl.probes.Liveness.Updates(), (*Kubelet).handleLiveness},
		{kl.probes.Readiness.Updates(), (*Kubelet).handleReadiness},
		{kl.probes.Startup.Updates(), (*Kubelet).handleStartup},
		{kl.loop.housekeeping, (*Kubelet).handleHousekeeping},
	}
}

// runSyncLoop handles one message from one source at a time.
func (kl *Kubelet) runSyncLoop(ctx context.Context) {
	kl.logf("Starting kubelet main sync loop")
	sources := kl.syncSources()
	ready := make([]loop.Waitable, len(sources))
	for i := range sources {
		ready[i] = sources[i].ready
	}
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
		i, err := loop.WaitAny(ctx, ready...)
		if err != nil {
			return
		}
		kl.loop.stamp = kl.l.Now()
		sources[i].handle(kl, ctx)
		kl.loop.stamp = kl.l.Now()
	}
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

func (kl *Kubelet) handleSyncTick(context.Context) { kl.handlePodSyncs(kl.podsDue()) }

func (kl *Kubelet) handlePLEG(context.Context) {
	e, ok := kl.pleg.Events().TryGet()
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
	if _, err := kl.bodies.cleanUpPods(ctx); err != nil {
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
	kl.pods.Each(func(pod *v1.Pod) {
		if pod.Spec.ActiveDeadlineSeconds != nil && !kl.deadlineIsOver(pod) &&
			status.PastActiveDeadline(pod, kl.podStatus(pod), kl.l.Now()) && !slices.Contains(out, pod) {
			out = append(out, pod)
		}
	})
	return out
}

// deadlineIsOver reports whether a pod has ended, so that its active deadline
// means nothing any more.
func (kl *Kubelet) deadlineIsOver(pod *v1.Pod) bool {
	return kl.workers.Known(pod.UID) && kl.workers.ShouldPodBeFinished(pod.UID)
}

// Healthy is the syncloop health check: an error when the loop has not turned
// for max(2 × syncFrequency, 5 min). A loop that never turned is healthy.
func (kl *Kubelet) Healthy() error {
	limit := max(2*kl.cfg.SyncFrequency.Duration, syncLoopMinHealth)
	if !kl.loop.stamp.IsZero() && !kl.loop.ticks.Waited() && kl.l.Since(kl.loop.stamp) > limit {
		return errSyncLoopSlow
	}
	return nil
}
