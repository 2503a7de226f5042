// Package resources computes what a pod's and a container's cgroups are given,
// as LinuxContainerResources of the CRI: CPU shares and quota, memory limit, OOM
// score (resources.go), swap and the memory that is kept for requests
// (memory.go). It mirrors upstream's kuberuntime_container_linux.go and
// pkg/kubelet/qos/policy.go.
//
// A [Node] depends on its options and the pod alone, so that what it returns can
// be shared by replicas; it never writes to what it has returned.
package resources

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// The bounds of OOM scores (upstream pkg/kubelet/qos/policy.go). A burstable
// container stays strictly between them, whatever it requests.
const (
	guaranteedOOM = -997
	bestEffortOOM = 1000
)

// systemNodeCritical is the priority class of pods that a node can't do
// without.
const systemNodeCritical = "system-node-critical"

// Options are the facts and settings of a node that its pods' resources follow
// from.
type Options struct {
	// NoCPUQuota is cpuCFSQuota: false.
	NoCPUQuota bool
	// CFSPeriod is cpuCFSQuotaPeriod; 0 means 100 ms.
	CFSPeriod time.Duration
	// MemoryCapacity of the node in bytes decides OOM scores.
	MemoryCapacity int64
	// MemoryOOMGroup sets memory.oom.group: cgroup v2 without
	// singleProcessOOMKill.
	MemoryOOMGroup bool
	// Swap says how containers may swap.
	Swap Swap
	// MemoryQoS is the feature gate of that name on cgroup v2; nil: it is off.
	MemoryQoS *MemoryQoS
}

// Node computes the resources of one node's pods.
type Node struct{ Options }

// New returns a Node.
func New(o Options) *Node {
	o.CFSPeriod = cmp.Or(o.CFSPeriod, cm.DefaultCFSPeriod)
	return &Node{o}
}

// Amounts are the cgroup values of CPU in millicores and memory in bytes; a
// limit of 0 is none.
func (n *Node) Amounts(milliCPU, milliLimit, memoryLimit int64) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{CpuShares: cm.MilliCPUToShares(milliCPU), MemoryLimitInBytes: memoryLimit}
	if !n.NoCPUQuota {
		out.CpuPeriod = n.CFSPeriod.Microseconds()
		out.CpuQuota = cm.MilliCPUToQuota(milliLimit, n.CFSPeriod)
	}
	return out
}

// Of are the cgroup values of requests and limits. Without a CPU request the
// limit takes its place: objects of a static pod have seen no defaulting.
func (n *Node) Of(requests, limits v1.ResourceList) *runtimeapi.LinuxContainerResources {
	limit := limits.Cpu().MilliValue()
	request := limit
	if q, ok := requests[v1.ResourceCPU]; ok {
		request = q.MilliValue()
	}
	return n.Amounts(request, limit, limits.Memory().Value())
}

// Pod are the values of the pod's cgroup, without the overhead, which runtimes
// are told of apart.
func (n *Node) Pod(pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	o := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	return n.Of(resourcehelper.PodRequests(pod, o), resourcehelper.PodLimits(pod, o))
}

// Reported reads the resources of a running container; nil if the runtime
// reports none.
func (n *Node) Reported(r *runtimeapi.LinuxContainerResources) *kubecontainer.Resources {
	if r == nil {
		return nil
	}
	out := &kubecontainer.Resources{MemoryLimit: max(r.MemoryLimitInBytes, 0)}
	if r.CpuQuota > 0 && r.CpuPeriod > 0 {
		out.MilliCPULimit = r.CpuQuota * 1000 / r.CpuPeriod
	}
	out.MilliCPURequest = cm.SharesToMilliCPU(r.CpuShares)
	return out
}

// Any reports whether a pod, or a container of it, asks for resources. Most
// sandboxes of pods that don't can share one message.
func Any(pod *v1.Pod) bool {
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

// Container are the values of a container's cgroup. A container without a limit
// of its own has the pod's (KEP-2837, pod-level resources).
func (n *Node) Container(pod *v1.Pod, c *v1.Container) *runtimeapi.LinuxContainerResources {
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
	out := n.Of(c.Resources.Requests, limits)
	out.OomScoreAdj = n.oomScore(pod, c)
	n.memoryResources(out, pod, c)
	return out
}

// oomScore is how willingly the kernel kills a container, from -1000 (never) to
// 1000 (upstream qos.GetContainerOOMScoreAdjust). A sidecar is no likelier to
// be killed than the regular container that requests least.
func (n *Node) oomScore(pod *v1.Pod, c *v1.Container) int64 {
	if IsNodeCritical(pod) {
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
func (n *Node) burstableScore(c *v1.Container, share int64) int64 {
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
func (n *Node) modestScore(pod *v1.Pod, share int64) int64 {
	score := int64(0)
	for i := range pod.Spec.Containers {
		score = max(score, n.burstableScore(&pod.Spec.Containers[i], share))
	}
	return score
}

// IsNodeCritical reports whether a pod is critical and of the class
// system-node-critical.
func IsNodeCritical(pod *v1.Pod) bool {
	return pod.Spec.PriorityClassName == systemNodeCritical && kubetypes.IsCriticalPod(pod)
}
