package scheduler

import (
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// This file has the scores of use: NodeResourcesFit's by its strategies, and
// NodeResourcesBalancedAllocation's (plugins/noderesources). Both come in two forms, over any
// resources, and over CPU and memory alone, which is the default and need not build lists.

// scoring is NodeResourcesFit's strategy.
type scoring struct {
	resources []configv1.ResourceSpec
	// ofUse turns a share in use into a score; false: it doesn't count in the mean.
	ofUse func(requested, allocatable int64) (int64, bool)
	// rounds: the mean is rounded and not cut.
	rounds bool
	// plain: the least allocated of CPU and memory, alike.
	plain bool
}

// newScoring reads a strategy.
func newScoring(s *configv1.ScoringStrategy) scoring {
	out := scoring{resources: s.Resources, plain: s.Type == configv1.LeastAllocated && isPlain(s.Resources)}
	switch s.Type {
	case configv1.MostAllocated:
		out.ofUse = func(requested, allocatable int64) (int64, bool) {
			return percent(min(requested, allocatable), allocatable), true
		}
	case configv1.RequestedToCapacityRatio:
		shape := s.RequestedToCapacityRatio.Shape
		out.rounds = true
		out.ofUse = func(requested, allocatable int64) (int64, bool) {
			use := int64(maxNodeScore) // percent
			if requested <= allocatable {
				use = percent(requested, allocatable)
			}
			score := onShape(shape, use)
			return score, score > 0
		}
	default:
		out.ofUse = func(requested, allocatable int64) (int64, bool) {
			if requested > allocatable {
				return 0, true
			}
			return percent(allocatable-requested, allocatable), true
		}
	}
	return out
}

// shapeScale is what a shape's scores, up to 10, are multiplied by.
const shapeScale = maxNodeScore / 10

// onShape returns a shape's score at a use in percent: on the lines between its points, and level
// before the first and after the last (helper.BuildBrokenLinearFunction).
func onShape(shape []configv1.UtilizationShapePoint, use int64) int64 {
	at := func(i int) (int64, int64) { return int64(shape[i].Utilization), int64(shape[i].Score) * shapeScale }
	for i := range shape {
		x, y := at(i)
		if use > x {
			continue
		}
		if i == 0 {
			return y
		}
		x0, y0 := at(i - 1)
		return y0 + (y-y0)*(use-x0)/(x-x0)
	}
	_, y := at(len(shape) - 1)
	return y
}

// isScalar reports whether a resource counts by name: all but CPU, memory and storage
// (schedutil.IsScalarResourceName).
func isScalar(name v1.ResourceName) bool {
	return isExtendedName(name) || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) || strings.HasPrefix(string(name), v1.ResourceAttachableVolumesPrefix) ||
		strings.HasPrefix(string(name), v1.ResourceDefaultNamespacePrefix)
}

// deviceTotals tells how many devices a node has of a resource that drivers provide, and how many
// of them are taken; 0: they provide none of it there.
type deviceTotals func(name v1.ResourceName) (capacity, taken int64)

// score is NodeResourcesFit.Score over any resources. c's own requests have defaults for
// containers that ask for nothing. devices may be nil: drivers provide nothing.
func (s *scoring) score(c *class, n *nodeInfo, devices deviceTotals) int64 {
	if s.plain {
		return leastAllocated(&c.own, n)
	}
	var total, weights int64
	for _, r := range s.resources {
		name := v1.ResourceName(r.Name)
		var need, used int64
		switch name {
		case v1.ResourceCPU:
			need, used = c.own.cpu, n.scoreCPU.value()
		case v1.ResourceMemory:
			need, used = c.own.memory, n.scoreMemory.value()
		case v1.ResourceEphemeralStorage:
			need, used = c.own.storage, n.storage.value()
		default:
			need, used = amountOf(c.ownExt, name), n.extUsed(name)
		}
		allocatable := n.allocatable(name)
		if allocatable == 0 && devices != nil {
			allocatable, used = devices(name)
		}
		if allocatable == 0 || need == 0 && isScalar(name) {
			continue
		}
		score, counts := s.ofUse(sum(used, need), allocatable)
		if counts {
			total += score * r.Weight
			weights += r.Weight
		}
	}
	switch {
	case weights == 0:
		return 0
	case s.rounds:
		return int64(math.Round(float64(total) / float64(weights)))
	}
	return total / weights
}

// leastAllocated is NodeResourcesFit's default strategy.
func leastAllocated(own *amounts, n *nodeInfo) int64 {
	var total, weights int64
	for _, x := range [2][2]int64{
		{sum(n.scoreCPU.value(), own.cpu), n.alloc.cpu},
		{sum(n.scoreMemory.value(), own.memory), n.alloc.memory},
	} {
		if x[1] == 0 {
			continue
		}
		weights++
		if x[0] <= x[1] {
			total += percent(x[1]-x[0], x[1])
		}
	}
	if weights == 0 {
		return 0
	}
	return total / weights
}

// balanced is NodeResourcesBalancedAllocation; pods that request none of the resources are not
// scored.
func (p *profile) balancedScore(r *request, n *nodeInfo, devices deviceTotals) int64 {
	if p.balanced != nil {
		return balancedOf(p.balanced, r, n, devices)
	}
	if r.cpu == 0 && r.memory == 0 {
		return 0
	}
	used := n.requested()
	with := balance(sum(used.cpu, r.cpu), sum(used.memory, r.memory), n)
	without := balance(used.cpu, used.memory, n)
	return improvement(with, without)
}

// improvement is the score of a balance that becomes another.
func improvement(with, without int64) int64 { return maxNodeScore/2 + (maxNodeScore/2+with-without)/2 }

func balance(cpu, memory int64, n *nodeInfo) int64 {
	if n.alloc.cpu == 0 || n.alloc.memory == 0 {
		return maxNodeScore
	}
	a := min(float64(cpu)/float64(n.alloc.cpu), 1)
	b := min(float64(memory)/float64(n.alloc.memory), 1)
	return int64((1 - math.Abs((a-b)/2)) * maxNodeScore)
}

// balancedOf is the same over any resources.
func balancedOf(resources []configv1.ResourceSpec, r *request, n *nodeInfo, devices deviceTotals) int64 {
	var with, without []float64
	asks := false
	for _, x := range resources {
		name := v1.ResourceName(x.Name)
		need, used, allocatable := r.of(name), n.used(name), n.allocatable(name)
		if allocatable == 0 && devices != nil {
			allocatable, used = devices(name)
		}
		asks = asks || need > 0
		if allocatable == 0 || need == 0 && isScalar(name) {
			continue
		}
		with = append(with, min(float64(sum(used, need))/float64(allocatable), 1))
		without = append(without, min(float64(used)/float64(allocatable), 1))
	}
	if !asks {
		return 0
	}
	return improvement(evenness(with), evenness(without))
}

// evenness is 100 for shares that are all alike, and less by their standard deviation.
func evenness(shares []float64) int64 {
	std := 0.0
	switch k := float64(len(shares)); {
	case k == 2:
		std = math.Abs((shares[0] - shares[1]) / 2)
	case k > 2:
		var total, squares float64
		for _, x := range shares {
			total += x
		}
		for _, x := range shares {
			squares += (x - total/k) * (x - total/k)
		}
		std = math.Sqrt(squares / k)
	}
	return int64((1 - std) * maxNodeScore)
}

// of returns what is asked for of a resource.
func (r *request) of(name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return r.cpu
	case v1.ResourceMemory:
		return r.memory
	case v1.ResourceEphemeralStorage:
		return r.storage
	}
	return amountOf(r.ext, name)
}

// used returns what the node's pods ask for of a resource.
func (n *nodeInfo) used(name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return n.cpu.value()
	case v1.ResourceMemory:
		return n.memory.value()
	case v1.ResourceEphemeralStorage:
		return n.storage.value()
	}
	return n.extUsed(name)
}

// allocatable returns what the node has of a resource.
func (n *nodeInfo) allocatable(name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return n.alloc.cpu
	case v1.ResourceMemory:
		return n.alloc.memory
	case v1.ResourceEphemeralStorage:
		return n.alloc.storage
	}
	return amountOf(n.allocExt, name)
}
