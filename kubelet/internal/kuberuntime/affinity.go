package kuberuntime

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Affinity says which CPUs and which memory containers have (upstream
// cm.InternalContainerLifecycle).
type Affinity interface {
	// CPUs and Nodes are lists such as "0,2-3" of the CPUs and of the NUMA nodes
	// that a container is created with; "": any.
	CPUs(pod *v1.Pod, c *v1.Container) string
	Nodes(pod *v1.Pod, c *v1.Container) string
	// NoQuota reports whether a container's CPU limit is not enforced, since it has
	// CPUs of its own; with the name "" whether a pod's is not.
	NoQuota(pod *v1.Pod, container string) bool
	// Created says that a container was created so.
	Created(pod *v1.Pod, c *v1.Container)
}

// placement is what an Affinity says of a container.
type placement struct {
	cpus, nodes string
	noQuota     bool
}

// placement asks the node's CPU and memory managers, which decided when the pod
// was admitted.
func (m *Manager) placement(pod *v1.Pod, c *v1.Container) placement {
	a := m.o.Affinity
	if a == nil {
		return placement{}
	}
	return placement{a.CPUs(pod, c), a.Nodes(pod, c), a.NoQuota(pod, c.Name)}
}

// apply lays the placement over resources that follow from the spec alone.
func (p *placement) apply(r *runtimeapi.LinuxContainerResources) {
	r.CpusetCpus, r.CpusetMems = p.cpus, p.nodes
	if p.noQuota {
		r.CpuQuota = noQuota(r)
	}
}

// noQuota is the quota of what is not held to its CPU limit; where quotas are
// not enforced at all (cpuCFSQuota: false) there is none.
func noQuota(r *runtimeapi.LinuxContainerResources) int64 {
	if r.CpuPeriod == 0 {
		return 0
	}
	return -1
}
