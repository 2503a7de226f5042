package sim

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Topology implements what the kubelet's CPU, memory and topology managers ask
// a machine for; nil: all is in one place.
func (m *Machine) Topology() *cm.Topology { return m.topology }

// setTopology brings a topology and the capacity together: what only one of the
// two says holds for the other, too. given is the capacity that somebody asked
// for; the rest are defaults.
func (m *Machine) setTopology(t *cm.Topology, given v1.ResourceList) error {
	if t == nil {
		return nil
	}
	out := *t
	out.Nodes = slices.Clone(t.Nodes)
	m.topology = &out
	if q, ok := given[v1.ResourceCPU]; ok && q.Value() != int64(len(t.CPUs)) {
		return fmt.Errorf("the topology has %d CPUs, the capacity %s", len(t.CPUs), q.String())
	}
	m.capacity[v1.ResourceCPU] = *resource.NewQuantity(int64(len(t.CPUs)), resource.DecimalSI)
	sum := int64(0)
	for i := range out.Nodes {
		sum += out.Nodes[i].Memory
	}
	switch q, ok := given[v1.ResourceMemory]; {
	case sum == 0:
		total, n := m.capacity.Memory().Value(), int64(len(out.Nodes))
		for i := range out.Nodes {
			out.Nodes[i].Memory = total / n
		}
		out.Nodes[0].Memory += total % n
	case ok && q.Value() != sum:
		return fmt.Errorf("the topology's NUMA nodes have %d bytes of memory, the capacity %s", sum, q.String())
	default:
		m.capacity[v1.ResourceMemory] = *resource.NewQuantity(sum, resource.BinarySI)
	}
	return m.setHugePages(given)
}

// setHugePages does so for huge pages; pages of a size of which the NUMA nodes
// say nothing are shared out evenly.
func (m *Machine) setHugePages(given v1.ResourceList) error {
	t := m.topology
	sums := map[v1.ResourceName]int64{}
	for i := range t.Nodes {
		for _, h := range t.Nodes[i].HugePages {
			sums[hugePages(h.Size)] += h.Size * h.Count
		}
	}
	for _, name := range sets.List(sets.KeySet(sums)) {
		if q, ok := given[name]; ok && q.Value() != sums[name] {
			return fmt.Errorf("the topology's NUMA nodes have %d bytes of %s, the capacity %s", sums[name], name, q.String())
		}
		m.capacity[name] = *resource.NewQuantity(sums[name], resource.BinarySI)
	}
	flat := cm.FlatTopology(m.capacity)
	for _, h := range flat.Nodes[0].HugePages {
		if _, ok := sums[hugePages(h.Size)]; ok {
			continue
		}
		n := int64(len(t.Nodes))
		for i := range t.Nodes {
			count := h.Count / n
			if int64(i) < h.Count%n {
				count++
			}
			t.Nodes[i].HugePages = append(slices.Clone(t.Nodes[i].HugePages), cm.HugePages{Size: h.Size, Count: count})
		}
	}
	return nil
}

func hugePages(size int64) v1.ResourceName {
	return v1.ResourceName(v1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String())
}
