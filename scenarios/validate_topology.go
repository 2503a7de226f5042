package scenarios

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// maxCPUs keeps a typing error from costing gigabytes.
const maxCPUs = 1 << 12

// topology checks a group's topology and that it goes with its capacity, which
// has then what the topology says.
func (v *validator) topology(at string, g *NodeGroup) {
	t := g.Topology
	if t == nil {
		return
	}
	at += ".topology"
	before := len(v.d.l.errs)
	cpus := 1
	for _, f := range [...]struct {
		name string
		n    int
		cpus bool
	}{
		{"sockets", t.Sockets, true}, {"coresPerSocket", t.CoresPerSocket, true}, {"threadsPerCore", t.ThreadsPerCore, true},
		{"numaNodes", t.NUMANodes, false}, {"uncoreCaches", t.UncoreCaches, false},
	} {
		if f.n < 0 || f.n > maxCPUs || f.n == 0 && valueAt(v.doc, at+"."+f.name) != nil {
			v.errorf(at+"."+f.name, "must be between 1 and %d", maxCPUs)
		} else if f.cpus {
			cpus *= max(f.n, 1)
		}
	}
	if len(v.d.l.errs) > before {
		return
	}
	if cpus > maxCPUs {
		v.errorf(at, "a machine has up to %d CPUs, not %d", maxCPUs, cpus)
		return
	}
	if t.NUMANodes != 0 && len(t.NUMA) != 0 && t.NUMANodes != len(t.NUMA) {
		v.errorf(at+".numaNodes", "says %d, but numa lists %d", t.NUMANodes, len(t.NUMA))
		return
	}
	topo, err := t.layout().New()
	if err != nil {
		v.errorf(at, "%v", err)
		return
	}
	if g.Capacity == nil {
		g.Capacity = v1.ResourceList{}
	}
	if q, ok := g.Capacity[v1.ResourceCPU]; ok && q.Value() != int64(cpus) {
		v.errorf(at, "it has %d CPUs, but capacity.cpu says %s", cpus, q.String())
	}
	g.Capacity[v1.ResourceCPU] = *resource.NewQuantity(int64(cpus), resource.DecimalSI)
	v.numaNodes(at+".numa", g, len(topo.Nodes))
}

// numaNodes checks what is said of a group's NUMA nodes.
func (v *validator) numaNodes(at string, g *NodeGroup, nodes int) {
	sum, said := resource.Quantity{}, 0
	for i := range g.Topology.NUMA {
		n := &g.Topology.NUMA[i]
		at := fmt.Sprintf("%s[%d]", at, i)
		if n.Memory != nil {
			if n.Memory.Sign() <= 0 {
				v.errorf(at+".memory", "must be more than 0")
			}
			sum.Add(*n.Memory)
			said++
		}
		for _, name := range sets.List(sets.KeySet(n.HugePages)) {
			q := n.HugePages[name]
			text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
			size, err := resource.ParseQuantity(text)
			switch at := fmt.Sprintf("%s.hugepages[%q]", at, name); {
			case !ok || err != nil || size.Sign() <= 0:
				v.errorf(at, "is no resource of huge pages, such as hugepages-2Mi")
			case q.Sign() < 0 || q.Value()%size.Value() != 0:
				v.errorf(at, "%s is no multiple of %s", q.String(), size.String())
			}
		}
		if n.Distances != nil && len(n.Distances) != nodes {
			v.errorf(at+".distances", "there are %d NUMA nodes, not %d", nodes, len(n.Distances))
		}
		for _, d := range n.Distances {
			if d < 1 || d > 255 {
				v.errorf(at+".distances", "distances are between 1 and 255")
				break
			}
		}
	}
	if said == 0 {
		return
	}
	if said != len(g.Topology.NUMA) {
		v.errorf(at, "either each NUMA node says its memory, or none does")
		return
	}
	if q, ok := g.Capacity[v1.ResourceMemory]; ok && q.Cmp(sum) != 0 {
		v.errorf(at, "the NUMA nodes have %s of memory, but capacity.memory says %s", sum.String(), q.String())
	}
	g.Capacity[v1.ResourceMemory] = sum
}

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
