package eviction

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// hasLimit reports whether a pod has a limit on local storage.
func hasLimit(pod *v1.Pod) bool {
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

// localStorageEviction evicts the pods that use more local storage than they
// may: for each pod the first check that refuses decides.
func (m *Manager) localStorageEviction(ctx context.Context, pods []*v1.Pod, stats podStats) []types.UID {
	var evicted []types.UID
	for _, pod := range pods {
		s := stats(pod)
		if s == nil {
			continue
		}
		for _, check := range [...]struct {
			signal Signal
			fn     func(*v1.Pod, *statsapi.PodStats) string
		}{{EmptyDirFsLimit, overEmptyDir}, {EphemeralPodFsLimit, overPodLimit}, {EphemeralContainerLimit, m.overContainerLimit}} {
			if message := check.fn(pod, s); message != "" && m.evict(ctx, pod, hardGracePeriod, message, nil, false) {
				m.count(check.signal)
				evicted = append(evicted, pod.UID)
				break
			}
		}
	}
	return evicted
}

// overEmptyDir judges the volumes against their sizeLimit.
func overEmptyDir(pod *v1.Pod, s *statsapi.PodStats) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		for k := range s.VolumeStats {
			used := s.VolumeStats[k].UsedBytes
			if s.VolumeStats[k].Name != v.Name || used == nil {
				continue
			}
			if limit := v.EmptyDir.SizeLimit.DeepCopy(); limit.CmpInt64(int64(*used)) < 0 {
				return fmt.Sprintf(emptyDirMessage, v.Name, limit.String())
			}
		}
	}
	return ""
}

// overPodLimit judges what the whole pod uses against the sum of its limits.
func overPodLimit(pod *v1.Pod, s *statsapi.PodStats) string {
	if s.EphemeralStorage == nil || s.EphemeralStorage.UsedBytes == nil || !hasLimit(pod) {
		return ""
	}
	limit, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
	if !ok || limit.CmpInt64(int64(*s.EphemeralStorage.UsedBytes)) >= 0 {
		return ""
	}
	return fmt.Sprintf(podEphemeralMessage, limit.String())
}

// overContainerLimit judges each running regular container against its limit.
// With images on a disk of their own the writable layer is not counted.
func (m *Manager) overContainerLimit(pod *v1.Pod, s *statsapi.PodStats) string {
	for i := range s.Containers {
		c := &s.Containers[i]
		used := int64(0)
		if c.Logs != nil && c.Logs.UsedBytes != nil {
			used += int64(*c.Logs.UsedBytes)
		}
		if !m.layout.Dedicated && c.Rootfs != nil && c.Rootfs.UsedBytes != nil {
			used += int64(*c.Rootfs.UsedBytes)
		}
		for k := range pod.Spec.Containers {
			limit := pod.Spec.Containers[k].Resources.Limits[v1.ResourceEphemeralStorage]
			if pod.Spec.Containers[k].Name == c.Name && !limit.IsZero() && limit.CmpInt64(used) < 0 {
				return fmt.Sprintf(containerEphemeralMessage, c.Name, limit.String())
			}
		}
	}
	return ""
}
