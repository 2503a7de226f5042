package expect

import "github.com/google/cel-go/common/types/ref"

// PodResources are what a pod's containers have for themselves, as the kubelet tells it by the
// API podresources/v1.
type PodResources struct {
	Namespace  string               `json:"namespace"`
	Name       string               `json:"name"`
	Containers []ContainerExclusive `json:"containers"`
}

// ContainerExclusive is what a container has for itself.
type ContainerExclusive struct {
	Name string `json:"name"`
	// Devices are those of device plugins, an entry for each.
	Devices []ContainerDevice `json:"devices"`
	CPUIDs  []int64           `json:"cpuIDs"`
	Memory  []ContainerMemory `json:"memory"`
	// ClaimDevices are those of claims.
	ClaimDevices []ClaimDevice `json:"claimDevices"`
}

// ContainerDevice is a device of a device plugin.
type ContainerDevice struct {
	Resource string `json:"resource"`
	ID       string `json:"id"`
	// NUMANodes are those that the plugin says it is near.
	NUMANodes []int64 `json:"numaNodes"`
}

// ContainerMemory is memory of NUMA nodes: Type is memory or a size of huge pages, Size is in
// bytes.
type ContainerMemory struct {
	Type      string  `json:"type"`
	Size      int64   `json:"size"`
	NUMANodes []int64 `json:"numaNodes"`
}

// ClaimDevice is a device that a container has by a claim.
type ClaimDevice struct {
	ClaimNamespace string   `json:"claimNamespace"`
	ClaimName      string   `json:"claimName"`
	Driver         string   `json:"driver"`
	Pool           string   `json:"pool"`
	Device         string   `json:"device"`
	CDIDevices     []string `json:"cdiDevices"`
}

// PodResourcesState is a State that knows what kubelets tell of pods' resources. It is asked by
// expectations of the form At only, when Advance judges them.
type PodResourcesState interface {
	// PodResources returns nil for a node that is not there, or has no kubelet now.
	PodResources(node string) []*PodResources
}

// podResources is the function of that name.
func (s *view) podResources(args []ref.Val) ref.Val {
	var out []*PodResources
	if c, ok := s.state.(PodResourcesState); ok {
		out = c.PodResources(text(args[0]))
	}
	return s.slice(s.list.podResources, out)
}
