package topologymanager

import (
	"cmp"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Hint is where a provider could take its resources from.
type Hint struct {
	// Affinity are the NUMA nodes; 0: it does not matter.
	Affinity Mask
	// Preferred says that no other hint has fewer nodes.
	Preferred bool
}

// Hints are those for one resource. nil List: where it comes from does not
// matter; an empty one: it can't be had.
type Hints struct {
	Resource string
	List     []Hint
}

// merger finds the best hint among those of all providers (upstream
// pkg/kubelet/cm/topologymanager/policy.go).
type merger struct {
	all    Mask // nodes
	hints  [][]Hint
	target int // of nodes, for what is not preferred
	// closest goes by distance where masks have as many nodes.
	closest bool
	topo    *cm.Topology
}

// lists are the hints by resource. A provider without any says: anywhere.
func lists(providers [][]Hints) [][]Hint {
	var out [][]Hint
	for _, hints := range providers {
		if len(hints) == 0 {
			out = append(out, []Hint{{Preferred: true}})
		}
		for _, h := range hints {
			switch {
			case h.List == nil:
				out = append(out, []Hint{{Preferred: true}})
			case len(h.List) == 0:
				out = append(out, []Hint{{}})
			default:
				out = append(out, h.List)
			}
		}
	}
	return out
}

// singleNode keeps the preferred hints of one node, and of any.
func singleNode(hints [][]Hint) [][]Hint {
	out := make([][]Hint, 0, len(hints))
	for _, list := range hints {
		var keep []Hint
		for _, h := range list {
			if h.Preferred && h.Affinity.Count() <= 1 {
				keep = append(keep, h)
			}
		}
		out = append(out, keep)
	}
	return out
}

// merge returns the best of all combinations of one hint for each resource; all
// nodes, not preferred, if there is none.
func (m *merger) merge() Hint {
	m.target = 0
	for _, list := range m.hints {
		narrowest := Mask(0)
		for _, h := range list {
			if h.Affinity != 0 && (narrowest == 0 || h.Affinity.NarrowerThan(narrowest)) {
				narrowest = h.Affinity
			}
		}
		m.target = max(m.target, narrowest.Count())
	}
	var best *Hint
	m.combine(0, Hint{Affinity: m.all, Preferred: true}, 0, func(h Hint) {
		if h.Affinity != 0 && (best == nil || m.better(h, *best)) {
			best = &h
		}
	})
	if best == nil {
		return Hint{Affinity: m.all}
	}
	return *best
}

// combine calls fn with every combination's mask, which is preferred if all of
// its hints are, and all that say where say the same: first is what they said.
func (m *merger) combine(i int, h Hint, first Mask, fn func(Hint)) {
	if i == len(m.hints) {
		fn(h)
		return
	}
	for _, o := range m.hints[i] {
		next, said := h, first
		if o.Affinity != 0 {
			said = cmp.Or(said, o.Affinity)
			next.Affinity &= o.Affinity
			next.Preferred = next.Preferred && o.Affinity == said
		}
		next.Preferred = next.Preferred && o.Preferred
		m.combine(i+1, next, said, fn)
	}
}

// better reports whether a candidate takes the place of the best so far.
func (m *merger) better(candidate, current Hint) bool {
	if candidate.Preferred != current.Preferred {
		return candidate.Preferred
	}
	c, n := current.Affinity.Count(), candidate.Affinity.Count()
	switch {
	case candidate.Preferred, c > m.target, c == m.target && n == m.target:
		return m.fitter(candidate.Affinity, current.Affinity)
	case c == m.target, n > m.target:
		return false
	case n == m.target || n > c:
		return true
	case n < c:
		return false
	}
	return m.fitter(candidate.Affinity, current.Affinity)
}

// fitter reports whether mask a is a better choice than b, all else being equal.
func (m *merger) fitter(a, b Mask) bool {
	if a == b {
		return false
	}
	if m.closest && a.Count() == b.Count() {
		if x, y := m.distance(a), m.distance(b); x != y {
			return x < y
		}
	}
	return a.NarrowerThan(b)
}

// distance is the average distance between a mask's nodes, each pair counted
// both ways and each node with itself.
func (m *merger) distance(mask Mask) float64 {
	sum, n := 0, 0
	for i := range m.topo.Nodes {
		if !mask.Has(m.topo.Nodes[i].ID) {
			continue
		}
		for k := range m.topo.Nodes {
			if mask.Has(m.topo.Nodes[k].ID) && k < len(m.topo.Nodes[i].Distances) {
				sum += m.topo.Nodes[i].Distances[k]
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}
