package report

import (
	"cmp"
	"slices"
)

// HotSpot is a node that has more of something than others. Value and Median are in the unit that
// What names.
type HotSpot struct {
	What          string
	Rank          int // from 1
	Node          string
	Value, Median float64
}

// hotSpotsEach is how many nodes are named for each thing.
const hotSpotsEach = 5

// hotSpots are the nodes that are above the median by most, thing by thing; ties
// in the order of the nodes. The median rather than the mean: one hot node would
// move the mean towards itself. A thing that is the same on all nodes has no hot spot, however
// much there is of it.
func (r *Report) hotSpots() (out []HotSpot) {
	for _, m := range []struct {
		what  string
		value func(*Node) float64
	}{
		{"p99 start (s)", func(n *Node) float64 { return n.StartupP99.Seconds() }},
		{"Pods", func(n *Node) float64 { return float64(n.Pods) }},
		{"Pods started", func(n *Node) float64 { return float64(n.Started) }},
		{"Container restarts", func(n *Node) float64 { return float64(n.Restarts) }},
		{"OOM kills", func(n *Node) float64 { return float64(n.OOMKills) }},
		{"Pods evicted", func(n *Node) float64 { return float64(n.Evicted) }},
		{"Pods rejected", func(n *Node) float64 { return float64(n.Rejected) }},
		{"Not Ready (s)", func(n *Node) float64 { return n.NotReady.Seconds() }},
	} {
		order := make([]*Node, len(r.Nodes))
		for i := range r.Nodes {
			order[i] = &r.Nodes[i]
		}
		slices.SortStableFunc(order, func(a, b *Node) int { return cmp.Compare(m.value(b), m.value(a)) })
		if len(order) == 0 {
			continue
		}
		median := m.value(order[len(order)/2])
		for i, n := range order[:min(hotSpotsEach, len(order))] {
			if v := m.value(n); v > median {
				out = append(out, HotSpot{m.what, i + 1, n.Name, v, median})
			}
		}
	}
	return out
}
