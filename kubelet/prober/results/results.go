// Package results keeps the newest result of each container's probes of one
// type and tells of changes (upstream pkg/kubelet/prober/results).
package results

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Result is the result of a probe of a container.
type Result uint8

// The results.
const (
	Unknown Result = iota
	Success
	Failure
)

func (r Result) String() string { return [...]string{"Unknown", "Success", "Failure"}[r] }

// Update is a result that changed, or is the container's first.
type Update struct {
	// ContainerID is the CRI's.
	ContainerID string
	Result      Result
	PodUID      types.UID
}

// Manager keeps the results of one type of probe, by CRI container ID. Only
// containers with such a probe are in it.
type Manager struct {
	cache   map[string]Result
	onSet   func(uid types.UID)
	updates *loop.Queue[Update]
}

// NewManager returns an empty Manager. Upstream's updates wait for room among
// 20; here nobody waits.
func NewManager() *Manager { return &Manager{updates: loop.NewQueue[Update](0)} }

// OnSet has fn called with the UID of each pod that gets a new result.
func (m *Manager) OnSet(fn func(uid types.UID)) { m.onSet = fn }

// Updates is where changes are taken from.
func (m *Manager) Updates() *loop.Queue[Update] { return m.updates }

// Get returns a container's result, if there is one.
func (m *Manager) Get(containerID string) (Result, bool) {
	r, ok := m.cache[containerID]
	return r, ok
}

// Set stores a container's result and tells of it if it is new or another.
func (m *Manager) Set(containerID string, r Result, uid types.UID) {
	if old, ok := m.cache[containerID]; ok && old == r {
		return
	}
	if m.cache == nil {
		m.cache = map[string]Result{}
	}
	m.cache[containerID] = r
	if m.onSet != nil {
		m.onSet(uid)
	}
	m.updates.TryPut(Update{ContainerID: containerID, Result: r, PodUID: uid})
}

// Remove forgets a container.
func (m *Manager) Remove(containerID string) { delete(m.cache, containerID) }
