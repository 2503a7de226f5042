package cpumanager

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// The names of the static policy's options.
const (
	fullPCPUsOnly        = "full-pcpus-only"
	distributeAcrossNUMA = "distribute-cpus-across-numa"
	alignBySocket        = "align-by-socket"
	distributeAcrossCore = "distribute-cpus-across-cores"
	strictReservation    = "strict-cpu-reservation"
	preferUncore         = "prefer-align-cpus-by-uncorecache"
)

// Options are the options of the static policy.
type Options struct {
	// FullPhysicalCPUsOnly gives out whole cores only.
	FullPhysicalCPUsOnly bool
	// DistributeCPUsAcrossNUMA takes CPUs evenly from NUMA nodes.
	DistributeCPUsAcrossNUMA bool
	// AlignBySocket prefers what is in one socket to what is in one NUMA node.
	AlignBySocket bool
	// DistributeCPUsAcrossCores takes CPUs of different cores.
	DistributeCPUsAcrossCores bool
	// StrictCPUReservation keeps shared containers off the reserved CPUs.
	StrictCPUReservation bool
	// PreferAlignByUncoreCache takes CPUs that share an uncore cache.
	PreferAlignByUncoreCache bool
}

// ParseOptions reads cpuManagerPolicyOptions for a policy. The error is
// upstream's, of the first option by name (pkg/kubelet/cm/cpumanager/policy_options.go).
func ParseOptions(policy string, m map[string]string, gates features.Gates) (Options, error) {
	var o Options
	if policy != PolicyStatic {
		if len(m) > 0 {
			return o, fmt.Errorf("None policy: received unsupported options=%v", m)
		}
		return o, nil
	}
	fields := map[string]*bool{
		fullPCPUsOnly: &o.FullPhysicalCPUsOnly, strictReservation: &o.StrictCPUReservation, preferUncore: &o.PreferAlignByUncoreCache,
		distributeAcrossNUMA: &o.DistributeCPUsAcrossNUMA, alignBySocket: &o.AlignBySocket, distributeAcrossCore: &o.DistributeCPUsAcrossCores,
	}
	for _, name := range sets.List(sets.KeySet(m)) {
		field := fields[name]
		switch {
		case field == nil:
			return o, fmt.Errorf("unknown CPU Manager Policy option: %q", name)
		case (name == alignBySocket || name == distributeAcrossCore) && !gates.Enabled(features.CPUManagerPolicyAlphaOptions):
			return o, fmt.Errorf("CPU Manager Policy Alpha-level Options not enabled, but option %q provided", name)
		case name == distributeAcrossNUMA && !gates.Enabled(features.CPUManagerPolicyBetaOptions):
			return o, fmt.Errorf("CPU Manager Policy Beta-level Options not enabled, but option %q provided", name)
		}
		on, err := strconv.ParseBool(m[name])
		if err != nil {
			return o, fmt.Errorf("bad value for option %q: %w", name, err)
		}
		*field = on
	}
	for _, pair := range [...][2]string{
		{fullPCPUsOnly, distributeAcrossCore}, {distributeAcrossNUMA, distributeAcrossCore},
		{preferUncore, distributeAcrossCore}, {preferUncore, distributeAcrossNUMA},
	} {
		if *fields[pair[0]] && *fields[pair[1]] {
			return o, fmt.Errorf("static policy options %s and %s can not be used at the same time", pair[0], pair[1])
		}
	}
	return o, nil
}

// check reports whether options go with a machine and a topology policy.
func (o *Options) check(m *machine, topologyPolicy string) error {
	if !o.AlignBySocket {
		return nil
	}
	if topologyPolicy == topologymanager.PolicySingleNUMANode {
		return fmt.Errorf("Topolgy manager %s policy is incompatible with CPUManager %s policy option", topologyPolicy, alignBySocket)
	}
	if len(m.all.in[socket]) > len(m.all.in[node]) {
		return fmt.Errorf("Align by socket is not compatible with hardware where number of sockets are more than number of NUMA")
	}
	return nil
}

// machine are the facts of a machine that assignments go by.
type machine struct {
	all *details
	// perCore and perUncore are how many CPUs a core and an uncore cache have.
	perCore, perUncore int
	// outer and inner are the units above cores: NUMA nodes and sockets, or the
	// other way round where a socket has several NUMA nodes.
	outer, inner unit
}

// newMachine works out what is the same for all choices. Where there are more
// NUMA nodes than sockets a node is a part of a socket, else the other way
// round.
func newMachine(t *cm.Topology) *machine {
	m := &machine{all: newDetails(t.CPUs, t.All()), outer: node, inner: socket, perCore: 1, perUncore: 1}
	if len(m.all.in[socket]) < len(m.all.in[node]) {
		m.outer, m.inner = socket, node
	}
	if n := len(t.CPUs); n > 0 {
		m.perCore, m.perUncore = n/len(m.all.in[core]), n/len(m.all.in[uncore])
	}
	return m
}

// around is the unit that others are enumerated in.
func (m *machine) around(u unit) (outer unit, ok bool) {
	switch u {
	case m.outer:
		return 0, false
	case m.inner:
		return m.outer, true
	case uncore:
		return node, true
	default:
		return m.inner, true
	}
}
