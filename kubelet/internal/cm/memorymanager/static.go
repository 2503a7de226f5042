package memorymanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager/state"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// Reserved is what of each NUMA node is not for pods, in bytes.
type Reserved map[int]map[v1.ResourceName]uint64

// static is the policy Static (upstream pkg/kubelet/cm/memorymanager/policy_static.go).
type static struct {
	topo     *cm.Topology
	reserved Reserved
	// affinity is the topology manager's hint for a container of the pod that is
	// being admitted; nil: none.
	affinity func(container string) topologymanager.Hint
	// reusable is the memory of init containers of the pod that was allocated to
	// last, by where it is, which its later containers may have.
	reusable map[topologymanager.Mask]map[v1.ResourceName]uint64
	of       types.UID
}

// newStatic returns the policy for a machine. Without reserved memory, upstream
// refuses to start: the kernel and the kubelet have to live off something.
func newStatic(topo *cm.Topology, reserved Reserved) (*static, error) {
	var sum uint64
	for _, r := range reserved { //drydock:unordered a sum
		sum += r[v1.ResourceMemory]
	}
	if sum == 0 {
		return nil, fmt.Errorf("[memorymanager] you should specify the system reserved memory")
	}
	return &static{topo: topo, reserved: reserved}, nil
}

// request is what a container asks for, by the type's name; nothing unless the
// pod is Guaranteed by its containers' resources.
type request []struct {
	name v1.ResourceName
	size uint64
}

// managed reports whether a pod's containers get memory of their own: those of
// Guaranteed pods, but not by pod-level resources, which say nothing of a
// single container.
func managed(pod *v1.Pod) bool {
	return qos.Class(pod) == v1.PodQOSGuaranteed && !resourcehelper.IsPodLevelResourcesSet(pod)
}

// isMemory reports whether a resource is memory or huge pages.
func isMemory(name v1.ResourceName) bool {
	return name == v1.ResourceMemory || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// requested is what a container asks for in bytes, by type. The error is of an
// amount that no int64 holds.
func requested(c *v1.Container) (map[v1.ResourceName]uint64, error) {
	out := map[v1.ResourceName]uint64{}
	for name, q := range c.Resources.Requests { //drydock:unordered fills a map
		if !isMemory(name) {
			continue
		}
		n, ok := q.AsInt64()
		if !ok {
			return nil, errors.New("[memorymanager] failed to represent quantity as int64")
		}
		out[name] = uint64(n)
	}
	return out, nil
}

// sorted puts types into an order: upstream has none.
func sorted(m map[v1.ResourceName]uint64) request {
	var out request
	for _, name := range sets.List(sets.KeySet(m)) {
		out = append(out, struct {
			name v1.ResourceName
			size uint64
		}{name, m[name]})
	}
	return out
}

// podRequested is the most that a pod's containers ask for at a time. What only
// init containers ask for does not count.
// Sidecars go on beside the others, so they add to everything that starts
// later.
func podRequested(pod *v1.Pod) (request, error) {
	init, sidecars, app := map[v1.ResourceName]uint64{}, map[v1.ResourceName]uint64{}, map[v1.ResourceName]uint64{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		r, err := requested(c)
		if err != nil {
			return nil, err
		}
		for name, n := range r { //drydock:unordered each key is on its own
			if kubecontainer.IsRestartableInit(c) {
				sidecars[name] += n
			} else {
				init[name] = max(init[name], sidecars[name]+n)
			}
		}
	}
	for i := range pod.Spec.Containers {
		r, err := requested(&pod.Spec.Containers[i])
		if err != nil {
			return nil, err
		}
		for name, n := range r { //drydock:unordered each key is on its own
			app[name] += n
		}
	}
	for name, n := range app { //drydock:unordered each key is on its own
		app[name] = max(n+sidecars[name], init[name])
	}
	return sorted(app), nil
}

// initial is the machine without assignments.
// Huge pages are set aside at boot, so they are taken off the node's memory.
func (p *static) initial() state.NUMANodeMap {
	out := state.NUMANodeMap{}
	for i := range p.topo.Nodes {
		n := &p.topo.Nodes[i]
		tables := map[v1.ResourceName]*state.MemoryTable{}
		add := func(name v1.ResourceName, total, huge uint64) {
			reserved := p.reserved[n.ID][name]
			free := total - huge - reserved
			tables[name] = &state.MemoryTable{TotalMemSize: total, SystemReserved: reserved, Allocatable: free, Free: free}
		}
		huge := uint64(0)
		for _, h := range n.HugePages {
			size := resource.NewQuantity(h.Size, resource.BinarySI)
			huge += uint64(h.Size * h.Count)
			add(v1.ResourceName(v1.ResourceHugePagesPrefix+size.String()), uint64(h.Size*h.Count), 0)
		}
		add(v1.ResourceMemory, uint64(n.Memory), huge)
		out[n.ID] = &state.NUMANodeState{MemoryMap: tables, Cells: []int{n.ID}}
	}
	return out
}

// table is one type of memory of a node; an empty one if the node has none.
func table(m state.NUMANodeMap, id int, name v1.ResourceName) *state.MemoryTable {
	if n := m[id]; n != nil && n.MemoryMap[name] != nil {
		return n.MemoryMap[name]
	}
	return &state.MemoryTable{}
}

// assign takes memory from nodes, the first of them first.
// All of the nodes become one group, also those of which nothing is taken.
func assign(m state.NUMANodeMap, nodes []int, name v1.ResourceName, size uint64) {
	for _, id := range nodes {
		m[id].NumberOfAssignments++
		m[id].Cells = slices.Clone(nodes)
		t := table(m, id, name)
		n := min(t.Free, size)
		t.Reserved += n
		t.Free -= n
		size -= n
	}
}

// release gives it back.
func release(m state.NUMANodeMap, b state.Block) {
	size := b.Size
	for _, id := range b.NUMAAffinity {
		if m[id].NumberOfAssignments--; m[id].NumberOfAssignments == 0 {
			m[id].Cells = []int{id}
		}
		t := table(m, id, b.Type)
		n := min(t.Reserved, size)
		t.Reserved -= n
		t.Free += n
		size -= n
	}
}

// validate fills in a state that is new, and finds what an earlier kubelet's
// state has that this one's machine or settings have not.
// A machine with another layout would make the assignments wrong, and nobody
// could say which containers to move: the error keeps the kubelet from
// starting, as upstream's does.
func (p *static) validate(s *state.State) error {
	if len(s.Machine) == 0 {
		if len(s.Entries) > 0 {
			return errors.New("[memorymanager] machine state can not be empty when it has memory assignments")
		}
		s.Machine = p.initial()
		return s.Store()
	}
	want := p.initial()
	for _, pod := range sets.List(sets.KeySet(s.Entries)) {
		for _, name := range sets.List(sets.KeySet(s.Entries[pod])) {
			for _, b := range s.Entries[pod][name] {
				for _, id := range b.NUMAAffinity {
					switch {
					case want[id] == nil:
						return fmt.Errorf("[memorymanager] (pod: %s, container: %s) the memory assignment uses the NUMA that does not exist", pod, name)
					case want[id].MemoryMap[b.Type] == nil:
						return fmt.Errorf("[memorymanager] (pod: %s, container: %s) the memory assignment uses memory resource that does not exist", pod, name)
					}
				}
				assign(want, b.NUMAAffinity, b.Type, b.Size)
			}
		}
	}
	if !sameMachine(s.Machine, want) {
		return errors.New("[memorymanager] the expected machine state is different from the real one")
	}
	return nil
}

// sameMachine compares two machines. Which node of a group has how much free is
// a matter of order, so only the group's sums count.
func sameMachine(a, b state.NUMANodeMap) bool {
	if len(a) != len(b) {
		return false
	}
	for id, x := range a { //drydock:unordered compares maps
		y := b[id]
		if x == nil || y == nil || x.NumberOfAssignments != y.NumberOfAssignments || NewMask(x.Cells) != NewMask(y.Cells) || len(x.MemoryMap) != len(y.MemoryMap) {
			return false
		}
		for name, t := range x.MemoryMap { //drydock:unordered compares maps
			u := y.MemoryMap[name]
			if t == nil || u == nil || t.TotalMemSize != u.TotalMemSize || t.SystemReserved != u.SystemReserved || t.Allocatable != u.Allocatable {
				return false
			}
			free, reserved := int64(0), int64(0)
			for _, cell := range x.Cells {
				free += int64(table(a, cell, name).Free - table(b, cell, name).Free)
				reserved += int64(table(a, cell, name).Reserved - table(b, cell, name).Reserved)
			}
			if free != 0 || reserved != 0 {
				return false
			}
		}
	}
	return true
}

// NewMask is the mask of a block's or group's nodes.
func NewMask(nodes []int) topologymanager.Mask { return topologymanager.NewMask(nodes...) }
