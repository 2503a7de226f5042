package kubelet

import (
	"context"
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/container"
	"github.com/drydock-sim/drydock/kubelet/eviction"
	"k8s.io/utils/ptr"
)

// buildEviction makes what ends pods that use too much of the node.
func (kl *Kubelet) buildEviction() {
	kl.eviction = eviction.New(eviction.Options{
		Loop: kl.l, Group: kl.g, FS: kl.fs, Stats: kl.opts.RuntimeService,
		PodDir: kl.podDir,
		LogDir: func(pod *v1.Pod) string {
			return path.Join(kl.cfg.PodLogsDir, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
		},
		VolumeStatsPeriod: kl.cfg.VolumeStatsAggPeriod.Duration,
		ActivePods:        kl.allocatedPods,
		Kill: func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			return kl.workers.KillPodNow(ctx, pod, true, &grace, fn)
		},
		Finished: func(uid types.UID) bool { return !kl.workers.Known(uid) || kl.workers.ShouldPodBeFinished(uid) },
		Event: func(pod *v1.Pod, eventtype, reason, message string) {
			kl.recorder.Event(kubecontainer.PodRef(pod), eventtype, reason, message)
		},
		Log: kl.log,
	})
}

// watchLocalStorage has the pods looked at that have limits on local storage.
func (kl *Kubelet) watchLocalStorage(pods []*v1.Pod) {
	if !ptr.Deref(kl.cfg.LocalStorageCapacityIsolation, true) {
		return
	}
	for _, pod := range pods {
		kl.eviction.AddPod(pod)
	}
}
