// Package podresources tells which devices, CPUs and memory pods have for themselves, as the API podresources/v1 does. It
// mirrors upstream's pkg/kubelet/apis/podresources (server_v1.go).
package podresources

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// DevicesProvider knows of the devices of plugins.
type DevicesProvider interface {
	// RemoveStale forgets what belongs to no active pod.
	RemoveStale()
	Devices(pod types.UID, container string) []*podresources.ContainerDevices
	// Healthy are all that can be given out, or are.
	Healthy() []*podresources.ContainerDevices
}

// CPUsProvider knows of CPUs that containers have for themselves.
type CPUsProvider interface {
	ExclusiveCPUs(pod types.UID, container string) []int64
	// AllocatableCPUs are all that can be had so, or are.
	AllocatableCPUs() []int64
}

// MemoryProvider knows of memory that containers were given.
type MemoryProvider interface {
	Memory(pod types.UID, container string) []*podresources.ContainerMemory
	// AllocatableMemory is all that can be given, or is.
	AllocatableMemory() []*podresources.ContainerMemory
}

// ClaimsProvider knows of the devices that containers have by claims.
type ClaimsProvider interface {
	DynamicResources(pod *v1.Pod, c *v1.Container) []*podresources.DynamicResource
}

// Server answers. Only pods that are active have resources.
type Server struct {
	ActivePods func() []*v1.Pod
	Devices    DevicesProvider
	CPUs       CPUsProvider
	Memory     MemoryProvider
	// Claims is nil while no pod has any.
	Claims ClaimsProvider
}

// List returns what all pods have.
func (r *Server) List() *podresources.ListPodResourcesResponse {
	r.Devices.RemoveStale()
	return &podresources.ListPodResourcesResponse{PodResources: r.Look()}
}

// Look is List for those who only look: what is stale stays.
func (r *Server) Look() []*podresources.PodResources {
	var out []*podresources.PodResources
	for _, pod := range r.ActivePods() {
		out = append(out, r.of(pod))
	}
	return out
}

// Get returns what one pod has. The error's text is upstream's.
func (r *Server) Get(namespace, name string) (*podresources.GetPodResourcesResponse, error) {
	for _, pod := range r.ActivePods() {
		if pod.Namespace == namespace && pod.Name == name {
			return &podresources.GetPodResourcesResponse{PodResources: r.of(pod)}, nil
		}
	}
	return nil, fmt.Errorf("pod %s in namespace %s not found", name, namespace)
}

// GetAllocatableResources returns what there is to be given out, and was.
func (r *Server) GetAllocatableResources() *podresources.AllocatableResourcesResponse {
	return &podresources.AllocatableResourcesResponse{Devices: r.Devices.Healthy(), CpuIds: r.CPUs.AllocatableCPUs(), Memory: r.Memory.AllocatableMemory()}
}

// of is what a pod's containers have. Init containers that end are left out.
func (r *Server) of(pod *v1.Pod) *podresources.PodResources {
	out := &podresources.PodResources{Name: pod.Name, Namespace: pod.Namespace}
	add := func(c *v1.Container) {
		has := &podresources.ContainerResources{Name: c.Name, Devices: r.Devices.Devices(pod.UID, c.Name), CpuIds: r.CPUs.ExclusiveCPUs(pod.UID, c.Name), Memory: r.Memory.Memory(pod.UID, c.Name)}
		if r.Claims != nil {
			has.DynamicResources = r.Claims.DynamicResources(pod, c)
		}
		out.Containers = append(out.Containers, has)
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return out
}
