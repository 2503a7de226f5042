package kubelet

import (
	"context"
	"path"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/nodeshutdown"
)

// newShutdown makes what ends pods before the machine goes down, if the
// configuration gives them time for that.
//
// syncNode tells the API of the node at once.
func newShutdown(b *base, known *knownPods, volumes *podVolumes, syncNode func(context.Context)) *nodeshutdown.Manager {
	o := nodeshutdown.Options{
		Loop: b.l, Group: b.g, Logind: b.opts.Logind, GracePeriods: nodeshutdown.GracePeriods(b.cfg, b.settings.gates),
		ActivePods: known.activePods,
		KillPod: func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			return known.workers.KillPodNow(ctx, pod, false, &grace, fn)
		},
		WaitForAllPodsUnmount: volumes.WaitForAllPodsUnmount,
		FlushStatuses:         known.statusManager.Flush,
		SyncNodeStatus:        syncNode,
		Event:                 b.nodeEvent,
		FS:                    b.fs,
		Log:                   b.log,
	}
	if b.settings.gates.Enabled(features.GracefulNodeShutdownBasedOnPodPriority) {
		o.StateFile = path.Join(b.opts.RootDir, nodeshutdown.StateFile)
	}
	return nodeshutdown.New(o)
}
