package cpumanager

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/utils/cpuset"
)

// share is a way to spread CPUs over NUMA nodes.
type share struct {
	nodes []int
	// each is how many CPUs every node gives; rest are the nodes that give the
	// remainder, a group each in turn.
	each int
	rest []int
	// balance is the standard deviation of what is free afterwards.
	balance float64
}

// distributed picks n CPUs evenly from as few NUMA nodes as can be, in groups of
// a size; where that does not work out, as packed does (upstream
// takeByTopologyNUMADistributed).
func distributed(m *machine, available cpuset.CPUSet, n, group int, spread bool) (cpuset.CPUSet, error) {
	if n%group != 0 {
		return packed(m, available, n, spread, false)
	}
	a := newAccumulator(m, available, n, spread)
	if n < 1 {
		return a.result, nil
	}
	if err := a.check(); err != nil {
		return cpuset.New(), err
	}
	nodes := a.order(node)
	lo, hi := a.nodesNeeded(group)
	for k := lo; k <= hi; k++ {
		best := a.bestShare(nodes, k, group)
		if best == nil {
			continue
		}
		if err := a.takeShare(best, group); err != nil {
			return cpuset.New(), err
		}
		return a.result, nil
	}
	return packed(m, available, n, spread, false)
}

// nodesNeeded are the least and the greatest number of NUMA nodes to try.
func (a *accumulator) nodesNeeded(group int) (lo, hi int) {
	up := func(x, y int) int { return (x-1)/y + 1 }
	perNode := up(up(a.m.all.cpus.Size(), group), len(a.m.all.in[node]))
	groups := up(a.needed, group)
	return up(groups, perNode), min(groups, len(a.free.in[node]))
}

// bestShare returns the best of all shares over k NUMA nodes, the first among
// equals; nil if there is none.
func (a *accumulator) bestShare(nodes []int, k, group int) *share {
	var best *share
	combinations(nodes, k, func(combo []int) bool {
		if s := a.shareOver(nodes, combo, group); s != nil && (best == nil || s.balance < best.balance) {
			best = s
		}
		return best == nil || best.balance != 0
	})
	return best
}

// shareOver is the best share over certain nodes; nil if they don't have enough.
func (a *accumulator) shareOver(nodes, combo []int, group int) *share {
	free := map[int]int{}
	for _, id := range nodes {
		free[id] = a.free.of(node, id).Size()
	}
	groups, each := 0, a.needed/len(combo)/group*group
	for _, id := range combo {
		groups += free[id] / group
		if free[id] < each {
			return nil
		}
	}
	if groups*group < a.needed {
		return nil
	}
	s := &share{nodes: slices.Clone(combo), each: each, balance: math.MaxFloat64}
	var spare []int
	for _, id := range combo {
		if free[id] -= each; free[id] >= group {
			spare = append(spare, id)
		}
	}
	rest := a.needed - each*len(combo)
	if rest == 0 {
		s.balance = deviation(nodes, free)
		return s
	}
	for k := len(spare); k >= 1; k-- {
		combinations(spare, k, func(subset []int) bool {
			if left := dealt(free, subset, rest, group); left != nil {
				if b := deviation(nodes, left); b < s.balance {
					s.balance, s.rest = b, slices.Clone(subset)
				}
			}
			return true
		})
	}
	if s.rest == nil {
		return nil
	}
	return s
}

// dealt is what is free after the rest was taken from a subset, a group each in
// turn; nil if that does not have enough.
func dealt(free map[int]int, subset []int, rest, group int) map[int]int {
	out, groups := make(map[int]int, len(free)), 0
	maps.Copy(out, free)
	for _, id := range subset {
		groups += out[id] / group
	}
	if groups*group < rest {
		return nil
	}
	for rest > 0 {
		for _, id := range subset {
			if rest > 0 && out[id] >= group {
				out[id] -= group
				rest -= group
			}
		}
	}
	return out
}

// takeShare takes a share's CPUs from each of its nodes, and the remainder in
// groups.
func (a *accumulator) takeShare(s *share, group int) error {
	n := a.needed
	take := func(id, count int) error {
		cpus, err := packed(a.m, a.free.of(node, id), count, a.spread, false)
		if err == nil {
			a.take(cpus)
		}
		return err
	}
	for _, id := range s.nodes {
		if err := take(id, s.each); err != nil {
			return err
		}
	}
	for a.needed > 0 {
		before := a.needed
		for _, id := range s.rest {
			if a.needed > 0 && a.free.of(node, id).Size() >= group {
				if err := take(id, group); err != nil {
					return err
				}
			}
		}
		if a.needed == before {
			return fmt.Errorf("accounting error, not enough CPUs allocated, remaining: %d of %d", a.needed, n)
		}
	}
	return nil
}

// deviation is the standard deviation, rounded to 3 decimals.
func deviation(nodes []int, free map[int]int) float64 {
	sum := 0.0
	for _, id := range nodes {
		sum += float64(free[id])
	}
	mean, squares := sum/float64(len(nodes)), 0.0
	for _, id := range nodes {
		d := float64(free[id]) - mean
		squares += d * d
	}
	return math.Round(math.Sqrt(squares/float64(len(nodes)))*1000) / 1000
}

// combinations hands out all k of the elements, in lexical order of their
// places, until fn returns false. The slice is fn's for the call only.
func combinations(of []int, k int, fn func([]int) bool) {
	pick := make([]int, 0, k)
	var next func(from int) bool
	next = func(from int) bool {
		if len(pick) == k {
			return fn(pick)
		}
		for i := from; i < len(of); i++ {
			pick = append(pick, of[i])
			more := next(i + 1)
			pick = pick[:len(pick)-1]
			if !more {
				return false
			}
		}
		return true
	}
	if k <= len(of) {
		next(0)
	}
}
