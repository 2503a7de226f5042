package cm

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/qos"
)

// PIDs is the resource that stands for processes in reservations
// (pkg/kubelet/stats/pidlimit).
const PIDs v1.ResourceName = "pid"

// The keys of enforceNodeAllocatable (pkg/kubelet/types/constants.go).
const (
	EnforcePods                       = "pods"
	EnforceSystemReserved             = "system-reserved"
	EnforceKubeReserved               = "kube-reserved"
	EnforceSystemReservedCompressible = "system-reserved-compressible"
	EnforceKubeReservedCompressible   = "kube-reserved-compressible"
)

// ForNode returns the values of a cgroup that may use res; with compressible
// only those that can be taken back (getCgroupConfig at
// node_container_manager_linux.go).
func ForNode(res v1.ResourceList, compressible bool) NodeCgroup {
	var out NodeCgroup
	if q, ok := res[v1.ResourceCPU]; ok {
		out.CPUShares = new(MilliCPUToShares(q.MilliValue()))
	}
	if compressible {
		return out
	}
	if q, ok := res[v1.ResourceMemory]; ok {
		out.MemoryLimit = new(q.Value())
	}
	if q, ok := res[PIDs]; ok {
		out.Pids = new(q.Value())
	}
	out.Hugepages = HugepageLimits(res)
	return out
}

// HugepageLimits returns the limits in bytes by the size of the pages in bytes;
// nil without any (HugePageLimits at pkg/kubelet/cm/helpers_linux.go).
func HugepageLimits(res v1.ResourceList) map[int64]int64 {
	var out map[int64]int64
	for name, q := range res { //drydock:unordered fills a map
		text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		size, err := resource.ParseQuantity(text)
		if err != nil {
			continue
		}
		if out == nil {
			out = map[int64]int64{}
		}
		out[size.Value()] += q.Value()
	}
	return out
}

// Requests are what pods ask for together, by class.
type Requests struct {
	// BurstableCPU in thousandths; BestEffort pods have none, and nobody asks
	// for those of Guaranteed ones.
	BurstableCPU int64
	// GuaranteedMemory and BurstableMemory in bytes.
	GuaranteedMemory, BurstableMemory int64
}

// Add adds a pod with the resources that it was given.
func (r *Requests) Add(pod *v1.Pod) {
	class := qos.Class(pod)
	if class == v1.PodQOSBestEffort {
		return
	}
	req := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	if class == v1.PodQOSGuaranteed {
		r.GuaranteedMemory += req.Memory().Value()
		return
	}
	r.BurstableCPU += req.Cpu().MilliValue()
	r.BurstableMemory += req.Memory().Value()
}

// QOSPolicy is how the cgroups of the classes follow from what pods ask for
// (upstream qos_container_manager_linux.go).
type QOSPolicy struct {
	// ReservedMemory is qosReserved's percentage of memory that is kept for
	// classes from those below them; -1 for none.
	ReservedMemory int64
	// Allocatable is the memory that pods may use, in bytes.
	Allocatable int64
	// MemoryQoS is the feature gate of that name, on cgroup v2; Tiered is
	// memoryReservationPolicy TieredReservation.
	MemoryQoS, Tiered bool
}

// Burstable returns the values of the cgroup of Burstable pods.
func (p *QOSPolicy) Burstable(r *Requests) ClassCgroup {
	out := ClassCgroup{CPUShares: MilliCPUToShares(r.BurstableCPU)}
	if p.MemoryQoS {
		low := int64(0)
		if p.Tiered {
			low = r.BurstableMemory
		}
		out.MemoryLow = &low
	}
	if p.limits() {
		out.MemoryLimit = new(p.burstableLimit(r))
	}
	return out
}

// BestEffort returns the values of the cgroup of BestEffort pods.
func (p *QOSPolicy) BestEffort(r *Requests) ClassCgroup {
	out := ClassCgroup{CPUShares: MinShares}
	if p.limits() {
		out.MemoryLimit = new(p.burstableLimit(r) - r.BurstableMemory*p.ReservedMemory/100)
	}
	return out
}

// RootMemoryMin returns memory.min of the cgroup of all pods; nil: it is left
// as it is.
func (p *QOSPolicy) RootMemoryMin(r *Requests) *int64 {
	if !p.MemoryQoS {
		return nil
	}
	n := int64(0)
	if p.Tiered {
		n = r.GuaranteedMemory + r.BurstableMemory
	}
	return &n
}

func (p *QOSPolicy) limits() bool { return p.ReservedMemory >= 0 && p.Allocatable > 0 }

func (p *QOSPolicy) burstableLimit(r *Requests) int64 {
	return p.Allocatable - r.GuaranteedMemory*p.ReservedMemory/100
}
