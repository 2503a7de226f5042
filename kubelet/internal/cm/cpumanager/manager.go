// Package cpumanager gives containers CPUs of their own, and has all others run
// on the rest. It mirrors upstream's pkg/kubelet/cm/cpumanager.
//
// Containers of Guaranteed pods that request a whole number of CPUs have so many
// for themselves, for as long as their pod is active; what belongs to no active
// pod any more is found when somebody asks for CPUs, and by Reconcile. That tells
// the runtime of containers whose set is another than it was last told, and
// costs nothing while no pod, no container's state and no assignment changes.
//
// A Manager of policy none only keeps its checkpoint.
package cpumanager

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager/state"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
)

// The policies.
const (
	PolicyNone   = "none"
	PolicyStatic = "static"
)

// Config are what a Manager is made of.
type Config struct {
	Topology *cm.Topology
	// Policy is PolicyNone or PolicyStatic.
	Policy  string
	Options Options
	// ReservedMilliCPU is what kubeReserved and systemReserved hold back;
	// ReservedCPUs is reservedSystemCPUs, empty if that is not set.
	ReservedMilliCPU int64
	ReservedCPUs     cpuset.CPUSet
	// TopologyPolicy is the topology manager's; Affinity its hint for a container
	// of the pod that is being admitted, nil: it has none.
	TopologyPolicy string
	Affinity       func(container string) topologymanager.Hint
	// FS and Dir say where the checkpoint is; a nil FS: nowhere.
	FS  checkpointmanager.FS
	Dir string
	// ActivePods are those that have a right to what they were given.
	ActivePods func() []*v1.Pod
	// SourcesReady reports whether ActivePods can be all there are.
	SourcesReady func() bool
	// PodStatus is a pod's status as the kubelet knows it.
	PodStatus func(uid types.UID) (*v1.PodStatus, bool)
	// Update has the runtime run a container on these CPUs, a list such as
	// "0,2-3". It may wait.
	Update func(ctx context.Context, containerID, cpus string) error
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// container names a container of a pod.
type container struct {
	pod  types.UID
	name string
}

// Manager is one kubelet's CPU manager. It is for use on one loop.
type Manager struct {
	// c and state are nil once a manager with policy none has started: it never
	// asks for them again, and most kubelets have one.
	c      *Config
	policy *static // nil: policy none
	state  *state.State
	// told is what the runtime was last told of containers.
	told map[container]cpuset.CPUSet
	// admitting is the pod that was last asked about: it may not be among the
	// active ones yet.
	admitting *v1.Pod
	version   loop.Version
	// Pinnings are containers that asked for CPUs of their own, PinningErrors those that
	// did not get them.
	Pinnings, PinningErrors uint64
}

// New returns a manager that knows what the checkpoint says. The error is
// upstream's; the kubelet can't start then.
func New(c Config) (*Manager, error) {
	m := &Manager{c: &c}
	if c.Policy == PolicyStatic {
		m.told = map[container]cpuset.CPUSet{}
		if c.ReservedMilliCPU == 0 {
			// Upstream has another text for a reservation that is there and 0,
			// which can't be.
			return nil, fmt.Errorf("[cpumanager] unable to determine reserved CPU resources for static policy")
		}
		machine := newMachine(c.Topology)
		if err := c.Options.check(machine, c.TopologyPolicy); err != nil {
			return nil, fmt.Errorf("new static policy error: %w", err)
		}
		p, err := newStatic(machine, c.Options, int((c.ReservedMilliCPU+999)/1000), c.ReservedCPUs)
		if err != nil {
			return nil, fmt.Errorf("new static policy error: %w", err)
		}
		p.affinity = c.Affinity
		m.policy = p
	}
	return m, nil
}

// Start takes over what the checkpoint says. The error is upstream's, too.
func (m *Manager) Start() error {
	var err error
	m.version.Grow()
	if m.state, err = state.New(m.c.FS, m.c.Dir, m.c.Policy); err == nil && m.policy != nil {
		err = m.policy.validate(m.state)
	}
	if err != nil {
		return fmt.Errorf("start cpu manager error: %w", err)
	}
	if m.policy == nil {
		m.c, m.state = nil, nil
	}
	return nil
}

// Pools are how many CPUs containers share, and how many are given out.
func (m *Manager) Pools() (shared, exclusive int) {
	if m.policy == nil {
		return 0, 0
	}
	for _, uid := range m.state.Pods() {
		for _, name := range m.state.Containers(uid) {
			set, _ := m.state.Get(uid, name)
			exclusive += set.Size()
		}
	}
	return m.policy.available(m.state).Size(), exclusive
}

// Static reports whether containers can have CPUs of their own.
func (m *Manager) Static() bool { return m.policy != nil }

// Version grows with every change of an assignment.
func (m *Manager) Version() *loop.Version { return &m.version }

// Allocate implements topologymanager.HintProvider.
func (m *Manager) Allocate(_ context.Context, pod *v1.Pod, c *v1.Container) error {
	if m.policy == nil {
		return nil
	}
	m.admitting = pod
	m.removeStale()
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
	m.version.Grow()
	return m.state.Store()
}

// GetTopologyHints implements topologymanager.HintProvider.
func (m *Manager) GetTopologyHints(pod *v1.Pod, c *v1.Container) []topologymanager.Hints {
	if m.policy == nil {
		return nil
	}
	m.admitting = pod
	m.removeStale()
	return m.policy.containerHints(m.state, pod, c)
}

// GetPodTopologyHints implements topologymanager.HintProvider.
func (m *Manager) GetPodTopologyHints(pod *v1.Pod) []topologymanager.Hints {
	if m.policy == nil {
		return nil
	}
	m.admitting = pod
	m.removeStale()
	return m.policy.podHints(m.state, pod)
}

// removeStale takes back what belongs to no active pod.
func (m *Manager) removeStale() {
	if m.state.Len() == 0 && len(m.told) == 0 || !m.c.SourcesReady() {
		return
	}
	active := map[container]bool{}
	for _, pod := range append(m.c.ActivePods(), m.admitting) {
		if pod == nil {
			continue
		}
		for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				active[container{pod.UID, list[i].Name}] = true
			}
		}
	}
	removed := false
	for _, uid := range m.state.Pods() {
		for _, name := range m.state.Containers(uid) {
			if !active[container{uid, name}] {
				m.log("RemoveStaleState: removing container podUID=%s containerName=%s", uid, name)
				m.policy.remove(m.state, uid, name)
				removed = true
			}
		}
	}
	for c := range m.told { //drydock:unordered removes from a map
		if !active[c] {
			delete(m.told, c)
		}
	}
	if removed {
		m.version.Grow()
		if err := m.state.Store(); err != nil {
			m.log("%v", err)
		}
	}
}

// CPUs is the list of CPUs that a container is to run on; "" leaves it alone.
func (m *Manager) CPUs(pod *v1.Pod, c *v1.Container) string {
	if m.policy == nil {
		return ""
	}
	return m.state.GetOrDefault(pod.UID, c.Name).String()
}

// Exclusive reports whether a container has CPUs of its own.
func (m *Manager) Exclusive(uid types.UID, name string) bool {
	if m.policy == nil {
		return false
	}
	_, ok := m.state.Get(uid, name)
	return ok
}

// PodExclusive reports whether a container of a pod has CPUs of its own.
func (m *Manager) PodExclusive(uid types.UID) bool {
	return m.policy != nil && len(m.state.Containers(uid)) > 0
}

// Started says that a container was created with what CPUs said: one with CPUs
// of its own need not be told of them again.
func (m *Manager) Started(pod *v1.Pod, c *v1.Container) {
	if m.policy == nil {
		return
	}
	if set, ok := m.state.Get(pod.UID, c.Name); ok {
		m.told[container{pod.UID, c.Name}] = set
	}
}

// Reconcile takes back what belongs to no active pod and tells the runtime of
// each running container whose CPUs are not those that it was last told. It
// returns false if there is something left to do that no change will announce.
func (m *Manager) Reconcile(ctx context.Context) (done bool) {
	if m.policy == nil {
		return true
	}
	done = m.c.SourcesReady()
	m.admitting = nil
	m.removeStale()
	for _, pod := range m.c.ActivePods() {
		status, ok := m.c.PodStatus(pod.UID)
		if !ok {
			continue
		}
		for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
			if c.State.Running == nil || c.ContainerID == "" {
				continue
			}
			key, set := container{pod.UID, c.Name}, m.state.GetOrDefault(pod.UID, c.Name)
			if told, ok := m.told[key]; ok && told.Equals(set) || set.IsEmpty() {
				continue
			}
			_, id, _ := strings.Cut(c.ContainerID, "://")
			if err := m.c.Update(ctx, id, set.String()); err != nil {
				m.log("ReconcileState: failed to update container pod=%s/%s containerName=%s containerID=%s cpuSet=%q: %v", pod.Namespace, pod.Name, c.Name, id, set.String(), err)
				done = false
				continue
			}
			m.told[key] = set
		}
	}
	return done
}

// log makes a log line, if anybody takes them.
func (m *Manager) log(format string, args ...any) {
	if m.c.Log != nil {
		m.c.Log(format, args...)
	}
}

// Describe says what the manager's version stands for: the assignments.
func (m *Manager) Describe(g *loop.Group) {
	if m.policy == nil {
		return
	}
	g.Describe(&m.version, "CPUs", func() uint64 {
		h := fnv.New64a()
		if m.state == nil { // before Start
			return h.Sum64()
		}
		for _, uid := range m.state.Pods() {
			for _, name := range m.state.Containers(uid) {
				set, _ := m.state.Get(uid, name)
				fmt.Fprintln(h, uid, name, set)
			}
		}
		return h.Sum64()
	})
}
