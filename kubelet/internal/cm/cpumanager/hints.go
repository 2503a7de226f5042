package cpumanager

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager/state"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// hints are the NUMA nodes that n CPUs could come from. Those that the pod may
// reuse must be among them.
func (p *static) hints(available, reusable cpuset.CPUSet, n int) []topologymanager.Hint {
	nodes := p.m.all.ids(node)
	least := len(nodes)
	out := []topologymanager.Hint{}
	topologymanager.Masks(nodes, func(mask topologymanager.Mask) {
		in := p.m.all.ofAll(node, mask.Bits())
		if in.Size() >= n {
			least = min(least, mask.Count())
		}
		if reusable.IsSubsetOf(in) && reusable.Size()+available.Intersection(in).Size() >= n {
			out = append(out, topologymanager.Hint{Affinity: mask})
		}
	})
	for i := range out {
		out[i].Preferred = out[i].Affinity.Count() == least || p.options.AlignBySocket && p.inLeastSockets(out[i].Affinity, least)
	}
	return out
}

// inLeastSockets reports whether NUMA nodes are in as few sockets as the least
// number of NUMA nodes can be.
func (p *static) inLeastSockets(mask topologymanager.Mask, least int) bool {
	per := len(p.m.all.in[node]) / len(p.m.all.in[socket])
	return per > 0 && len(p.sockets(mask)) == (least+per-1)/per
}

// containerHints are the hints for one container; nil: it takes none.
func (p *static) containerHints(s *state.State, pod *v1.Pod, c *v1.Container) []topologymanager.Hints {
	n := exclusive(pod, c)
	if n == 0 {
		return nil
	}
	if set, ok := s.Get(pod.UID, c.Name); ok {
		if set.Size() != n {
			return cpuHints([]topologymanager.Hint{})
		}
		return cpuHints(p.hints(set, cpuset.New(), n))
	}
	return cpuHints(p.hints(p.available(s), p.reusableBy(pod), n))
}

// podHints are the hints for a pod as a whole.
func (p *static) podHints(s *state.State, pod *v1.Pod) []topologymanager.Hints {
	n := podExclusive(pod)
	if n == 0 {
		return nil
	}
	assigned := cpuset.New()
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		set, ok := s.Get(pod.UID, c.Name)
		if ok && set.Size() != exclusive(pod, &c) {
			return cpuHints([]topologymanager.Hint{})
		}
		assigned = assigned.Union(set)
	}
	if assigned.Size() == n {
		return cpuHints(p.hints(assigned, cpuset.New(), n))
	}
	return cpuHints(p.hints(p.available(s), p.reusableBy(pod).Union(assigned), n))
}

// cpuHints are hints about CPUs alone.
func cpuHints(list []topologymanager.Hint) []topologymanager.Hints {
	return []topologymanager.Hints{{Resource: string(v1.ResourceCPU), List: list}}
}

// podExclusive is the most CPUs that the containers of a pod have for themselves
// at a time.
func podExclusive(pod *v1.Pod) int {
	init, sidecars, app := 0, 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if n := exclusive(pod, c); kubecontainer.IsRestartableInit(c) {
			sidecars += n
		} else {
			init = max(init, sidecars+n)
		}
	}
	for i := range pod.Spec.Containers {
		app += exclusive(pod, &pod.Spec.Containers[i])
	}
	return max(init, sidecars+app)
}

// find returns a CPU; nil if the machine has none of that ID.
func (m *machine) find(id int) *cm.CPU {
	i, ok := slices.BinarySearchFunc(m.all.list, id, func(c cm.CPU, id int) int { return c.ID - id })
	if !ok {
		return nil
	}
	return &m.all.list[i]
}
