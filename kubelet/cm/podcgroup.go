package cm

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/qos"
)

// PodCgroup are the values of a pod's cgroup. 0 means: not limited, or not to
// be changed.
type PodCgroup struct {
	// MilliCPU is what the cpu shares stand for, MilliCPULimit what the quota
	// does.
	MilliCPU, MilliCPULimit int64
	// MemoryLimit in bytes.
	MemoryLimit int64
	// Hugepages are limits in bytes by the size of the pages in bytes; sizes
	// that are not there may not be used.
	Hugepages map[int64]int64
	// MemoryMin and MemoryLow are those of cgroup v2, in bytes.
	MemoryMin, MemoryLow int64
}

// PodCgroups holds the cgroups of the pods that were resized; any other's is
// that of its resources, so nothing is kept of it.
type PodCgroups struct {
	pods map[types.UID]PodCgroup
	// Machine changes a pod's cgroup on the machine; nil: there is none.
	Machine func(ctx context.Context, pod *v1.Pod, g PodCgroup) error
}

// Get returns a pod's cgroup: as it was last set, or as a pod's with these
// resources is made.
func (c *PodCgroups) Get(pod *v1.Pod) PodCgroup {
	if g, ok := c.pods[pod.UID]; ok {
		return g
	}
	return ForPod(pod)
}

// Known reports whether the pod's cgroup was set by a resize.
func (c *PodCgroups) Known(uid types.UID) bool {
	_, ok := c.pods[uid]
	return ok
}

// Set changes a pod's cgroup.
func (c *PodCgroups) Set(ctx context.Context, pod *v1.Pod, g PodCgroup) error {
	if c.Machine != nil {
		if err := c.Machine(ctx, pod, g); err != nil {
			return err
		}
	}
	if c.pods == nil {
		c.pods = map[types.UID]PodCgroup{}
	}
	c.pods[pod.UID] = g
	return nil
}

// Forget drops a pod's cgroup: it is gone, or is what its resources say.
func (c *PodCgroups) Forget(uid types.UID) { delete(c.pods, uid) }

// ForPod returns the values for a pod with these resources (upstream
// cm.ResourceConfigForPod): limits only if all of the pod is limited.
func ForPod(pod *v1.Pod) PodCgroup {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	g := PodCgroup{MilliCPU: requests.Cpu().MilliValue(), Hugepages: HugepageLimits(requests)}
	class := qos.Class(pod)
	if class == v1.PodQOSBestEffort {
		return PodCgroup{Hugepages: g.Hugepages}
	}
	if class == v1.PodQOSGuaranteed || limited(pod, v1.ResourceCPU) {
		g.MilliCPULimit = limits.Cpu().MilliValue()
	}
	if class == v1.PodQOSGuaranteed || limited(pod, v1.ResourceMemory) {
		g.MemoryLimit = limits.Memory().Value()
	}
	return g
}

// limited reports whether the pod, or every one of its containers, has a limit.
func limited(pod *v1.Pod, name v1.ResourceName) bool {
	if r := pod.Spec.Resources; r != nil {
		if q, ok := r.Limits[name]; ok && !q.IsZero() {
			return true
		}
	}
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if q := list[i].Resources.Limits[name]; q.IsZero() {
				return false
			}
		}
	}
	return true
}
