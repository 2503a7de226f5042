package kubelet

import (
	"context"
	"path"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/nodeshutdown"
)

// buildShutdown makes what ends pods before the machine goes down, if the
// configuration gives them time for that.
func (kl *Kubelet) buildShutdown() {
	o := nodeshutdown.Options{
		Loop: kl.l, Group: kl.g, Logind: kl.opts.Logind, GracePeriods: nodeshutdown.GracePeriods(kl.cfg, kl.gates),
		ActivePods: kl.activePods,
		KillPod: func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			return kl.workers.KillPodNow(ctx, pod, false, &grace, fn)
		},
		WaitForAllPodsUnmount: kl.volumes.WaitForAllPodsUnmount,
		FlushStatuses:         kl.statusManager.Flush,
		SyncNodeStatus:        func(ctx context.Context) { kl.nodeStatus.Sync(ctx) },
		Event: func(eventtype, reason, message string) {
			kl.recorder.Event(kl.node.ref, eventtype, reason, message)
		},
		FS:  kl.fs,
		Log: kl.log,
	}
	if kl.gates.Enabled(features.GracefulNodeShutdownBasedOnPodPriority) {
		o.StateFile = path.Join(kl.opts.RootDir, nodeshutdown.StateFile)
	}
	kl.shutdown = nodeshutdown.New(o)
}

// startShutdown starts to hold the machine's shutdown up; if that fails nobody
// does.
func (kl *Kubelet) startShutdown(ctx context.Context) {
	if err := kl.shutdown.Start(ctx); err != nil {
		kl.logf("Failed to start node shutdown manager: %v", err)
	}
}
