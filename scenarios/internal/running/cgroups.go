package running

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// Cgroups is for use between runs, when no node's loop is running. They are what the node's
// kubelet and runtime made, read from the node's own tree rather than from the API.
func (s *state) Cgroups(name string) []*expect.Cgroup {
	n := s.cluster.Node(name)
	if n == nil || n.Runtime() == nil {
		return nil
	}
	// A static pod's cgroup has its own UID, which only the runtime knows. The kubelet gives a
	// static pod the hash of its manifest as UID (pkg/kubelet/config/common.go); the API knows
	// only its mirror, under another.
	pods := map[types.UID]string{}
	for _, p := range s.Pods() {
		if p.Spec.NodeName == name {
			pods[p.UID] = p.Namespace + "/" + p.Name
		}
	}
	for _, b := range n.Runtime().Sandboxes() {
		pods[types.UID(b.UID)] = b.Namespace + "/" + b.Pod
	}
	var out []*expect.Cgroup
	for _, g := range n.Cgroups() {
		x := &expect.Cgroup{
			Path: g.Path, QOSClass: string(g.Class), CPUShares: g.CPUShares, CPUWeight: int64(g.CPUWeight()), CPUQuota: g.CPUQuota, CPUPeriod: g.CPUPeriod,
			MemoryLimit: g.MemoryLimit, PIDs: g.Pids, MemoryMin: g.MemoryMin, MemoryLow: g.MemoryLow,
		}
		if g.Pod != "" {
			x.Pod = pods[g.Pod]
		}
		out = append(out, x)
	}
	return out
}

// ContainerResources is for use between runs, when no node's loop is running. They are of the
// newest container of that name. It may have ended.
func (s *state) ContainerResources(namespace, pod, container string) *expect.ContainerResources {
	p := s.Pod(namespace, pod)
	if p == nil {
		return nil
	}
	n := s.cluster.Node(p.Spec.NodeName)
	if n == nil || n.Runtime() == nil {
		return nil
	}
	var last *fakecri.ContainerInfo
	list := n.Runtime().Containers()
	for i := range list {
		c := &list[i]
		if c.Namespace == namespace && c.Pod == pod && c.Name == container && (last == nil || c.CreatedAt >= last.CreatedAt) {
			last = c
		}
	}
	if last == nil {
		return nil
	}
	r := last.Resources
	return &expect.ContainerResources{
		CPUShares: r.GetCpuShares(), CPUQuota: r.GetCpuQuota(), CPUPeriod: r.GetCpuPeriod(), CpusetCpus: r.GetCpusetCpus(), CpusetMems: r.GetCpusetMems(),
		MemoryLimit: r.GetMemoryLimitInBytes(), MemorySwapLimit: r.GetMemorySwapLimitInBytes(), OOMScoreAdj: r.GetOomScoreAdj(), Unified: r.GetUnified(),
	}
}
