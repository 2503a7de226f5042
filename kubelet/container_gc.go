package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/tracing"
)

// removalCounter counts the attempts to remove something from the runtime.
type removalCounter struct {
	internalapi.RuntimeService
	attempts uint64
}

// RemoveContainer counts before the call, because a removal that fails is one
// that the next pass tries again.
func (r *removalCounter) RemoveContainer(ctx context.Context, id string) error {
	r.attempts++
	return r.RuntimeService.RemoveContainer(ctx, id)
}

func (r *removalCounter) RemovePodSandbox(ctx context.Context, id string) error {
	r.attempts++
	return r.RuntimeService.RemovePodSandbox(ctx, id)
}

func (r *removalCounter) StopPodSandbox(ctx context.Context, id string) error {
	r.attempts++
	return r.RuntimeService.StopPodSandbox(ctx, id)
}

// containerGC removes dead containers and sandboxes.
type containerGC struct {
	*base
	*knownPods
	runtime *kuberuntime.Manager
	// removals counts what it tries to remove; the runtime manager calls through it.
	removals *removalCounter
	// pass is collectContainers, unless something stands before it.
	pass func(ctx context.Context) (settled bool)
}

func newContainerGC(b *base, known *knownPods, runtime *kuberuntime.Manager, removals *removalCounter) *containerGC {
	gc := &containerGC{base: b, knownPods: known, runtime: runtime, removals: removals}
	gc.pass = gc.collectContainers
	return gc
}

func (gc *containerGC) collect(ctx context.Context, allSourcesReady, all bool) (err error) {
	tracing.Span(ctx, gc.opts.Tracer, "Containers/GarbageCollect", func(ctx context.Context) {
		err = gc.runtime.GarbageCollect(ctx, gc.gcPolicy(), allSourcesReady, all)
	})
	return err
}

// deleteAll removes dead containers and sandboxes as a pass does, and all that is
// left of pods that have terminated, for eviction.
func (gc *containerGC) deleteAll(ctx context.Context) error {
	gc.logf("Attempting to delete unused containers")
	return gc.collect(ctx, gc.podConfig.AllReady(), true)
}

// collectContainers is one pass of container garbage collection. It reports
// whether it tried to remove nothing while all sources were known.
func (gc *containerGC) collectContainers(ctx context.Context) (settled bool) {
	ready, attempts := gc.podConfig.AllReady(), gc.removals.attempts
	err := gc.collect(ctx, ready, false)
	if err != nil {
		gc.logf("Container garbage collection failed: %v", err)
		gc.nodeEvent(v1.EventTypeWarning, events.ContainerGCFailed, err.Error())
	}
	return ready && err == nil && attempts == gc.removals.attempts
}
