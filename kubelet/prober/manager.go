package prober

import (
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// startGrace is by how much a container must be older than the kubelet for its
// probes' results to be kept over a restart of the kubelet.
const startGrace = 10 * time.Second

// StatusProvider has the pods' newest statuses: the status manager.
type StatusProvider interface {
	GetPodStatus(uid types.UID) (*v1.PodStatus, bool)
}

// EventRecorder records events.
type EventRecorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// Options are what a Manager is made of.
type Options struct {
	Loop *loop.Loop
	// Group is the kubelet's: probes in progress die with it.
	Group    *loop.Group
	Statuses StatusProvider
	Runner   Runner
	// Network is nil if there is none: ports can't be probed then.
	Network  Network
	Recorder EventRecorder
}

// Manager has the probes of a kubelet's pods.
type Manager struct {
	o     Options
	start time.Time
	// The results by type; the sync loop takes their updates.
	Liveness, Readiness, Startup *results.Manager
	pods                         map[types.UID][]*elided
	probes, triggers             uint64
	// header is that of the requests which add none, shared by them.
	header  http.Header
	elision elision
}

// New returns a Manager without workers. The kubelet counts as started now.
func New(o Options) *Manager {
	m := &Manager{o: o, start: o.Loop.Now(), Liveness: results.NewManager(), Readiness: results.NewManager(), Startup: results.NewManager()}
	m.elide()
	return m
}

// hasProbes reports whether a container is probed at all.
func hasProbes(c *v1.Container) bool {
	return c.StartupProbe != nil || c.ReadinessProbe != nil || c.LivenessProbe != nil
}

// AddPod starts the workers of a pod's regular and sidecar containers. It does
// nothing from the first worker on that is there already.
func (m *Manager) AddPod(pod *v1.Pod) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; hasProbes(c) && !m.addContainer(pod, c) {
			return
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; hasProbes(c) && kubecontainer.IsRestartableInit(c) && !m.addContainer(pod, c) {
			return
		}
	}
}

func (m *Manager) addContainer(pod *v1.Pod, c *v1.Container) bool {
	for _, t := range [...]probeType{startup, readiness, liveness} {
		if t.spec(c) == nil {
			continue
		}
		if w := m.find(pod.UID, c.Name, t); w != nil {
			if !w.ended {
				return false
			}
			if !w.revived() {
				continue
			}
			m.forget(&w.worker)
		}
		if m.pods == nil {
			m.pods = map[types.UID][]*elided{}
		}
		w := m.newWorker(pod, c, t)
		m.pods[pod.UID] = append(m.pods[pod.UID], w)
		w.begin()
	}
	return true
}

// find returns a worker, also one that has ended.
func (m *Manager) find(uid types.UID, name string, t probeType) *elided {
	for _, w := range m.pods[uid] {
		if w.probeType == t && w.container.Name == name {
			return w
		}
	}
	return nil
}

func (m *Manager) has(uid types.UID, name string, t probeType) bool {
	w := m.find(uid, name, t)
	return w != nil && !w.ended
}

// forget removes a worker. The list is copied: somebody may be walking it.
func (m *Manager) forget(w *worker) {
	old := m.pods[w.pod.UID]
	list := make([]*elided, 0, len(old))
	for _, o := range old {
		if &o.worker != w {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		delete(m.pods, w.pod.UID)
		return
	}
	m.pods[w.pod.UID] = list
}

// StopLivenessAndStartup stops those probes of a pod's regular containers, since
// it terminates; readiness goes on. So do all probes of sidecars in v1.36.3,
// whose failures then do nothing but make events (kubernetes/kubernetes PR
// #141766 stops them, too).
func (m *Manager) StopLivenessAndStartup(pod *v1.Pod) {
	for _, w := range m.pods[pod.UID] {
		if w.probeType != readiness && !kubecontainer.IsRestartableInit(w.container) {
			w.stop()
		}
	}
}

// Cancel says that the sync in which a pod's workers were made was given up,
// as it is when the pod begins to terminate: commands that run for its probes
// are cancelled, and so is each later one.
func (m *Manager) Cancel(uid types.UID) {
	for _, w := range m.pods[uid] {
		w.cancelCommands()
	}
}

// ReplacePod takes over the next version of a pod's object, which wants the same.
func (m *Manager) ReplacePod(old, pod *v1.Pod) {
	for _, w := range m.pods[pod.UID] {
		if w.pod == old {
			w.pod = pod
		}
	}
}

// RemovePod stops all workers of a pod.
func (m *Manager) RemovePod(pod *v1.Pod) { m.removeUID(pod.UID) }

func (m *Manager) removeUID(uid types.UID) {
	for _, w := range m.pods[uid] {
		w.remove()
	}
}

// CleanupPods stops the workers of pods that are not to run.
func (m *Manager) CleanupPods(desired func(uid types.UID) bool) {
	for uid := range m.pods { //drydock:unordered removes from a set
		if !desired(uid) {
			m.removeUID(uid)
		}
	}
}

// TriggerReadiness has a container's readiness probe run at once, or once more
// after the run in progress.
func (m *Manager) TriggerReadiness(uid types.UID, name string) {
	m.triggers++
	if w := m.find(uid, name, readiness); w != nil {
		w.trigger()
	}
}

// Triggers counts the calls of TriggerReadiness.
func (m *Manager) Triggers() uint64 { return m.triggers }

// Workers returns how many workers there are.
func (m *Manager) Workers() int {
	n := 0
	for _, list := range m.pods { //drydock:unordered counts
		for _, w := range list {
			if !w.ended {
				n++
			}
		}
	}
	return n
}

func (m *Manager) resultsOf(t probeType) *results.Manager {
	switch t {
	case liveness:
		return m.Liveness
	case readiness:
		return m.Readiness
	}
	return m.Startup
}
