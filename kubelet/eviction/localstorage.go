package eviction

import (
	"context"
	"fmt"
	"path"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
	"github.com/drydock-sim/drydock/sim/loop"
)

// watched is a pod that has a limit on local storage.
type watched struct {
	uid types.UID
	// timer is set to the next look at the pod's volumes; nil: it has no
	// emptyDir.
	timer *loop.Timer
	draws uint64
	// volumes are the usages in bytes that were found, by volume.
	volumes map[string]int64
}

// limited tells whether a pod has a limit on local storage.
func limited(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if e := pod.Spec.Volumes[i].EmptyDir; e != nil && e.SizeLimit != nil && e.SizeLimit.Sign() > 0 {
			return true
		}
	}
	for _, list := range [...][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if _, ok := list[i].Resources.Limits[v1.ResourceEphemeralStorage]; ok {
				return true
			}
		}
	}
	return false
}

func hasEmptyDir(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].EmptyDir != nil {
			return true
		}
	}
	return false
}

// measure looks at a pod's volumes, and sets the next look: after one to two
// periods.
func (m *Manager) measure(ctx context.Context, w *watched) {
	dir := path.Join(m.o.PodDir(w.uid), "volumes", "kubernetes.io~empty-dir")
	var volumes map[string]int64
	if entries, err := m.o.FS.ReadDir(dir); err == nil {
		volumes = make(map[string]int64, len(entries))
		for _, e := range entries {
			volumes[e.Name()] = m.usage(ctx, path.Join(dir, e.Name()))
		}
	}
	if m.watched[w.uid] != w {
		return // it has gone meanwhile
	}
	w.volumes = volumes
	w.draws++
	w.timer.Reset(m.o.Loop.Jitter(m.o.VolumeStatsPeriod, 1, "volume-stats", string(w.uid), w.draws))
}

// usage is what du(1) says of a path, in bytes. Where that takes time, it waits.
func (m *Manager) usage(ctx context.Context, name string) int64 {
	if u, ok := m.o.FS.(filesystem.UsageWaiter); ok {
		bytes, _, err := u.UsageWait(ctx, name)
		if err != nil {
			return 0
		}
		return bytes
	}
	u, ok := m.o.FS.(usager)
	if !ok {
		return 0
	}
	bytes, _ := u.Usage(name)
	return bytes
}

// localStorageEviction evicts the pods that use more local storage than they
// may: for each pod the first check that refuses decides.
func (m *Manager) localStorageEviction(ctx context.Context) []types.UID {
	var evicted []types.UID
	for _, pod := range m.o.ActivePods() {
		w := m.watched[pod.UID]
		if w == nil {
			continue
		}
		for _, check := range [...]func(context.Context, *v1.Pod, *watched) string{m.emptyDirs, m.podLimit, m.containerLimits} {
			if message := check(ctx, pod, w); message != "" && m.evict(ctx, pod, localGracePeriod, message) {
				evicted = append(evicted, pod.UID)
				break
			}
		}
	}
	return evicted
}

// emptyDirs judges the volumes against their sizeLimit.
func (m *Manager) emptyDirs(_ context.Context, pod *v1.Pod, w *watched) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		if limit := v.EmptyDir.SizeLimit.DeepCopy(); w.volumes[v.Name] > limit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())
		}
	}
	return ""
}

// podLimit judges what the whole pod uses against the sum of its limits.
func (m *Manager) podLimit(ctx context.Context, pod *v1.Pod, w *watched) string {
	limit, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
	if !ok {
		return ""
	}
	var used int64
	for _, c := range m.containers(ctx, pod) {
		used += c.logs + c.layer
	}
	for i := range pod.Spec.Volumes { // configMaps are small enough not to be looked at
		if v := &pod.Spec.Volumes[i]; v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault {
			used += w.volumes[v.Name]
		}
	}
	used += m.usage(ctx, path.Join(m.o.PodDir(pod.UID), "etc-hosts"))
	if used <= limit.Value() {
		return ""
	}
	return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
}

// containerLimits judges each running regular container against its limit.
func (m *Manager) containerLimits(ctx context.Context, pod *v1.Pod, _ *watched) string {
	if !slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool {
		return !c.Resources.Limits.StorageEphemeral().IsZero()
	}) {
		return ""
	}
	for _, c := range m.containers(ctx, pod) {
		for i := range pod.Spec.Containers {
			limit := pod.Spec.Containers[i].Resources.Limits[v1.ResourceEphemeralStorage]
			if pod.Spec.Containers[i].Name == c.name && !limit.IsZero() && c.logs+c.layer > limit.Value() {
				return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.name, limit.String())
			}
		}
	}
	return ""
}

// containerUsage is what one running container takes of the disk, in bytes.
type containerUsage struct {
	name        string
	layer, logs int64
}

// The labels by which the runtime finds containers.
const (
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

func (m *Manager) containers(ctx context.Context, pod *v1.Pod) []containerUsage {
	if m.o.Stats == nil {
		return nil
	}
	stats, err := m.o.Stats.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{labelPodUID: string(pod.UID)}})
	if err != nil {
		m.log("Eviction manager: failed to get container stats pod=%s/%s: %v", pod.Namespace, pod.Name, err)
		return nil
	}
	out := make([]containerUsage, 0, len(stats))
	for _, s := range stats {
		if s.GetWritableLayer() == nil {
			continue
		}
		name := s.GetAttributes().GetLabels()[labelContainerName]
		out = append(out, containerUsage{
			name:  name,
			layer: int64(s.WritableLayer.GetUsedBytes().GetValue()),
			logs:  m.usage(ctx, path.Join(m.o.LogDir(pod), name)),
		})
	}
	return out
}
