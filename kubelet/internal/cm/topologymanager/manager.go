// Package topologymanager has a pod's containers get CPUs and memory of the same
// NUMA nodes: it asks who gives them out for hints, merges these by a policy,
// and has them allocate. It mirrors upstream's pkg/kubelet/cm/topologymanager.
//
// Here a merged hint is known only while its pod is admitted, which is when it
// is asked for; upstream keeps it for as long as the container is there.
package topologymanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
)

// The policies and scopes.
const (
	PolicyNone           = "none"
	PolicyBestEffort     = "best-effort"
	PolicyRestricted     = "restricted"
	PolicySingleNUMANode = "single-numa-node"
	ScopeContainer       = "container"
	ScopePod             = "pod"
)

// The reasons of refused pods.
const (
	ErrorTopologyAffinity = "TopologyAffinityError"
	ErrorUnexpected       = "UnexpectedAdmissionError"
)

// The policy's options, and the number of NUMA nodes up to which combinations of
// hints stay few.
const (
	preferClosest   = "prefer-closest-numa-nodes"
	maxAllowable    = "max-allowable-numa-nodes"
	defaultMaxNodes = 8
)

// TypedError is an error of a provider that is a reason of its own.
type TypedError interface {
	error
	// Type is the reason.
	Type() string
}

// HintProvider gives out one kind of resources.
type HintProvider interface {
	// GetTopologyHints says where a container's could come from, by resource;
	// none: it does not matter.
	GetTopologyHints(pod *v1.Pod, c *v1.Container) []Hints
	// GetPodTopologyHints is about all containers of a pod together.
	GetPodTopologyHints(pod *v1.Pod) []Hints
	// Allocate gives a container what it has not got yet, from where the
	// manager's hint says. It may wait.
	Allocate(ctx context.Context, pod *v1.Pod, c *v1.Container) error
}

// Options are the options of a policy.
type Options struct {
	PreferClosestNUMANodes bool
	MaxAllowableNUMANodes  int
}

// ParseOptions reads topologyManagerPolicyOptions. The error is upstream's.
func ParseOptions(m map[string]string) (Options, error) {
	o := Options{MaxAllowableNUMANodes: defaultMaxNodes}
	for _, name := range sets.List(sets.KeySet(m)) {
		switch name {
		case preferClosest:
			on, err := strconv.ParseBool(m[name])
			if err != nil {
				return o, fmt.Errorf("bad value for option %q: %w", name, err)
			}
			o.PreferClosestNUMANodes = on
		case maxAllowable:
			n, err := strconv.Atoi(m[name])
			if err != nil {
				return o, fmt.Errorf("unable to convert policy option to integer %q: %w", name, err)
			}
			if n < defaultMaxNodes {
				return o, fmt.Errorf("the minimum value of %q should not be less than %v", name, defaultMaxNodes)
			}
			o.MaxAllowableNUMANodes = n
		default:
			return o, fmt.Errorf("unknown Topology Manager Policy option: %q", name)
		}
	}
	return o, nil
}

// Manager admits pods by where their resources are. It is for use on one loop.
type Manager struct {
	policy, scope string
	merger        merger
	providers     []HintProvider
	// hints are those of the pod that is being admitted, by container.
	hints map[string]Hint
}

// New returns a manager without providers. Unless the policy is none, a machine
// with more NUMA nodes than the options allow is an error.
func New(topo *cm.Topology, policy, scope string, o Options) (*Manager, error) {
	nodes := topo.NodeIDs()
	m := &Manager{policy: policy, scope: scope, merger: merger{
		all: NewMask(nodes...), topo: topo, closest: o.PreferClosestNUMANodes && policy != PolicySingleNUMANode,
	}}
	if policy != PolicyNone && len(nodes) > o.MaxAllowableNUMANodes {
		return nil, fmt.Errorf("unsupported on machines with more than %v NUMA Nodes", o.MaxAllowableNUMANodes)
	}
	return m, nil
}

// Policy is the policy's name.
func (m *Manager) Policy() string { return m.policy }

// AddHintProvider adds one. They are asked in the order of their adding.
func (m *Manager) AddHintProvider(p HintProvider) { m.providers = append(m.providers, p) }

// GetAffinity is the merged hint for a container of the pod that is being
// admitted; under policy none that it does not matter.
func (m *Manager) GetAffinity(container string) Hint { return m.hints[container] }

// Admit implements lifecycle.PodAdmitHandler. What was allocated to the
// containers before the one that fails stays so until somebody looks for what
// belongs to no active pod.
func (m *Manager) Admit(ctx context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	pod := attrs.Pod
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	defer func() { m.hints = nil }()
	whole := Hint{}
	if m.policy != PolicyNone && m.scope == ScopePod {
		hints := make([][]Hints, len(m.providers))
		for i, p := range m.providers {
			hints[i] = p.GetPodTopologyHints(pod)
		}
		var admit bool
		if whole, admit = m.merge(hints); !admit {
			return refused()
		}
	}
	for i := range containers {
		c, hint := &containers[i], whole
		if m.policy != PolicyNone && m.scope != ScopePod {
			hints := make([][]Hints, len(m.providers))
			for k, p := range m.providers {
				hints[k] = p.GetTopologyHints(pod, c)
			}
			var admit bool
			if hint, admit = m.merge(hints); !admit {
				return refused()
			}
		}
		if m.policy != PolicyNone {
			if m.hints == nil {
				m.hints = map[string]Hint{}
			}
			m.hints[c.Name] = hint
		}
		for _, p := range m.providers {
			if err := p.Allocate(ctx, pod, c); err != nil {
				return failed(err)
			}
		}
	}
	return lifecycle.PodAdmitResult{Admit: true}
}

// merge returns the best hint and whether the policy takes it.
func (m *Manager) merge(providers [][]Hints) (hint Hint, admit bool) {
	m.merger.hints = lists(providers)
	if m.policy == PolicySingleNUMANode {
		m.merger.hints = singleNode(m.merger.hints)
	}
	hint = m.merger.merge()
	if m.policy == PolicySingleNUMANode && hint.Affinity == m.merger.all {
		hint.Affinity = 0
	}
	return hint, hint.Preferred || m.policy == PolicyBestEffort
}

// refused is the answer to a pod whose resources the policy wants closer
// together.
func refused() lifecycle.PodAdmitResult {
	return lifecycle.PodAdmitResult{Reason: ErrorTopologyAffinity, Message: "Resources cannot be allocated with Topology locality"}
}

// failed is the answer to a pod that a provider has nothing for. A provider's
// own reason becomes the pod's.
func failed(err error) lifecycle.PodAdmitResult {
	var typed TypedError
	if errors.As(err, &typed) {
		return lifecycle.PodAdmitResult{Reason: typed.Type(), Message: err.Error()}
	}
	return lifecycle.PodAdmitResult{Reason: ErrorUnexpected, Message: fmt.Sprintf("Allocate failed due to %v, which is unexpected", err)}
}
