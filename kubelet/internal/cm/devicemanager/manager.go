package devicemanager

import (
	"errors"
	"io/fs"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
)

// Dir is where device plugins have their sockets, and the manager its checkpoint, below
// the kubelet's root directory.
const Dir = "device-plugins"

// Config are what a Manager is made of.
type Config struct {
	Group *loop.Group
	// Plugins are the machine's.
	Plugins cm.DevicePlugins
	// NUMANodes are the machine's, by ID.
	NUMANodes []int
	// Affinity is the topology manager's hint for a container of the pod that is
	// being admitted.
	Affinity func(container string) topologymanager.Hint
	// FS and Dir say where the checkpoint is.
	FS  checkpointmanager.FS
	Dir string
	// ActivePods are those that have a right to what they were given.
	ActivePods func() []*v1.Pod
	// SourcesReady reports whether ActivePods can be all there are.
	SourcesReady func() bool
	// Running reports whether a container ran when this kubelet started.
	Running func(pod types.UID, container string) bool
	// Changed is told of pods whose devices' health changed, and that capacity did.
	Changed func(pods []types.UID)
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// Manager is one kubelet's device manager. It is for use on one loop. A nil one has no
// devices.
type Manager struct {
	c Config
	// resources are those that plugins have registered, or had before a restart.
	resources map[string]*resource
	// lost are those whose plugin went away and did not come again.
	lost sets.Set[string]
	pods podDevices
	// allocated are the devices in use, by resource: those of pods, and those that are
	// being given out.
	allocated map[string]sets.Set[string]
	// reuse are the devices of a pod's init containers, which have ended when the pod's
	// other containers start; of the pod that was given devices last.
	reuse struct {
		pod     types.UID
		devices map[string]sets.Set[string]
	}
}

// New returns a manager.
func New(c Config) *Manager {
	return &Manager{c: c, resources: map[string]*resource{}, lost: sets.Set[string]{}, pods: podDevices{}, allocated: map[string]sets.Set[string]{}}
}

// Start takes over what the checkpoint says, and has plugins register. A checkpoint that
// can't be read is as none.
func (m *Manager) Start() {
	if err := m.readCheckpoint(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log("Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date: %v", err)
	}
	m.c.Plugins.Serve(m.register)
}

// Active reports whether anything could be given out, or was: who asks for it each time
// needn't otherwise.
func (m *Manager) Active() bool {
	return m != nil && (len(m.resources) > 0 || len(m.allocated) > 0 || len(m.lost) > 0)
}

// Knows reports whether a resource is one of device plugins.
func (m *Manager) Knows(name string) bool {
	_, registered := m.resources[name]
	_, allocated := m.allocated[name]
	return registered || allocated
}

// InUse are the devices that pods have, by resource. A node's allocatable is never less
// for them, whatever their plugin says now (sanitizeNodeAllocatable).
func (m *Manager) InUse(pod types.UID) v1.ResourceList {
	if m.pods[pod] == nil {
		return nil
	}
	out := v1.ResourceList{}
	for name, devices := range m.allocated { //drydock:unordered fills a map
		out[v1.ResourceName(name)] = count(len(devices))
	}
	return out
}

// RemoveStale takes back what belongs to no active pod, before anybody gets some. Only
// when all sources are known, or a pod whose source is late would lose its devices at a
// restart of the kubelet.
func (m *Manager) RemoveStale() {
	if m == nil || len(m.pods) == 0 || !m.c.SourcesReady() {
		return
	}
	active := map[types.UID]bool{}
	for _, pod := range m.c.ActivePods() {
		active[pod.UID] = true
	}
	removed := false
	for uid := range m.pods { //drydock:unordered deletes each by itself
		if !active[uid] {
			delete(m.pods, uid)
			removed = true
		}
	}
	if removed {
		m.allocated = m.pods.devices()
	}
}

// log makes a log line, if anybody takes them.
func (m *Manager) log(format string, args ...any) {
	if m.c.Log != nil {
		m.c.Log(format, args...)
	}
}

// names are the resources of device plugins that a container asks for more than none of,
// in the order of their names. Requests are as the limits.
func (m *Manager) names(c *v1.Container) []string {
	var out []string
	for name := range c.Resources.Limits { //drydock:unordered sorted below
		if m.Knows(string(name)) {
			out = append(out, string(name))
		}
	}
	slices.Sort(out)
	return out
}
