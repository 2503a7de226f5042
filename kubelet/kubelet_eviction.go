package kubelet

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
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

// newStats makes what says how much the node and its pods use.
func newStats(b *base, known *knownPods, pods *podVolumes) (*stats.Provider, *stats.Volumes) {
	period := b.cfg.VolumeStatsAggPeriod.Duration
	if period == 0 {
		period = time.Minute
	}
	volumes := stats.NewVolumes(stats.VolumesOptions{Loop: b.l, Group: b.g, FS: b.fs, Period: period, PodDir: b.podDir,
		Driver: func(ctx context.Context, uid types.UID, name string) (stats.DriverStats, bool) {
			s, ok := pods.DriverStats(ctx, uid, name)
			return stats.DriverStats(s), ok
		},
		Abnormal: func(pod *v1.ObjectReference, name, message string) {
			b.recorder.Event(pod, v1.EventTypeWarning, events.VolumeConditionAbnormal, fmt.Sprintf("Volume %s: %s", name, message))
		},
	})
	o := stats.Options{
		Loop: b.l, NodeName: b.nodeName, Runtime: b.opts.RuntimeService, Images: b.opts.ImageService, Machine: b.opts.MachineStats,
		FS: b.fs, Volumes: volumes, RootDir: b.opts.RootDir,
		Labelled:  strings.HasSuffix(b.cfg.ContainerRuntimeEndpoint, crioSocket),
		LogDir:    b.podLogDir,
		HostsFile: func(uid types.UID) string { return path.Join(b.podDir(uid), "etc-hosts") },
	}
	if ptr.Deref(b.cfg.CgroupsPerQOS, true) {
		o.PodsCgroup = b.cgroupNames().Pods()
		o.PodCgroup = func(uid types.UID) string {
			if pod, ok := known.pods.GetPodByUID(uid); ok {
				return b.cgroupNames().Pod(qos.Class(pod), uid)
			}
			return ""
		}
	}
	return stats.NewProvider(o), volumes
}

// newEviction makes what ends pods that use too much of the node, or more
// than they may.
//
// deleteContainers and deleteImages are how it frees space; changed is told when
// what it says of the node may be another.
func newEviction(b *base, known *knownPods, usage *stats.Provider, volumes *stats.Volumes, deleteContainers, deleteImages func(context.Context) error, changed func()) (*eviction.Manager, error) {
	o := eviction.Options{
		Loop: b.l, Group: b.g, Config: b.settings.eviction, Thresholds: b.settings.thresholds,
		Stats: usage, Node: b.opts.MachineStats != nil, Volumes: volumes, Came: known.workers.Since,
		DeleteUnusedContainers: deleteContainers, DeleteUnusedImages: deleteImages,
		ActivePods: known.allocatedPods,
		Kill: func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
			return known.workers.KillPodNow(ctx, pod, true, &grace, fn)
		},
		Finished: func(uid types.UID) bool { return !known.workers.Known(uid) || known.workers.ShouldPodBeFinished(uid) },
		Event: func(pod *v1.Pod, annotations map[string]string, eventtype, reason, message string) {
			b.recorder.AnnotatedEvent(kubecontainer.PodRef(pod), annotations, eventtype, reason, message)
		},
		NodeEvent: b.nodeEvent,
		Log:       b.log,
		Changed:   changed,
	}
	if ptr.Deref(b.cfg.CgroupsPerQOS, true) {
		o.PodsCgroup = b.cgroupNames().Pods()
	}
	// A machine that watches its own floors need not be polled for pressure.
	watcher, ok := b.opts.MachineStats.(stats.Watcher)
	if o.AllVolumes = b.opts.MachineStats != nil && !ok; ok && b.l.Elides() {
		o.Watcher = watcher
		o.Foreteller, _ = b.opts.RuntimeService.(eviction.Foreteller)
	}
	o.Memcg, _ = b.opts.MachineStats.(stats.MemcgNotifier)
	return eviction.New(o)
}
