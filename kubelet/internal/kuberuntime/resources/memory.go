package resources

import (
	"cmp"
	"maps"
	"math"
	"strconv"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"

	"github.com/drydock-sim/drydock/kubelet/qos"
)

// The files of cgroup v2 that are set by their name.
const (
	memoryOOMGroup = "memory.oom.group"
	memorySwapMax  = "memory.swap.max"
	memoryMin      = "memory.min"
	memoryLow      = "memory.low"
	memoryHigh     = "memory.high"
)

// Swap is how the containers of a node may swap
// (kuberuntime_container_linux.go, swapConfigurationHelper).
type Swap struct {
	// Controller says that cgroups can limit swap; without it nothing is set.
	Controller bool
	// CgroupV1 machines limit swap together with memory, and know no LimitedSwap.
	CgroupV1 bool
	// Limited is swapBehavior LimitedSwap, else it is NoSwap.
	Limited bool
	// Capacity of the node's swap in bytes.
	Capacity int64
}

// MemoryQoS is how the memory that containers request is kept for them
// (kuberuntime_container_linux.go).
type MemoryQoS struct {
	// ThrottlingFactor is memoryThrottlingFactor.
	ThrottlingFactor float64
	// Tiered is memoryReservationPolicy TieredReservation, else it is None.
	Tiered bool
	// Allocatable is the memory that pods may use in bytes.
	Allocatable int64
	// PageSize in bytes; 0 means 4096.
	PageSize int64
}

// What all containers of a node can have in common; nodes share it.
var (
	oomGroup       = map[string]string{memoryOOMGroup: "1"}
	noSwap         = map[string]string{memorySwapMax: "0"}
	oomGroupNoSwap = map[string]string{memoryOOMGroup: "1", memorySwapMax: "0"}
)

// unified is what all containers have in common. Swap has to be forbidden by
// name on cgroup v2: without a limit it is unlimited.
func (n *Node) unified() map[string]string {
	switch swap := n.Swap.Controller && !n.Swap.CgroupV1; {
	case n.MemoryOOMGroup && swap:
		return oomGroupNoSwap
	case n.MemoryOOMGroup:
		return oomGroup
	case swap:
		return noSwap
	}
	return nil
}

// memoryResources sets what of a container's memory is neither limit nor score.
// The map of the files is a copy where a container has a value of its own.
func (n *Node) memoryResources(out *runtimeapi.LinuxContainerResources, pod *v1.Pod, c *v1.Container) {
	out.Unified = n.unified()
	if s := &n.Swap; s.Controller && s.CgroupV1 {
		out.MemorySwapLimitInBytes = out.MemoryLimitInBytes
	}
	swap := n.swapLimit(pod, c)
	if swap == 0 && n.MemoryQoS == nil {
		return
	}
	out.Unified = maps.Clone(n.unified())
	if out.Unified == nil {
		out.Unified = map[string]string{}
	}
	if swap > 0 {
		out.Unified[memorySwapMax] = strconv.FormatInt(swap, 10)
	}
	if n.MemoryQoS != nil {
		n.MemoryQoS.set(out.Unified, pod, c)
	}
}

// swapLimit is how much a container may swap: its share of the node's swap is
// that of the node's memory that it requests.
func (n *Node) swapLimit(pod *v1.Pod, c *v1.Container) int64 {
	s := &n.Swap
	if !s.Controller || s.CgroupV1 || !s.Limited || n.MemoryCapacity <= 0 ||
		qos.Class(pod) != v1.PodQOSBurstable || kubetypes.IsCriticalPod(pod) {
		return 0
	}
	request, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
	if request.Cmp(*limit) == 0 { // also if there are none
		return 0
	}
	return int64(float64(request.Value()) / float64(n.MemoryCapacity) * float64(s.Capacity))
}

// set adds a container's values: what it requests is protected, fully
// (memory.min) if it is guaranteed, else as far as there is other memory to
// reclaim (memory.low); above memory.high, between request and limit, it is
// throttled before it is killed (KEP-2570).
func (q *MemoryQoS) set(unified map[string]string, pod *v1.Pod, c *v1.Container) {
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	unified[memoryMin], unified[memoryLow] = "0", "0"
	if q.Tiered {
		kept := memoryLow
		if qos.Class(pod) == v1.PodQOSGuaranteed {
			kept = memoryMin
		}
		unified[kept] = strconv.FormatInt(request, 10)
	}
	if request == limit {
		return
	}
	top := cmp.Or(limit, q.Allocatable)
	page := cmp.Or(q.PageSize, 4096)
	high := int64(math.Floor((float64(request)+float64(top-request)*q.ThrottlingFactor)/float64(page))) * page
	if top > 0 && high > request {
		unified[memoryHigh] = strconv.FormatInt(high, 10)
	}
}
