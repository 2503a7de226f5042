package cpumanager

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager/state"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// ErrorSMTAlignment is the reason of pods that ask for parts of cores.
const ErrorSMTAlignment = "SMTAlignmentError"

// SMTAlignmentError is why full-pcpus-only refuses a container.
type SMTAlignmentError struct {
	Requested, PerCore int
	// Available are the CPUs of free cores, if there are too few of them.
	Available int
	TooFew    bool
}

// Error is upstream's text.
func (e SMTAlignmentError) Error() string {
	if e.TooFew {
		return fmt.Sprintf("SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d", e.Available, e.Requested, e.PerCore)
	}
	return fmt.Sprintf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", e.Requested, e.PerCore)
}

// Type implements topologymanager.TypedError.
func (e SMTAlignmentError) Type() string { return ErrorSMTAlignment }

// static is the static policy (upstream pkg/kubelet/cm/cpumanager/policy_static.go).
type static struct {
	m       *machine
	options Options
	// reserved are never given out, reservedCores their whole cores.
	reserved, reservedCores cpuset.CPUSet
	// reusable are the CPUs of init containers of the pod that was allocated to
	// last, which its later containers may have.
	reusable cpuset.CPUSet
	of       types.UID
	// affinity is the topology manager's hint for a container of the pod that is
	// being admitted; nil: none.
	affinity func(container string) topologymanager.Hint
}

// newStatic reserves the CPUs of a list, or if that is empty n of them.
func newStatic(m *machine, o Options, n int, list cpuset.CPUSet) (*static, error) {
	p := &static{m: m, options: o, reserved: list}
	if list.IsEmpty() {
		p.reserved, _ = p.pick(m.all.cpus, n) // too few is told below
	}
	if p.reserved.Size() != n {
		return nil, fmt.Errorf("[cpumanager] unable to reserve the required amount of CPUs (size of %s did not equal %d)", p.reserved, n)
	}
	p.reservedCores = cpuset.New()
	for _, id := range p.reserved.List() {
		c := m.find(id)
		if c == nil {
			return nil, fmt.Errorf("[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: %d", id)
		}
		p.reservedCores = p.reservedCores.Union(m.all.of(core, c.Core))
	}
	return p, nil
}

// pick chooses n of the available CPUs.
// Packing keeps whole sockets and cores free for others, distributing gives a
// container the same from each NUMA node.
func (p *static) pick(available cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	if p.options.DistributeCPUsAcrossNUMA {
		group := 1
		if p.options.FullPhysicalCPUsOnly {
			group = p.m.perCore
		}
		return distributed(p.m, available, n, group, p.options.DistributeCPUsAcrossCores)
	}
	return packed(p.m, available, n, p.options.DistributeCPUsAcrossCores, p.options.PreferAlignByUncoreCache)
}

// initial is the default set while nothing is assigned.
// Reserved CPUs are shared by all unless the reservation is strict.
func (p *static) initial() cpuset.CPUSet {
	if p.options.StrictCPUReservation {
		return p.m.all.cpus.Difference(p.reserved)
	}
	return p.m.all.cpus
}

// validate fills in a state that is new, and finds what an earlier kubelet's
// state has that this one's machine or settings have not.
// The errors keep the kubelet from starting, as upstream's do: whoever changed
// the settings has to drain the node first.
func (p *static) validate(s *state.State) error {
	shared, all := s.Default(), p.initial()
	if shared.IsEmpty() {
		if s.Len() > 0 {
			return fmt.Errorf("default cpuset cannot be empty")
		}
		s.SetDefault(all)
		return s.Store()
	}
	kept := p.reserved.Intersection(shared)
	switch {
	case p.options.StrictCPUReservation && !kept.IsEmpty():
		return fmt.Errorf("some of strictly reserved cpus: %q are present in defaultCpuSet: %q", kept.String(), shared.String())
	case !p.options.StrictCPUReservation && !kept.Equals(p.reserved):
		return fmt.Errorf("not all reserved cpus: %q are present in defaultCpuSet: %q", p.reserved.String(), shared.String())
	}
	known := shared
	for _, pod := range s.Pods() {
		for _, name := range s.Containers(pod) {
			set, _ := s.Get(pod, name)
			if !shared.Intersection(set).IsEmpty() {
				return fmt.Errorf("pod: %s, container: %s cpuset: %q overlaps with default cpuset %q", pod, name, set.String(), shared.String())
			}
			known = known.Union(set)
		}
	}
	if !known.Equals(all) {
		return fmt.Errorf("current set of available CPUs %q doesn't match with CPUs in state %q", all.String(), known.String())
	}
	return nil
}

// available are the CPUs that can be given out.
func (p *static) available(s *state.State) cpuset.CPUSet { return s.Default().Difference(p.reserved) }

// exclusive is how many CPUs a container has for itself: what it requests, if
// that is whole and the pod Guaranteed by its containers' resources.
// A fraction of a CPU can't be exclusive, and pod-level resources say nothing
// of a single container.
func exclusive(pod *v1.Pod, c *v1.Container) int {
	q := c.Resources.Requests[v1.ResourceCPU]
	if q.Value()*1000 != q.MilliValue() || q.IsZero() || resourcehelper.IsPodLevelResourcesSet(pod) || qos.Class(pod) != v1.PodQOSGuaranteed {
		return 0
	}
	return int(q.Value())
}

// reuse notes which CPUs of init containers later ones may have. Those of
// sidecars they may not.
func (p *static) reuse(pod *v1.Pod, c *v1.Container, set cpuset.CPUSet) {
	if p.of != pod.UID {
		p.of, p.reusable = pod.UID, cpuset.New()
	}
	if _, kind := kubecontainer.FindContainer(pod, c.Name); kind == kubecontainer.KindInit && !kubecontainer.IsRestartableInit(c) {
		p.reusable = p.reusable.Union(set)
		return
	}
	p.reusable = p.reusable.Difference(set)
}

// reusableBy are the CPUs of a pod's earlier init containers, which have ended
// by the time at which the next one starts.
func (p *static) reusableBy(pod *v1.Pod) cpuset.CPUSet {
	if p.of != pod.UID {
		return cpuset.New()
	}
	return p.reusable
}

// allocate gives a container its CPUs, if it is to have some of its own and has
// none yet. changed says that the state is another.
// A container that has CPUs keeps them, whatever the topology manager would
// want now: it runs on them.
func (p *static) allocate(s *state.State, pod *v1.Pod, c *v1.Container) (changed bool, err error) {
	n := exclusive(pod, c)
	if n == 0 {
		return false, nil
	}
	if err := p.aligned(s, n); err != nil {
		return false, err
	}
	if set, ok := s.Get(pod.UID, c.Name); ok {
		p.reuse(pod, c, set)
		return false, nil
	}
	candidates := p.available(s).Union(p.reusableBy(pod))
	got := cpuset.New()
	if p.affinity != nil {
		if mask := p.affinity(c.Name).Affinity; mask != 0 {
			near := candidates.Intersection(p.near(mask))
			if got, err = p.pick(near, min(n, near.Size())); err != nil {
				return false, err
			}
		}
	}
	rest, err := p.pick(candidates.Difference(got), n-got.Size())
	if err != nil {
		return false, err
	}
	got = got.Union(rest)
	s.SetDefault(s.Default().Difference(got))
	s.Set(pod.UID, c.Name, got)
	p.reuse(pod, c, got)
	return true, nil
}

// aligned refuses a number of CPUs that would leave part of a core to others.
// Cores that are partly reserved can't be given out whole, so they don't count.
func (p *static) aligned(s *state.State, n int) error {
	if !p.options.FullPhysicalCPUsOnly {
		return nil
	}
	if n%p.m.perCore != 0 {
		return SMTAlignmentError{Requested: n, PerCore: p.m.perCore}
	}
	if free := s.Default().Difference(p.reservedCores).Size(); n > free {
		return SMTAlignmentError{Requested: n, PerCore: p.m.perCore, Available: free, TooFew: true}
	}
	return nil
}

// near are the CPUs of a hint: those of its NUMA nodes or, with align-by-socket,
// of their sockets.
func (p *static) near(mask topologymanager.Mask) cpuset.CPUSet {
	if !p.options.AlignBySocket {
		return p.m.all.ofAll(node, mask.Bits())
	}
	return p.m.all.ofAll(socket, p.sockets(mask))
}

// sockets are those that NUMA nodes are in.
func (p *static) sockets(mask topologymanager.Mask) []int {
	seen := map[int]bool{}
	var out []int
	for _, id := range mask.Bits() {
		for _, s := range p.m.all.within(socket, node, id) {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// remove takes a container's CPUs back, but for those that another container of
// the pod has too.
// Containers share CPUs where a later one took those of an init container.
func (p *static) remove(s *state.State, pod types.UID, container string) {
	set, ok := s.Get(pod, container)
	if !ok {
		return
	}
	s.Delete(pod, container)
	for _, name := range s.Containers(pod) {
		other, _ := s.Get(pod, name)
		set = set.Difference(other)
	}
	s.SetDefault(s.Default().Union(set))
}
