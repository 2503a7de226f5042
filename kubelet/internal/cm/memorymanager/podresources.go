package memorymanager

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager/state"
)

// Memory is what a container was given, for the pod resources API; none with policy None.
func (m *Manager) Memory(uid types.UID, name string) []*podresources.ContainerMemory {
	if m.policy == nil {
		return nil
	}
	return containerMemory(m.state.Blocks(string(uid), name))
}

// AllocatableMemory is what containers can be given of each NUMA node, given out or not;
// none with policy None. Upstream has it in no order, here it is by node and type.
func (m *Manager) AllocatableMemory() []*podresources.ContainerMemory {
	if m.policy == nil {
		return nil
	}
	var blocks []state.Block
	nodes := m.state.Machine
	for _, id := range slices.Sorted(maps.Keys(nodes)) { //drydock:unordered sorted
		table := nodes[id].MemoryMap
		for _, t := range slices.Sorted(maps.Keys(table)) { //drydock:unordered sorted
			if size := table[t].Allocatable; size > 0 {
				blocks = append(blocks, state.Block{NUMAAffinity: []int{id}, Type: t, Size: size})
			}
		}
	}
	return containerMemory(blocks)
}

func containerMemory(blocks []state.Block) []*podresources.ContainerMemory {
	var out []*podresources.ContainerMemory
	for _, b := range blocks {
		c := &podresources.ContainerMemory{MemoryType: string(b.Type), Size: b.Size, Topology: &podresources.TopologyInfo{}}
		for _, id := range b.NUMAAffinity {
			c.Topology.Nodes = append(c.Topology.Nodes, &podresources.NUMANode{ID: int64(id)})
		}
		out = append(out, c)
	}
	return out
}
