package cpumanager

import (
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// unit is what CPUs are grouped by.
type unit uint8

const (
	core unit = iota
	uncore
	socket
	node
	units
)

// of is the number of the unit that a CPU belongs to.
func (u unit) of(c *cm.CPU) int { return [...]int{c.Core, c.Uncore, c.Socket, c.Node}[u] }

// details are CPUs by what they belong to.
type details struct {
	cpus cpuset.CPUSet
	in   [units]map[int]cpuset.CPUSet
	list []cm.CPU
}

// newDetails are those of the machine's CPUs that are in a set.
func newDetails(all []cm.CPU, set cpuset.CPUSet) *details {
	d := &details{cpus: set}
	ids := [units]map[int][]int{{}, {}, {}, {}}
	for i := range all {
		c := &all[i]
		if !set.Contains(c.ID) {
			continue
		}
		d.list = append(d.list, *c)
		for u := range units {
			ids[u][u.of(c)] = append(ids[u][u.of(c)], c.ID)
		}
	}
	for u := range units {
		d.in[u] = make(map[int]cpuset.CPUSet, len(ids[u]))
		for id, cpus := range ids[u] { //drydock:unordered fills a map
			d.in[u][id] = cpuset.New(cpus...)
		}
	}
	return d
}

// of are the CPUs in one unit.
func (d *details) of(u unit, id int) cpuset.CPUSet { return d.in[u][id] }

// ofAll are the CPUs in several units.
func (d *details) ofAll(u unit, ids []int) cpuset.CPUSet {
	out := cpuset.New()
	for _, id := range ids {
		out = out.Union(d.of(u, id))
	}
	return out
}

// ids are the units of a kind, ascending.
func (d *details) ids(u unit) []int {
	out := make([]int, 0, len(d.in[u]))
	for id := range d.in[u] { //drydock:unordered sorted below
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// within are the units of a kind that have CPUs in a unit of another, ascending.
func (d *details) within(u unit, outer unit, id int) []int {
	var out []int
	for i := range d.list {
		if c := &d.list[i]; outer.of(c) == id {
			out = append(out, u.of(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
