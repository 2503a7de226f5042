package cm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/cpuset"
)

// Topology is where a machine's CPUs and memory are, as cAdvisor's machine info
// tells it upstream. It is not written to once it is made.
type Topology struct {
	// CPUs are the logical CPUs that are online, by ID.
	CPUs []CPU
	// Nodes are the NUMA nodes, by ID; there is at least one.
	Nodes []NUMANode
}

// CPU is a logical CPU, and what it belongs to. All but ID are numbers that are
// one's own among the machine's, not within the next higher unit.
type CPU struct {
	ID int
	// Core is the least ID among its threads.
	Core   int
	Socket int
	Node   int
	// Uncore is the last-level cache that it shares with others.
	Uncore int
}

// NUMANode is a NUMA node's memory.
type NUMANode struct {
	ID int
	// Memory in bytes, with what is set aside for huge pages.
	Memory int64
	// HugePages are by size.
	HugePages []HugePages
	// Distances are those to all nodes, in the order of Topology.Nodes, as in
	// ACPI's SLIT: 10 to itself.
	Distances []int
}

// HugePages are the pages of one size that are set aside.
type HugePages struct {
	Size  int64 // of a page, in bytes
	Count int64
}

// All are the IDs of all CPUs.
func (t *Topology) All() cpuset.CPUSet {
	ids := make([]int, len(t.CPUs))
	for i := range t.CPUs {
		ids[i] = t.CPUs[i].ID
	}
	return cpuset.New(ids...)
}

// maxCPUs is more than any machine has.
const maxCPUs = 1 << 16

// ParseCPUs reads a list of CPUs such as "0-3,8". Unlike cpuset.Parse it does not
// make room for IDs that no machine has.
func ParseCPUs(list string) (cpuset.CPUSet, error) {
	for _, id := range strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(id); err != nil || n >= maxCPUs {
			return cpuset.New(), fmt.Errorf("%q has CPU %s, but IDs are less than %d", list, id, maxCPUs)
		}
	}
	return cpuset.Parse(list)
}

// NodeIDs are the IDs of the NUMA nodes, ascending.
func (t *Topology) NodeIDs() []int {
	out := make([]int, len(t.Nodes))
	for i := range t.Nodes {
		out[i] = t.Nodes[i].ID
	}
	return out
}

// FlatTopology is that of a machine of which only the capacity is known: all CPUs
// are cores of one socket, all memory is in one NUMA node.
func FlatTopology(capacity v1.ResourceList) *Topology {
	t, err := Layout{CoresPerSocket: int(min(max(capacity.Cpu().Value(), 1), maxCPUs))}.New()
	if err != nil {
		return &Topology{Nodes: make([]NUMANode, 1)} // there is no such capacity
	}
	n := &t.Nodes[0]
	n.Memory = capacity.Memory().Value()
	for _, name := range sets.List(sets.KeySet(capacity)) {
		text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		size, err := resource.ParseQuantity(text)
		if !ok || err != nil || size.Value() <= 0 {
			continue
		}
		q := capacity[name]
		n.HugePages = append(n.HugePages, HugePages{Size: size.Value(), Count: q.Value() / size.Value()})
	}
	return t
}

// Layout describes a regular machine: its CPUs are numbered as Linux numbers
// them, first one thread of each core, socket by socket, then the next.
type Layout struct {
	// Sockets, CoresPerSocket and ThreadsPerCore: 0 means 1.
	Sockets, CoresPerSocket, ThreadsPerCore int
	// NUMANodes and UncoreCaches are those of the whole machine; 0 means as many
	// as there are sockets, or NUMA nodes.
	NUMANodes, UncoreCaches int
}

// The distances that firmware tells of a NUMA node to itself and to another.
const (
	localDistance  = 10
	remoteDistance = 20
)

// maxNodes is how many NUMA nodes a regular machine can have: managers compare
// all combinations of two sets of them, and upstream's refuse more than 8 unless
// told otherwise.
const maxNodes = 12

// New makes the topology, without memory. The error says which number does not
// go with which.
func (l Layout) New() (*Topology, error) {
	one := func(n int) int { return max(n, 1) }
	sockets, cores, threads := one(l.Sockets), one(l.CoresPerSocket), one(l.ThreadsPerCore)
	nodes, caches := l.NUMANodes, l.UncoreCaches
	nodes = cmp.Or(nodes, sockets)
	all := sockets * cores
	if caches == 0 {
		caches = max(nodes, sockets)
	}
	switch {
	case min(l.Sockets, l.CoresPerSocket, l.ThreadsPerCore, l.NUMANodes, l.UncoreCaches) < 0:
		return nil, fmt.Errorf("numbers of a topology can't be negative")
	case max(sockets, cores, threads) > maxCPUs || sockets*cores*threads > maxCPUs:
		return nil, fmt.Errorf("%d sockets of %d cores of %d threads are more than %d CPUs", sockets, cores, threads, maxCPUs)
	case nodes > maxNodes:
		return nil, fmt.Errorf("%d NUMA nodes are more than %d", nodes, maxNodes)
	case nodes%sockets != 0 && sockets%nodes != 0:
		return nil, fmt.Errorf("%d NUMA nodes don't divide among %d sockets", nodes, sockets)
	case all%nodes != 0:
		return nil, fmt.Errorf("%d cores don't divide among %d NUMA nodes", all, nodes)
	case all%caches != 0 || caches%nodes != 0 && nodes%caches != 0:
		return nil, fmt.Errorf("%d uncore caches don't go with %d cores in %d NUMA nodes", caches, all, nodes)
	}
	t := &Topology{CPUs: make([]CPU, 0, all*threads), Nodes: make([]NUMANode, nodes)}
	for id := range all * threads {
		core := id % all
		t.CPUs = append(t.CPUs, CPU{ID: id, Core: core, Socket: core / cores, Node: core * nodes / all, Uncore: core * caches / all})
	}
	for i := range t.Nodes {
		d := slices.Repeat([]int{remoteDistance}, nodes)
		d[i] = localDistance
		t.Nodes[i] = NUMANode{ID: i, Distances: d}
	}
	return t, nil
}
