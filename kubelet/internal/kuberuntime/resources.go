package kuberuntime

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// The bounds of OOM scores (upstream pkg/kubelet/qos/policy.go).
const (
	guaranteedOOM = -997
	bestEffortOOM = 1000
)

// systemNodeCritical is the priority class of pods that a node can't do
// without.
const systemNodeCritical = "system-node-critical"

// linuxResources are the cgroup values of requests and limits.
func (n *NodeConfig) linuxResources(requests, limits v1.ResourceList) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{}
	cpuLimit := limits.Cpu().MilliValue()
	shares := cpuLimit
	if q, ok := requests[v1.ResourceCPU]; ok {
		shares = q.MilliValue()
	}
	out.CpuShares = cm.MilliCPUToShares(shares)
	if !n.NoCPUQuota {
		out.CpuPeriod = n.CFSPeriod.Microseconds()
		out.CpuQuota = cm.MilliCPUToQuota(cpuLimit, n.CFSPeriod)
	}
	out.MemoryLimitInBytes = limits.Memory().Value()
	return out
}

// podResources are those of the pod's cgroup, without the overhead.
func (n *NodeConfig) podResources(pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	o := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	return n.linuxResources(resourcehelper.PodRequests(pod, o), resourcehelper.PodLimits(pod, o))
}

func hasResources(pod *v1.Pod) bool {
	if pod.Spec.Resources != nil {
		return true
	}
	for _, list := range [...][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if len(list[i].Resources.Requests)+len(list[i].Resources.Limits) > 0 {
				return true
			}
		}
	}
	return false
}

// containerResources are those of a container's cgroup. A container without a
// limit of its own has the pod's.
func (n *NodeConfig) containerResources(pod *v1.Pod, c *v1.Container) *runtimeapi.LinuxContainerResources {
	limits := c.Resources.Limits
	if r := pod.Spec.Resources; r != nil && len(r.Limits) > 0 {
		limits = v1.ResourceList{}
		for _, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if q, ok := c.Resources.Limits[name]; ok {
				limits[name] = q
			} else if q, ok := r.Limits[name]; ok {
				limits[name] = q
			}
		}
	}
	out := n.linuxResources(c.Resources.Requests, limits)
	out.OomScoreAdj = n.oomScore(pod, c)
	n.memoryResources(out, pod, c)
	return out
}

// oomScore says how willingly the kernel kills a container (upstream
// qos.GetContainerOOMScoreAdjust).
func (n *NodeConfig) oomScore(pod *v1.Pod, c *v1.Container) int64 {
	if isNodeCritical(pod) {
		return guaranteedOOM
	}
	switch qos.Class(pod) {
	case v1.PodQOSGuaranteed:
		return guaranteedOOM
	case v1.PodQOSBestEffort:
		return bestEffortOOM
	}
	share := unassignedMemory(pod)
	score := n.burstableScore(c, share)
	if _, kind := kubecontainer.FindContainer(pod, c.Name); kind == kubecontainer.KindInit && kubecontainer.IsRestartableInit(c) {
		score = min(score, n.modestScore(pod, share))
	}
	if score < bestEffortOOM+guaranteedOOM {
		return bestEffortOOM + guaranteedOOM
	}
	if score == bestEffortOOM {
		return bestEffortOOM - 1
	}
	return score
}

// burstableScore goes by the container's memory request and its share of what
// the pod requests beyond its containers.
func (n *NodeConfig) burstableScore(c *v1.Container, share int64) int64 {
	if n.MemoryCapacity <= 0 {
		return bestEffortOOM
	}
	return 1000 - 1000*(c.Resources.Requests.Memory().Value()+share)/n.MemoryCapacity
}

// unassignedMemory is how much of a pod-level memory request, beyond what its
// containers request, falls to each of them.
func unassignedMemory(pod *v1.Pod) int64 {
	if pod.Spec.Resources == nil {
		return 0
	}
	all := pod.Spec.Resources.Requests.Memory().Value()
	if all == 0 {
		return 0
	}
	sum := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	return (all - sum.Memory().Value()) / int64(len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
}

// modestScore is the score of the regular container with the smallest request.
func (n *NodeConfig) modestScore(pod *v1.Pod, share int64) int64 {
	score := int64(0)
	for i := range pod.Spec.Containers {
		score = max(score, n.burstableScore(&pod.Spec.Containers[i], share))
	}
	return score
}

// isNodeCritical tells whether a pod is critical and of the class
// system-node-critical.
func isNodeCritical(pod *v1.Pod) bool {
	return pod.Spec.PriorityClassName == systemNodeCritical && kubetypes.IsCriticalPod(pod)
}

// podCgroups names the cgroups of the pods of a class.
type podCgroups struct {
	names cm.Names
	class v1.PodQOSClass
	none  bool // pods have no cgroups of their own
}

func (n *NodeConfig) podCgroups(class v1.PodQOSClass) podCgroups {
	return podCgroups{cm.Names{Root: n.CgroupRoot, Systemd: n.SystemdCgroups}, class, !n.CgroupsPerQOS}
}

func (p *podCgroups) parent(uid types.UID) string {
	if p.none {
		return ""
	}
	return p.names.Pod(p.class, uid)
}
