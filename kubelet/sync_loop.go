package kubelet

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/containerdeletor"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/prober"
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

// syncLoop is the kubelet's main loop: it takes in what its sources tell, one
// message at a time, and hands it on to the pods' workers.
type syncLoop struct {
	*base
	*knownPods
	node       *nodeView
	volumes    *podVolumes
	containers *containerManager
	probes     *prober.Manager
	pleg       podLifecycleEventGenerator
	eviction   *eviction.Manager
	deletor    *containerdeletor.Deletor
	admission  admitter
	// runtimeName is that of containers' IDs.
	runtimeName string
	// cleanUpPods is one housekeeping pass, see housekeeping.
	cleanUpPods func(ctx context.Context) (acted bool, err error)
	// ticks have pods synced that are due; housekeeping has what is left of pods
	// that are gone cleaned up.
	ticks, housekeeping *loop.Ticks
	stamp               time.Time // when the loop last turned; zero: never
}

// syncSource is something that gives the sync loop something to do.
type syncSource struct {
	ready  loop.Waitable
	handle func(sl *syncLoop, ctx context.Context)
}

// syncSources are upstream's channels. Of several that are ready the first is
// taken; upstream picks at random.
func (sl *syncLoop) syncSources() [7]syncSource {
	return [...]syncSource{
		{sl.podConfig.Updates(), (*syncLoop).handleConfig},
		{sl.pleg.Events(), (*syncLoop).handlePLEG},
		{sl.ticks, (*syncLoop).handleSyncTick},
		{sl.probes.Liveness.Updates(), (*syncLoop).handleLiveness},
		{sl.probes.Readiness.Updates(), (*syncLoop).handleReadiness},
		{sl.probes.Startup.Updates(), (*syncLoop).handleStartup},
		{sl.housekeeping, (*syncLoop).handleHousekeeping},
	}
}

// run handles one message from one source at a time.
func (sl *syncLoop) run(ctx context.Context) {
	sl.logf("Starting kubelet main sync loop")
	sources := sl.syncSources()
	ready := make([]loop.Waitable, len(sources))
	for i := range sources {
		ready[i] = sources[i].ready
	}
	delay := syncLoopBaseDelay
	for {
		if err := sl.node.state.runtimeErrors(); err != nil {
			sl.logf("Skipping pod synchronization: %v", err)
			if sl.l.Sleep(ctx, delay) != nil {
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
		sl.stamp = sl.l.Now()
		sources[i].handle(sl, ctx)
		sl.stamp = sl.l.Now()
	}
}

func (sl *syncLoop) handleConfig(ctx context.Context) {
	u, ok := sl.podConfig.Updates().TryGet()
	if !ok {
		return
	}
	if sl.log != nil && len(u.Pods) > 0 {
		sl.log("SyncLoop %s source=%s pods=%s", u.Op, u.Source, podNames(u.Pods))
	}
	switch u.Op {
	case kubetypes.ADD:
		sl.handlePodAdditions(ctx, u.Pods)
	case kubetypes.UPDATE, kubetypes.DELETE:
		sl.handlePodUpdates(ctx, u.Pods)
	case kubetypes.REMOVE:
		sl.handlePodRemoves(ctx, u.Pods)
	case kubetypes.RECONCILE:
		sl.handlePodReconcile(ctx, u.Pods)
	}
	sl.podConfig.MarkSeen(u.Source)
	sl.volumes.SourcesSeen()
}

func (sl *syncLoop) handleSyncTick(context.Context) {
	for _, pod := range sl.podsDue() {
		sl.handlePodSync(pod)
	}
}

func (sl *syncLoop) handlePLEG(context.Context) {
	e, ok := sl.pleg.Events().TryGet()
	if !ok {
		return
	}
	if e.Type != pleg.ContainerRemoved {
		if pod, ok := sl.pods.GetPodByUID(e.ID); ok {
			if sl.log != nil {
				sl.log("SyncLoop (PLEG): event for pod pod=%s event=%s %s", podName(pod), e.Type, e.Data)
			}
			sl.handlePodSync(pod)
		}
	}
	if e.Type == pleg.ContainerDied {
		sl.cleanUpContainersInPod(e.ID, e.Data)
	}
}

// cleanUpContainersInPod removes a pod's dead containers after one died.
func (sl *syncLoop) cleanUpContainersInPod(uid types.UID, exitedID string) {
	if status, err := sl.podCache.Get(uid); err == nil {
		sl.deletor.DeleteContainersInPod(exitedID, status, sl.workers.ShouldPodContentBeRemoved(uid))
	}
}

func (sl *syncLoop) handleHousekeeping(ctx context.Context) {
	if !sl.podConfig.AllReady() {
		return
	}
	start := sl.l.Now()
	if _, err := sl.cleanUpPods(ctx); err != nil {
		sl.logf("Failed cleaning pods: %v", err)
	}
	if d := sl.l.Since(start); d > time.Second {
		sl.logf("Housekeeping took longer than expected expected=1s actual=%v", d)
	}
}

// podsDue returns the pods that the work queue or their active deadline says
// are to be synced, by due time, then UID.
func (sl *syncLoop) podsDue() []*v1.Pod {
	var out []*v1.Pod
	now := sl.l.UnixNano()
	for _, uid := range sl.workers.Queue.Take(now) {
		if pod, ok := sl.pods.GetPodByUID(uid); ok {
			out = append(out, pod)
		}
	}
	sl.pods.Each(func(pod *v1.Pod) {
		if pod.Spec.ActiveDeadlineSeconds != nil && !sl.workers.DeadlineIsOver(pod) &&
			status.PastActiveDeadline(pod, sl.statusManager.PodStatus(pod), sl.l.Now()) && !slices.Contains(out, pod) {
			out = append(out, pod)
		}
	})
	return out
}

// healthy is the syncloop health check: an error when the loop has not turned
// for max(2 × syncFrequency, 5 min). A loop that never turned is healthy.
func (sl *syncLoop) healthy() error {
	if sl.stamp.IsZero() || sl.ticks.Waited() {
		return nil
	}
	if sl.l.Since(sl.stamp) > max(2*sl.cfg.SyncFrequency.Duration, syncLoopMinHealth) {
		return errSyncLoopSlow
	}
	return nil
}
