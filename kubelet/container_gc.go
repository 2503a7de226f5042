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

// collectContainers is one pass of container garbage collection. It reports
// whether it tried to remove nothing while all sources were known.
func (kl *Kubelet) collectContainers(ctx context.Context) (settled bool) {
	ready, attempts := kl.podConfig.AllReady(), kl.removals.attempts
	err := kl.runtime.GarbageCollect(ctx, kl.gcPolicy(), ready, false)
	if err != nil {
		kl.logf("Container garbage collection failed: %v", err)
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.ContainerGCFailed, err.Error())
	}
	return ready && err == nil && attempts == kl.removals.attempts
}
