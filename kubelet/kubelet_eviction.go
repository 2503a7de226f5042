package kubelet

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/qos"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// crioSocket is the end of the endpoint of the one runtime whose file systems
// upstream's cAdvisor can tell apart.
const crioSocket = "run/crio/crio.sock"

// evictionConfig is what a configuration says of eviction.
func evictionConfig(cfg *kubeletconfig.KubeletConfiguration) eviction.Config {
	return eviction.Config{
		Hard: cfg.EvictionHard, Soft: cfg.EvictionSoft, SoftGracePeriod: cfg.EvictionSoftGracePeriod, MinimumReclaim: cfg.EvictionMinimumReclaim,
		Allocatable:        slices.Contains(cfg.EnforceNodeAllocatable, "pods"),
		PressureTransition: cfg.EvictionPressureTransitionPeriod.Duration,
		MaxPodGracePeriod:  int64(cfg.EvictionMaxPodGracePeriod),
		LocalStorage:       ptr.Deref(cfg.LocalStorageCapacityIsolation, true),
		MemcgNotification:  cfg.KernelMemcgNotification,
	}
}

// buildStats makes what says how much the node and its pods use.
func (kl *Kubelet) buildStats() {
	period := kl.cfg.VolumeStatsAggPeriod.Duration
	if period == 0 {
		period = time.Minute
	}
	kl.volumeStats = stats.NewVolumes(stats.VolumesOptions{Loop: kl.l, Group: kl.g, FS: kl.fs, Period: period, PodDir: kl.podDir})
	o := stats.Options{
		Loop: kl.l, NodeName: kl.nodeName, Runtime: kl.opts.RuntimeService, Images: kl.opts.ImageService, Machine: kl.opts.MachineStats,
		FS: kl.fs, Volumes: kl.volumeStats, RootDir: kl.opts.RootDir,
		Labelled:  strings.HasSuffix(kl.cfg.ContainerRuntimeEndpoint, crioSocket),
		LogDir:    func(namespace, name string, uid types.UID) string { return kl.podLogDir(namespace, name, uid) },
		HostsFile: func(uid types.UID) string { return path.Join(kl.podDir(uid), "etc-hosts") },
	}
	if ptr.Deref(kl.cfg.CgroupsPerQOS, true) {
		o.PodsCgroup = kl.cgroupNames().Pods()
		o.PodCgroup = func(uid types.UID) string {
			if pod, ok := kl.pods.GetPodByUID(uid); ok {
				return kl.cgroupNames().Pod(qos.Class(pod), uid)
			}
			return ""
		}
	}
	kl.stats = stats.NewProvider(o)
}

func (kl *Kubelet) podLogDir(namespace, name string, uid types.UID) string {
	return path.Join(kl.cfg.PodLogsDir, namespace+"_"+name+"_"+string(uid))
}

// buildEviction makes what ends pods that use too much of the node, or more
// than they may.
func (kl *Kubelet) buildEviction() error {
	kl.buildStats()
	o := eviction.Options{
		Loop: kl.l, Group: kl.g, Config: kl.settings.eviction, Thresholds: kl.settings.thresholds,
		Stats: kl.stats, Node: kl.opts.MachineStats != nil, Volumes: kl.volumeStats, Came: kl.workers.Since,
		DeleteUnusedContainers: kl.DeleteAllUnusedContainers, DeleteUnusedImages: kl.DeleteUnusedImages,
		ActivePods: kl.allocatedPods,
		Kill: func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			return kl.workers.KillPodNow(ctx, pod, true, &grace, fn)
		},
		Finished: func(uid types.UID) bool { return !kl.workers.Known(uid) || kl.workers.ShouldPodBeFinished(uid) },
		Event: func(pod *v1.Pod, annotations map[string]string, eventtype, reason, message string) {
			kl.recorder.AnnotatedEvent(kubecontainer.PodRef(pod), annotations, eventtype, reason, message)
		},
		NodeEvent: func(eventtype, reason, message string) { kl.recorder.Event(kl.node.ref, eventtype, reason, message) },
		Log:       kl.log,
		Changed:   kl.elided.conditions.Grow,
	}
	if ptr.Deref(kl.cfg.CgroupsPerQOS, true) {
		o.PodsCgroup = kl.cgroupNames().Pods()
	}
	// A machine that watches its own floors need not be polled for pressure.
	watcher, ok := kl.opts.MachineStats.(stats.Watcher)
	if o.AllVolumes = kl.opts.MachineStats != nil && !ok; ok && kl.l.Elides() {
		o.Watcher = watcher
	}
	o.Memcg, _ = kl.opts.MachineStats.(stats.MemcgNotifier)
	var err error
	kl.eviction, err = eviction.New(o)
	return err
}

// watchLocalStorage has the pods looked at that have limits on local storage.
func (kl *Kubelet) watchLocalStorage(pods []*v1.Pod) {
	for _, pod := range pods {
		kl.eviction.AddPod(pod)
	}
}
