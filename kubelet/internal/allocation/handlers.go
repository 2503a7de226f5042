package allocation

import (
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// ResizeLimits are the settings of a node under which resizes are not feasible
// (upstream allocation/handlers.go).
type ResizeLimits struct {
	// LimitedSwap is memorySwap.swapBehavior LimitedSwap on a node with swap.
	LimitedSwap bool
	// StaticCPUs and StaticMemory are the static policies of the CPU and the
	// memory manager.
	StaticCPUs, StaticMemory bool
}

// admit is the handler that comes before all others, for resizes only.
func (l *ResizeLimits) admit(pod, allocated *v1.Pod) lifecycle.PodAdmitResult {
	cpu, memory, swapped := l.changes(pod, allocated)
	guaranteed := qos.Class(pod) == v1.PodQOSGuaranteed
	message := ""
	switch {
	case swapped:
		message = "In-place resize of containers with swap is not supported."
	case l.StaticCPUs && guaranteed && cpu:
		message = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	case l.StaticMemory && guaranteed && memory:
		message = `Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`
	default:
		return lifecycle.PodAdmitResult{Admit: true}
	}
	return lifecycle.PodAdmitResult{Reason: v1.PodReasonInfeasible, Message: message}
}

// changes tells what a resize changes: the cpu or memory of any container, and
// the memory request of one that may swap, before or after. The pod's own resources
// don't count, as upstream.
func (l *ResizeLimits) changes(pod, allocated *v1.Pod) (cpu, memory, swapped bool) {
	for k, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		had := [...][]v1.Container{allocated.Spec.InitContainers, allocated.Spec.Containers}[k]
		for i := range min(len(list), len(had)) {
			now, was := &list[i].Resources, &had[i].Resources
			cpu = cpu || differs(now, was, v1.ResourceCPU)
			memory = memory || differs(now, was, v1.ResourceMemory)
			if l.LimitedSwap && (mayHaveSwap(pod, was) || mayHaveSwap(pod, now)) && now.Requests.Memory().Cmp(*was.Requests.Memory()) != 0 &&
				resizePolicy(&list[i], v1.ResourceMemory) != v1.RestartContainer {
				swapped = true
			}
		}
	}
	return cpu, memory, swapped
}

// differs reports whether the requests of a resource differ. Limits are not asked
// for: those of a Guaranteed pod's containers are the requests.
func differs(a, b *v1.ResourceRequirements, name v1.ResourceName) bool {
	return quantity(a.Requests, name) != quantity(b.Requests, name)
}

// quantity is an amount, of CPU in millicores; what is missing is 0.
func quantity(l v1.ResourceList, name v1.ResourceName) int64 {
	q := l[name]
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// mayHaveSwap reports whether LimitedSwap gives a container some: one of a
// Burstable pod that is not critical, with a memory request other than its limit
// (GetContainerSwapBehavior of kuberuntime_container_linux.go).
func mayHaveSwap(pod *v1.Pod, r *v1.ResourceRequirements) bool {
	return qos.Class(pod) == v1.PodQOSBurstable && !kubetypes.IsCriticalPod(pod) && r.Requests.Memory().Cmp(*r.Limits.Memory()) != 0
}

// resizePolicy is what a container says of a resource; NotRequired unless it
// does.
func resizePolicy(c *v1.Container, name v1.ResourceName) v1.ResourceResizeRestartPolicy {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name {
			return p.RestartPolicy
		}
	}
	return v1.NotRequired
}
