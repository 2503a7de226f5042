package lifecycle

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// requests are what a pod asks of a node, as numbers.
type requests struct {
	milliCPU, memory, storage int64
	scalars                   []scalar // by name
}

type scalar struct {
	name  v1.ResourceName
	value int64
}

func (r *requests) none() bool {
	return r.milliCPU == 0 && r.memory == 0 && r.storage == 0 && len(r.scalars) == 0
}

func (r *requests) scalar(name v1.ResourceName) int64 {
	for _, s := range r.scalars {
		if s.name == name {
			return s.value
		}
	}
	return 0
}

func (r *requests) addScalar(name v1.ResourceName, value int64) {
	i, ok := slices.BinarySearchFunc(r.scalars, name, func(s scalar, n v1.ResourceName) int { return strings.Compare(string(s.name), string(n)) })
	if ok {
		r.scalars[i].value += value
		return
	}
	r.scalars = slices.Insert(r.scalars, i, scalar{name, value})
}

func (r *requests) add(o requests) {
	r.milliCPU += o.milliCPU
	r.memory += o.memory
	r.storage += o.storage
	for _, s := range o.scalars {
		r.addScalar(s.name, s.value)
	}
}

func (r *requests) addList(l v1.ResourceList) {
	for name, q := range l { //drydock:unordered sums by name
		switch name {
		case v1.ResourceCPU:
			r.milliCPU += q.MilliValue()
		case v1.ResourceMemory:
			r.memory += q.Value()
		case v1.ResourceEphemeralStorage:
			r.storage += q.Value()
		case v1.ResourcePods:
		default:
			if q.Sign() != 0 {
				r.addScalar(name, q.Value())
			}
		}
	}
}

// podRequests aggregates a pod's requests. What a resize in progress uses
// beside them (the status' resources) does not count yet.
func podRequests(pod *v1.Pod) requests {
	var r requests
	if len(pod.Spec.InitContainers) == 0 && pod.Spec.Overhead == nil && pod.Spec.Resources == nil {
		for i := range pod.Spec.Containers {
			r.addList(pod.Spec.Containers[i].Resources.Requests)
		}
		return r
	}
	r.addList(resource.PodRequests(pod, resource.PodResourcesOptions{}))
	return r
}

func isSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
