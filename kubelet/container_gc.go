package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// removalCounter counts the attempts to remove something from the runtime.
type removalCounter struct {
	internalapi.RuntimeService
	attempts uint64
}

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

// gcPolicy says which dead containers stay.
func (kl *Kubelet) gcPolicy() kuberuntime.GCPolicy {
	if kl.opts.GC != nil {
		return *kl.opts.GC
	}
	return kuberuntime.DefaultGCPolicy()
}

// DeleteAllUnusedContainers removes dead containers and sandboxes as a pass of
// garbage collection does, and all that is left of pods that have terminated,
// for eviction.
func (kl *Kubelet) DeleteAllUnusedContainers(ctx context.Context) error {
	kl.logf("Attempting to delete unused containers")
	return kl.runtime.GarbageCollect(ctx, kl.gcPolicy(), kl.podConfig.AllReady(), true)
}

// nothingToCollect tells whether a pass of container garbage collection now
// would find nothing to do. A pass decides by the runtime's listings, by the
// workers' records and by whether all sources are known; with a least age also
// by the time, and then each is made. So after a pass that tried to remove
// nothing another one over the same is left out.
func (kl *Kubelet) nothingToCollect() bool {
	mark := kl.cleanMark()
	mark.pods = 0
	return mark.valid && kl.podConfig.AllReady() && mark == kl.gcClean && kl.gcPolicy().MinAge == 0
}

// collectContainers is one pass of container garbage collection.
func (kl *Kubelet) collectContainers(ctx context.Context) {
	mark, ready, attempts := kl.cleanMark(), kl.podConfig.AllReady(), kl.removals.attempts
	mark.pods = 0
	err := kl.runtime.GarbageCollect(ctx, kl.gcPolicy(), ready, false)
	kl.gcClean = mark
	kl.gcClean.valid = mark.valid && ready && err == nil && attempts == kl.removals.attempts
	if err != nil {
		kl.logf("Container garbage collection failed: %v", err)
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.ContainerGCFailed, err.Error())
	}
}
