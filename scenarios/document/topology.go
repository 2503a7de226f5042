package document

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Topology is where a machine's CPUs and memory are. CPUs are numbered as Linux numbers them: first one thread of each core, socket by socket, then the next.
type Topology struct {
	// How many sockets there are. One unless said.
	Sockets int `json:"sockets,omitempty"`
	// How many cores a socket has. One unless said.
	CoresPerSocket int `json:"coresPerSocket,omitempty"`
	// How many logical CPUs a core has. One unless said.
	ThreadsPerCore int `json:"threadsPerCore,omitempty"`
	// How many NUMA nodes the machine has. As many as `numa` lists or, unless said, as there are sockets.
	NUMANodes int `json:"numaNodes,omitempty"`
	// How many last-level caches the machine has, each with as many cores. One for each NUMA node unless said.
	UncoreCaches int `json:"uncoreCaches,omitempty"`
	// The NUMA nodes' memory. The capacity in equal shares unless said.
	NUMA []NUMANode `json:"numa,omitempty"`
}

// NUMANode is a NUMA node's memory.
type NUMANode struct {
	// How much memory it has, with what is set aside for huge pages.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// What is set aside for huge pages, by their resource: `hugepages-2Mi: 1Gi`.
	HugePages v1.ResourceList `json:"hugepages,omitempty"`
	// How far it is to each NUMA node, as the firmware tells: 10 to itself. 10 and 20 unless said.
	Distances []int `json:"distances,omitempty"`
}

// maxCPUs keeps a typing error from costing gigabytes.
const maxCPUs = 1 << 12

// checkTopology checks a group's topology and that it goes with its capacity,
// which has then what the topology says. at is the group's place.
func (g *NodeGroup) checkTopology(at decode.Place) {
	t := g.Topology
	if t == nil {
		return
	}
	at = at.Field("topology")
	before := at.Errors()
	cpus := 1
	for _, f := range [...]struct {
		name string
		n    int
		cpus bool
	}{
		{"sockets", t.Sockets, true}, {"coresPerSocket", t.CoresPerSocket, true}, {"threadsPerCore", t.ThreadsPerCore, true},
		{"numaNodes", t.NUMANodes, false}, {"uncoreCaches", t.UncoreCaches, false},
	} {
		if f.n < 0 || f.n > maxCPUs || f.n == 0 && at.Field(f.name).Written() {
			at.Field(f.name).Errorf("must be between 1 and %d", maxCPUs)
		} else if f.cpus {
			cpus *= max(f.n, 1)
		}
	}
	if at.Errors() > before {
		return
	}
	if cpus > maxCPUs {
		at.Errorf("a machine has up to %d CPUs, not %d", maxCPUs, cpus)
		return
	}
	if t.NUMANodes != 0 && len(t.NUMA) != 0 && t.NUMANodes != len(t.NUMA) {
		at.Field("numaNodes").Errorf("says %d, but numa lists %d", t.NUMANodes, len(t.NUMA))
		return
	}
	topo, err := t.layout().New()
	if err != nil {
		at.Errorf("%v", err)
		return
	}
	if g.Capacity == nil {
		g.Capacity = v1.ResourceList{}
	}
	if q, ok := g.Capacity[v1.ResourceCPU]; ok && q.Value() != int64(cpus) {
		at.Errorf("it has %d CPUs, but capacity.cpu says %s", cpus, q.String())
	}
	g.Capacity[v1.ResourceCPU] = *resource.NewQuantity(int64(cpus), resource.DecimalSI)
	g.checkNUMA(at.Field("numa"), len(topo.Nodes))
}

// checkNUMA checks what is said of a group's NUMA nodes; their memory is then the
// capacity's.
func (g *NodeGroup) checkNUMA(at decode.Place, nodes int) {
	sum, said := resource.Quantity{}, 0
	for i := range g.Topology.NUMA {
		n := &g.Topology.NUMA[i]
		at := at.Index(i)
		if n.Memory != nil {
			if n.Memory.Sign() <= 0 {
				at.Field("memory").Errorf("must be more than 0")
			}
			sum.Add(*n.Memory)
			said++
		}
		for _, name := range sets.List(sets.KeySet(n.HugePages)) {
			q := n.HugePages[name]
			text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
			size, err := resource.ParseQuantity(text)
			switch at := at.Field("hugepages").Key(string(name)); {
			case !ok || err != nil || size.Sign() <= 0:
				at.Errorf("is no resource of huge pages, such as hugepages-2Mi")
			case q.Sign() < 0 || q.Value()%size.Value() != 0:
				at.Errorf("%s is no multiple of %s", q.String(), size.String())
			}
		}
		if n.Distances != nil && len(n.Distances) != nodes {
			at.Field("distances").Errorf("there are %d NUMA nodes, not %d", nodes, len(n.Distances))
		}
		for _, d := range n.Distances {
			if d < 1 || d > 255 {
				at.Field("distances").Errorf("distances are between 1 and 255")
				break
			}
		}
	}
	if said == 0 {
		return
	}
	if said != len(g.Topology.NUMA) {
		at.Errorf("either each NUMA node says its memory, or none does")
		return
	}
	if q, ok := g.Capacity[v1.ResourceMemory]; ok && q.Cmp(sum) != 0 {
		at.Errorf("the NUMA nodes have %s of memory, but capacity.memory says %s", sum.String(), q.String())
	}
	g.Capacity[v1.ResourceMemory] = sum
}

// layout is the topology as the kubelet's managers take it apart.
func (t *Topology) layout() cm.Layout {
	return cm.Layout{
		Sockets: t.Sockets, CoresPerSocket: t.CoresPerSocket, ThreadsPerCore: t.ThreadsPerCore,
		NUMANodes: max(t.NUMANodes, len(t.NUMA)), UncoreCaches: t.UncoreCaches,
	}
}

// machineTopology is the topology of a group's machines; nil if it says none.
// What it says was checked.
func (g *NodeGroup) machineTopology() *cm.Topology {
	if g.Topology == nil {
		return nil
	}
	out, err := g.Topology.layout().New()
	if err != nil {
		return nil
	}
	for i := range g.Topology.NUMA {
		n, to := &g.Topology.NUMA[i], &out.Nodes[i]
		if n.Memory != nil {
			to.Memory = n.Memory.Value()
		}
		for _, name := range sets.List(sets.KeySet(n.HugePages)) {
			size := resource.MustParse(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
			q := n.HugePages[name]
			to.HugePages = append(to.HugePages, cm.HugePages{Size: size.Value(), Count: q.Value() / size.Value()})
		}
		if n.Distances != nil {
			to.Distances = n.Distances
		}
	}
	return out
}
