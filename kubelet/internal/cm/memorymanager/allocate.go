package memorymanager

import (
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager/state"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// allocate gives a container its memory, if it is to have some of its own and
// has none yet. changed says that the state is another.
func (p *static) allocate(s *state.State, pod *v1.Pod, c *v1.Container) (changed bool, err error) {
	if !managed(pod) {
		return false, nil
	}
	if blocks := s.Blocks(string(pod.UID), c.Name); blocks != nil {
		p.reuse(pod, c, blocks)
		return false, nil
	}
	r, err := requested(c)
	if err != nil {
		return false, err
	}
	want := sorted(r)
	hint, err := p.place(s.Machine, pod, c, want)
	if err != nil {
		return false, err
	}
	blocks := make([]state.Block, 0, len(want))
	nodes := hint.Affinity.Bits()
	for _, w := range want {
		blocks = append(blocks, state.Block{NUMAAffinity: slices.Clone(nodes), Type: w.name, Size: w.size})
		have := p.reusableBy(pod, hint.Affinity, w.name)
		assign(s.Machine, nodes, w.name, w.size-min(have, w.size))
	}
	p.reuse(pod, c, blocks)
	s.Set(string(pod.UID), c.Name, blocks)
	takeFromInit(s, pod, c, blocks)
	return true, nil
}

// place finds the nodes for a container: the topology manager's, else the best
// that there are; more of them if they have too little.
// A preferred hint must not become one that isn't: the topology manager
// admitted the pod because of it.
func (p *static) place(m state.NUMANodeMap, pod *v1.Pod, c *v1.Container, want request) (topologymanager.Hint, error) {
	var hint topologymanager.Hint
	if p.affinity != nil {
		hint = p.affinity(c.Name)
	}
	if hint.Affinity == 0 {
		all := p.hints(m, pod, want)
		if len(all) == 0 {
			return hint, errors.New("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")
		}
		best := bestHint(all)
		if hint.Preferred && !best.Preferred {
			return hint, errors.New("[memorymanager] failed to find the default preferred hint")
		}
		hint = best
	}
	if !suffices(m, hint.Affinity, want) {
		wider := slices.DeleteFunc(p.hints(m, pod, want), func(h topologymanager.Hint) bool { return h.Affinity&hint.Affinity != hint.Affinity })
		if len(wider) == 0 {
			return hint, errors.New("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
		}
		best := bestHint(wider)
		if hint.Preferred && !best.Preferred {
			return hint, errors.New("[memorymanager] failed to find the extended preferred hint")
		}
		hint = best
	}
	if mixes(m, hint.Affinity) {
		return hint, errors.New("[memorymanager] preferred hint violates NUMA node allocation")
	}
	return hint, nil
}

// suffices reports whether nodes have enough free memory.
func suffices(m state.NUMANodeMap, mask topologymanager.Mask, want request) bool {
	for _, w := range want {
		free := uint64(0)
		for _, id := range mask.Bits() {
			free += table(m, id, w.name).Free
		}
		if free < w.size {
			return false
		}
	}
	return true
}

// mixes reports whether a block over several nodes would be on one that has blocks
// of another group.
// Upstream's rule: a node serves single containers, or one group of nodes,
// never both, so that a group's memory can be added up.
func mixes(m state.NUMANodeMap, mask topologymanager.Mask) bool {
	if mask.Count() == 1 {
		return false
	}
	return slices.ContainsFunc(mask.Bits(), func(id int) bool {
		return m[id].NumberOfAssignments > 0 && (len(m[id].Cells) == 1 || NewMask(m[id].Cells) != mask)
	})
}

// hints are the nodes that memory could come from, the same for all types.
// Preferred are the hints with the fewest nodes that could hold the request if
// they were empty; what is free now decides only whether there is a hint.
func (p *static) hints(m state.NUMANodeMap, pod *v1.Pod, want request) []topologymanager.Hint {
	nodes := m.Nodes()
	least := len(nodes)
	var out []topologymanager.Hint
	if len(want) == 0 {
		return nil
	}
	topologymanager.Masks(nodes, func(mask topologymanager.Mask) {
		ids := mask.Bits()
		enough := true
		for _, w := range want {
			total, free := uint64(0), p.reusableBy(pod, mask, w.name)
			for _, id := range ids {
				t := table(m, id, w.name)
				total += t.Allocatable
				free += t.Free
			}
			if total < w.size {
				return
			}
			enough = enough && free >= w.size
		}
		least = min(least, len(ids))
		if enough && !mixes(m, mask) && (len(ids) > 1 || len(m[ids[0]].Cells) == 1) {
			out = append(out, topologymanager.Hint{Affinity: mask})
		}
	})
	for i := range out {
		out[i].Preferred = out[i].Affinity.Count() == least
	}
	return out
}

// bestHint is the narrowest of the preferred ones, else of all.
func bestHint(list []topologymanager.Hint) topologymanager.Hint {
	best := list[0]
	for _, h := range list[1:] {
		if h.Preferred && !best.Preferred || h.Preferred == best.Preferred && h.Affinity.NarrowerThan(best.Affinity) {
			best = h
		}
	}
	return best
}

// asHints are hints for each type of memory; nil if there are none at all, as
// upstream has it: where it comes from does not matter then, and allocating it
// fails.
func (p *static) asHints(m state.NUMANodeMap, pod *v1.Pod, want request) []topologymanager.Hints {
	list := p.hints(m, pod, want)
	if len(list) == 0 {
		return nil
	}
	var out []topologymanager.Hints
	for _, w := range want {
		out = append(out, topologymanager.Hints{Resource: string(w.name), List: list})
	}
	return out
}

// again are the hints for what is allocated already: where it is.
// None if the blocks aren't what the container asks for now.
func again(blocks []state.Block, want request) []topologymanager.Hints {
	if len(blocks) != len(want) {
		return nil
	}
	var out []topologymanager.Hints
	for _, w := range want {
		i := slices.IndexFunc(blocks, func(b state.Block) bool { return b.Type == w.name && b.Size == w.size })
		if i < 0 {
			return nil
		}
		out = append(out, topologymanager.Hints{Resource: string(w.name), List: []topologymanager.Hint{{Affinity: NewMask(blocks[i].NUMAAffinity), Preferred: true}}})
	}
	return out
}

// reusableBy is the memory of earlier init containers that a pod's next
// container may have.
func (p *static) reusableBy(pod *v1.Pod, mask topologymanager.Mask, name v1.ResourceName) uint64 {
	if p.of != pod.UID {
		return 0
	}
	return p.reusable[mask][name]
}

// reuse notes the memory of an init container, and what a later container took
// of it. That of sidecars is not for others.
// Init containers run before the others, so their memory is free again by then.
func (p *static) reuse(pod *v1.Pod, c *v1.Container, blocks []state.Block) {
	if p.of != pod.UID {
		p.of, p.reusable = pod.UID, map[topologymanager.Mask]map[v1.ResourceName]uint64{}
	}
	_, kind := kubecontainer.FindContainer(pod, c.Name)
	init := kind == kubecontainer.KindInit && !kubecontainer.IsRestartableInit(c)
	for _, b := range blocks {
		mask := NewMask(b.NUMAAffinity)
		if p.reusable[mask] == nil {
			p.reusable[mask] = map[v1.ResourceName]uint64{}
		}
		have := p.reusable[mask][b.Type]
		if init {
			have = max(have, b.Size)
		} else {
			have -= min(have, b.Size)
		}
		p.reusable[mask][b.Type] = have
	}
}

// takeFromInit makes the blocks of earlier init containers smaller by what a
// container took over, so that a pod's blocks add up to what it has.
func takeFromInit(s *state.State, pod *v1.Pod, c *v1.Container, blocks []state.Block) {
	for _, b := range blocks {
		left := b.Size
		for i := range pod.Spec.InitContainers {
			init := &pod.Spec.InitContainers[i]
			if init.Name == c.Name {
				break
			}
			if kubecontainer.IsRestartableInit(init) {
				continue
			}
			theirs := s.Blocks(string(pod.UID), init.Name)
			for k := range theirs {
				if t := &theirs[k]; t.Type == b.Type && NewMask(t.NUMAAffinity) == NewMask(b.NUMAAffinity) {
					n := min(t.Size, left)
					t.Size -= n
					left -= n
				}
			}
		}
	}
}
