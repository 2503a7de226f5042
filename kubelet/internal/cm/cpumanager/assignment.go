package cpumanager

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

// accumulator takes CPUs until there are as many as needed (upstream
// pkg/kubelet/cm/cpumanager/cpu_assignment.go).
type accumulator struct {
	m      *machine
	free   *details
	needed int
	result cpuset.CPUSet
	// spread takes CPUs from all over, not core by core.
	spread bool
}

// newAccumulator begins the choice of n of the CPUs that are available.
func newAccumulator(m *machine, available cpuset.CPUSet, n int, spread bool) *accumulator {
	return &accumulator{m: m, free: newDetails(m.all.list, available), needed: n, result: cpuset.New(), spread: spread}
}

// take adds CPUs to the result; they are no longer free.
func (a *accumulator) take(cpus cpuset.CPUSet) {
	a.result = a.result.Union(cpus)
	a.free = newDetails(a.free.list, a.free.cpus.Difference(cpus))
	a.needed -= cpus.Size()
}

// check returns an error if there are not enough CPUs.
func (a *accumulator) check() error {
	if a.needed > a.free.cpus.Size() {
		return fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", a.needed, a.free.cpus.Size())
	}
	return nil
}

// sorted puts units in the order in which they are used up: those with the
// fewest free CPUs first, then by ID. ids must ascend.
func (a *accumulator) sorted(u unit, ids []int) []int {
	slices.SortStableFunc(ids, func(x, y int) int { return a.free.of(u, x).Size() - a.free.of(u, y).Size() })
	return ids
}

// order lists the units of a kind in the order in which they are used up: that
// of the units around them, then their own.
func (a *accumulator) order(u unit) []int {
	outer, ok := a.m.around(u)
	if !ok {
		return a.sorted(u, a.free.ids(u))
	}
	var out []int
	for _, id := range a.order(outer) {
		out = append(out, a.sorted(u, a.free.within(u, outer, id))...)
	}
	return out
}

// takeWhole takes whole units that are entirely free while as many are needed.
func (a *accumulator) takeWhole(u unit) {
	for _, id := range a.order(u) {
		all := a.m.all.of(u, id)
		if a.free.of(u, id).Size() == all.Size() && a.needed >= all.Size() {
			a.take(all)
		}
	}
}

// takeUncore takes whole uncore caches, then a part of the first that can hold
// all that is still needed.
func (a *accumulator) takeUncore() {
	for _, id := range a.order(uncore) {
		if a.needed >= a.m.perUncore {
			a.takeWhole(uncore)
		}
		if a.needed < 1 {
			return
		}
		a.takePartOf(id)
	}
}

// takePartOf takes what is needed from one uncore cache, from its first cores; if
// they don't have just that much, nothing. A core of which a CPU is taken counts
// as a core, as upstream has it: the cache may well have enough.
func (a *accumulator) takePartOf(id int) {
	cores := a.free.within(core, uncore, id)
	if want := (a.needed + a.m.perCore - 1) / a.m.perCore; len(cores) > want {
		cores = cores[:want]
	}
	cpus := a.free.ofAll(core, cores)
	// Of an odd need the last core gives one thread less.
	if ids := cpus.List(); a.needed%2 != 0 && a.m.perCore > 1 && len(ids) > a.needed {
		cpus = cpuset.New(ids[:len(ids)-1]...)
	}
	if cpus.Size() == a.needed {
		a.take(cpus)
	}
}

// takeSingle takes CPUs one by one.
func (a *accumulator) takeSingle() {
	u := core
	if a.spread {
		u = socket
	}
	for _, id := range a.order(u) {
		for _, cpu := range a.free.of(u, id).List() {
			if a.needed < 1 {
				return
			}
			a.take(cpuset.New(cpu))
		}
	}
}

// packed picks n CPUs so that as many others as can be stay whole units (upstream
// takeByTopologyNUMAPacked).
func packed(m *machine, available cpuset.CPUSet, n int, spread, byUncore bool) (cpuset.CPUSet, error) {
	a := newAccumulator(m, available, n, spread)
	if n < 1 {
		return a.result, nil
	}
	if err := a.check(); err != nil {
		return cpuset.New(), err
	}
	steps := []func(){
		func() { a.takeWhole(m.outer) },
		func() { a.takeWhole(m.inner) },
	}
	if byUncore {
		steps = append(steps, a.takeUncore)
	}
	if !spread {
		steps = append(steps, func() { a.takeWhole(core) })
	}
	for _, step := range append(steps, a.takeSingle) {
		if step(); a.needed < 1 {
			return a.result, nil
		}
	}
	return cpuset.New(), fmt.Errorf("failed to allocate cpus")
}
