// Package memorymanager gives containers of Guaranteed pods memory of as few
// NUMA nodes as can be. It mirrors upstream's pkg/kubelet/cm/memorymanager.
//
// It only does the sums: a container runs with cpuset_mems, the kernel keeps it
// to these nodes. What belongs to no active pod any more is found when somebody
// asks for memory. A Manager of policy None only keeps its checkpoint.
//
// manager.go takes what is asked of the manager and keeps its checkpoint,
// static.go has the machine's state and its rules, allocate.go finds nodes and
// takes memory from them. The sums are bytes; a block is memory of one type for
// one container, over one group of nodes.
package memorymanager

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager/state"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
)

// The policies.
const (
	PolicyNone   = "None"
	PolicyStatic = "Static"
)

// Config are what a Manager is made of.
type Config struct {
	Topology *cm.Topology
	// Policy is PolicyNone or PolicyStatic.
	Policy string
	// ReservedMemory is the field of that name; NodeReserved what the node holds
	// back in all, with hard eviction thresholds.
	ReservedMemory []kubeletconfig.MemoryReservation
	NodeReserved   v1.ResourceList
	// Affinity is the topology manager's hint for a container of the pod that is
	// being admitted; nil: it has none.
	Affinity func(container string) topologymanager.Hint
	// FS and Dir say where the checkpoint is; a nil FS: nowhere.
	FS  checkpointmanager.FS
	Dir string
	// ActivePods are those that have a right to what they were given.
	ActivePods func() []*v1.Pod
	// SourcesReady reports whether ActivePods can be all there are.
	SourcesReady func() bool
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// Manager is one kubelet's memory manager. It is for use on one loop.
// Admissions come one at a time, so what belongs to the one in progress, the
// pod and the topology manager's hint, is kept beside the state.
type Manager struct {
	// c and state are nil once a manager with policy None has started: it never
	// asks for them again, and most kubelets have one.
	c         *Config
	policy    *static // nil: policy None
	state     *state.State
	admitting *v1.Pod
	// Pinnings are containers that asked for memory of their own, PinningErrors those
	// that did not get it.
	Pinnings, PinningErrors uint64
}

// New returns a manager. The error is upstream's; the kubelet can't start then.
func New(c Config) (*Manager, error) {
	m := &Manager{c: &c}
	if c.Policy != PolicyStatic {
		return m, nil
	}
	reserved, err := systemReserved(&c)
	if err != nil {
		return nil, err
	}
	p, err := newStatic(c.Topology, reserved)
	if err != nil {
		return nil, err
	}
	p.affinity = c.Affinity
	m.policy = p
	return m, nil
}

// systemReserved reads reservedMemory, which must hold back as much as the node
// does.
func systemReserved(c *Config) (Reserved, error) {
	out, sums := Reserved{}, map[v1.ResourceName]*resource.Quantity{v1.ResourceMemory: resource.NewQuantity(0, resource.DecimalSI)}
	nodes := c.Topology.NodeIDs()
	for _, r := range c.ReservedMemory {
		id := int(r.NumaNode)
		if !slices.Contains(nodes, id) {
			return nil, fmt.Errorf("the reserved memory configuration references a NUMA node %d that does not exist on this machine", id)
		}
		if out[id] == nil {
			out[id] = map[v1.ResourceName]uint64{}
		}
		for name, q := range r.Limits { //drydock:unordered each key is on its own
			out[id][name] = uint64(q.Value())
			if sums[name] == nil {
				sums[name] = resource.NewQuantity(0, resource.DecimalSI)
			}
			sums[name].Add(q)
		}
	}
	for name := range c.NodeReserved { //drydock:unordered fills a map
		if isMemory(name) && sums[name] == nil {
			sums[name] = resource.NewQuantity(0, resource.DecimalSI)
		}
	}
	for _, name := range sets.List(sets.KeySet(sums)) {
		want := resource.NewQuantity(0, resource.DecimalSI)
		if q, ok := c.NodeReserved[name]; ok {
			want.Add(q)
		}
		if isMemory(name) && !want.Equal(*sums[name]) {
			return nil, fmt.Errorf("the total amount %q of type %q is not equal to the value %q determined by Node Allocatable feature", sums[name].String(), name, want.String())
		}
	}
	return out, nil
}

// Start takes over what the checkpoint says. The error is upstream's, too.
func (m *Manager) Start() error {
	var err error
	if m.state, err = state.New(m.c.FS, m.c.Dir, m.c.Policy); err == nil && m.policy != nil {
		err = m.policy.validate(m.state)
	}
	if err != nil {
		return fmt.Errorf("start memory manager error: %w", err)
	}
	if m.policy == nil {
		m.c, m.state = nil, nil
	}
	return nil
}

// Static reports whether containers can have memory of their own.
// The kubelet asks before it has each container's nodes looked up.
func (m *Manager) Static() bool { return m.policy != nil }

// Allocate implements topologymanager.HintProvider.
// It may be repeated: a container that has memory keeps it. The error refuses
// the pod.
func (m *Manager) Allocate(_ context.Context, pod *v1.Pod, c *v1.Container) error {
	if m.policy == nil {
		return nil
	}
	m.prepare(pod)
	changed, err := m.policy.allocate(m.state, pod, c)
	if changed || err != nil {
		m.Pinnings++
	}
	if err != nil {
		m.PinningErrors++
	}
	if err != nil || !changed {
		return err
	}
	return m.state.Store()
}

// GetTopologyHints implements topologymanager.HintProvider.
// No hints mean that memory doesn't matter to where the container goes.
func (m *Manager) GetTopologyHints(pod *v1.Pod, c *v1.Container) []topologymanager.Hints {
	if m.policy == nil || !managed(pod) {
		return nil
	}
	m.prepare(pod)
	r, err := requested(c)
	if err != nil {
		m.log("Failed to get container requested resources podUID=%s containerName=%s: %v", pod.UID, c.Name, err)
		return nil
	}
	if blocks := m.state.Blocks(string(pod.UID), c.Name); blocks != nil {
		return again(blocks, sorted(r))
	}
	return m.policy.asHints(m.state.Machine, pod, sorted(r))
}

// GetPodTopologyHints implements topologymanager.HintProvider. Of a pod that has
// memory, it is the first container's that counts.
func (m *Manager) GetPodTopologyHints(pod *v1.Pod) []topologymanager.Hints {
	if m.policy == nil || !managed(pod) {
		return nil
	}
	m.prepare(pod)
	want, err := podRequested(pod)
	if err != nil {
		m.log("Failed to get pod requested resources podUID=%s: %v", pod.UID, err)
		return nil
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if blocks := m.state.Blocks(string(pod.UID), c.Name); blocks != nil {
			return again(blocks, want)
		}
	}
	return m.policy.asHints(m.state.Machine, pod, want)
}

// prepare takes back what belongs to no active pod, before a pod gets some.
// Only when all sources are known, or a pod whose source is late would lose its
// memory at a restart of the kubelet.
func (m *Manager) prepare(pod *v1.Pod) {
	m.admitting = pod
	if len(m.state.Entries) == 0 || !m.c.SourcesReady() {
		return
	}
	active := map[[2]string]bool{}
	for _, pod := range append(m.c.ActivePods(), m.admitting) {
		for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				active[[2]string{string(pod.UID), list[i].Name}] = true
			}
		}
	}
	removed := false
	for _, uid := range sets.List(sets.KeySet(m.state.Entries)) {
		for _, name := range sets.List(sets.KeySet(m.state.Entries[uid])) {
			if active[[2]string{uid, name}] {
				continue
			}
			m.log("RemoveStaleState removing state podUID=%s containerName=%s", uid, name)
			blocks := m.state.Blocks(uid, name)
			m.state.Delete(uid, name)
			for _, b := range blocks {
				release(m.state.Machine, b)
			}
			removed = true
		}
	}
	if removed {
		if err := m.state.Store(); err != nil {
			m.log("%v", err)
		}
	}
}

// Nodes is the list of NUMA nodes that a container's memory is to come from; ""
// leaves it alone.
func (m *Manager) Nodes(pod *v1.Pod, c *v1.Container) string {
	if m.policy == nil {
		return ""
	}
	var mask topologymanager.Mask
	for _, b := range m.state.Blocks(string(pod.UID), c.Name) {
		mask |= NewMask(b.NUMAAffinity)
	}
	ids := mask.Bits()
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = strconv.Itoa(id)
	}
	return strings.Join(out, ",")
}

// log makes a log line, if anybody takes them.
func (m *Manager) log(format string, args ...any) {
	if m.c.Log != nil {
		m.c.Log(format, args...)
	}
}
