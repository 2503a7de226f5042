// Package pod holds the kubelet's picture of the pods that it was told to run
// (static ones, those of the API, and mirror pods, which are the API's images
// of static pods) and creates and deletes mirror pods. It mirrors
// upstream's pkg/kubelet/pod.
package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// name is a pod's full name; as a key it needs no string of its own.
type name = types.NamespacedName

func fullName(pod *v1.Pod) name { return name{Namespace: pod.Namespace, Name: pod.Name} }

// Manager indexes pods by UID, static and mirror pods also by full name, and
// knows which mirror pod belongs to which static pod. The pods are shared and never written to.
type Manager struct {
	byUID        map[types.UID]*v1.Pod
	staticByName map[name]*v1.Pod
	mirrorByUID  map[types.UID]*v1.Pod
	mirrorByName map[name]*v1.Pod
	// translation maps the UID of a mirror pod to that of its static pod.
	translation map[types.UID]types.UID
	mirrorOf    map[types.UID]types.UID // the other way round
	// sorted is what GetPods returns; nil until somebody asks. lent: somebody has
	// it, so that the next change needs another.
	sorted   []*v1.Pod
	lent     bool
	version  loop.Version
	onChange []func(old, pod *v1.Pod)
}

// NewManager returns a Manager without pods.
func NewManager() *Manager {
	return &Manager{
		byUID: map[types.UID]*v1.Pod{}, staticByName: map[name]*v1.Pod{},
	}
}

// Version grows with every change.
func (m *Manager) Version() *loop.Version { return &m.version }

// OnChange has fn told of each pod, but for mirror pods, that is another than
// before; nil: there was none, or is none any more.
func (m *Manager) OnChange(fn func(old, pod *v1.Pod)) { m.onChange = append(m.onChange, fn) }

func (m *Manager) change(old, pod *v1.Pod) {
	m.resort(old, pod)
	for _, fn := range m.onChange {
		fn(old, pod)
	}
}

// AddPod stores a pod, in place of an earlier one of the same UID.
func (m *Manager) AddPod(pod *v1.Pod) { m.UpdatePod(pod) }

// UpdatePod stores a pod, in place of an earlier one of the same UID.
func (m *Manager) UpdatePod(pod *v1.Pod) {
	m.version.Grow()
	n := fullName(pod)
	if kubetypes.IsMirrorPod(pod) {
		if m.mirrorByUID == nil { // most nodes have no static pods
			m.mirrorByUID, m.mirrorByName = map[types.UID]*v1.Pod{}, map[name]*v1.Pod{}
			m.translation, m.mirrorOf = map[types.UID]types.UID{}, map[types.UID]types.UID{}
		}
		m.mirrorByUID[pod.UID] = pod
		m.mirrorByName[n] = pod
		if p, ok := m.staticByName[n]; ok {
			m.translate(pod.UID, p.UID)
		}
		return
	}
	m.change(m.byUID[pod.UID], pod)
	m.byUID[pod.UID] = pod
	if _, taken := m.staticByName[n]; !taken && !kubetypes.IsStaticPod(pod) {
		return
	}
	m.staticByName[n] = pod
	if mirror, ok := m.mirrorByName[n]; ok {
		m.translate(mirror.UID, pod.UID)
	}
}

func (m *Manager) translate(mirror, static types.UID) {
	if was, ok := m.translation[mirror]; ok && m.mirrorOf[was] == mirror {
		delete(m.mirrorOf, was)
	}
	m.translation[mirror] = static
	m.mirrorOf[static] = mirror
}

// RemovePod forgets a pod, or a mirror pod. Its full name is forgotten even if
// that belongs to a pod with another UID by now, as upstream does.
func (m *Manager) RemovePod(pod *v1.Pod) {
	m.version.Grow()
	n := fullName(pod)
	if kubetypes.IsMirrorPod(pod) {
		delete(m.mirrorByUID, pod.UID)
		delete(m.mirrorByName, n)
		if static := m.translation[pod.UID]; m.mirrorOf[static] == pod.UID {
			delete(m.mirrorOf, static)
		}
		delete(m.translation, pod.UID)
		return
	}
	m.change(m.byUID[pod.UID], nil)
	delete(m.byUID, pod.UID)
	delete(m.staticByName, n)
}

// resort puts a pod in the place of an old one of its UID; either may be nil.
func (m *Manager) resort(old, pod *v1.Pod) {
	if m.sorted == nil || old == pod {
		return
	}
	if m.lent {
		m.sorted, m.lent = slices.Clone(m.sorted), false
	}
	if old != nil {
		i := slices.Index(m.sorted, old) // looks into no pod
		if pod != nil && fullName(old) == fullName(pod) {
			m.sorted[i] = pod
			return
		}
		m.sorted = slices.Delete(m.sorted, i, i+1)
	}
	if pod != nil {
		i, _ := slices.BinarySearchFunc(m.sorted, pod, config.ComparePods)
		m.sorted = slices.Insert(m.sorted, i, pod)
	}
}

// Len returns the number of pods that are no mirrors.
func (m *Manager) Len() int { return len(m.byUID) }

// GetPods returns the pods that are no mirrors, by namespace, name, UID. The
// slice is shared and must not be changed.
func (m *Manager) GetPods() []*v1.Pod {
	m.sort()
	m.lent = true
	return m.sorted
}

// Each calls fn for the pods of GetPods, none of which may be changed meanwhile.
func (m *Manager) Each(fn func(*v1.Pod)) {
	m.sort()
	for _, p := range m.sorted {
		fn(p)
	}
}

func (m *Manager) sort() {
	if m.sorted != nil {
		return
	}
	m.sorted = make([]*v1.Pod, 0, len(m.byUID))
	for _, p := range m.byUID { //drydock:unordered sorted below
		m.sorted = append(m.sorted, p)
	}
	config.SortPods(m.sorted)
}

// GetPodsAndMirrorPods returns both kinds, each by namespace, name, UID, and
// the mirror pods that have no static pod.
func (m *Manager) GetPodsAndMirrorPods() (pods, mirrors, orphaned []*v1.Pod) {
	for _, p := range m.mirrorByUID { //drydock:unordered sorted below
		mirrors = append(mirrors, p)
	}
	config.SortPods(mirrors)
	for _, p := range mirrors {
		if _, ok := m.staticByName[fullName(p)]; !ok {
			orphaned = append(orphaned, p)
		}
	}
	return m.GetPods(), mirrors, orphaned
}

// GetStaticPodToMirrorPodMap returns the static pods, by namespace, name, UID,
// each with its mirror pod or nil.
func (m *Manager) GetStaticPodToMirrorPodMap() []StaticPod {
	var out []StaticPod
	m.Each(func(p *v1.Pod) {
		if kubetypes.IsStaticPod(p) {
			out = append(out, StaticPod{Pod: p, Mirror: m.mirrorByName[fullName(p)]})
		}
	})
	return out
}

// StaticPod is a static pod with its mirror pod.
type StaticPod struct{ Pod, Mirror *v1.Pod }

// GetPodByUID returns the pod (no mirror) of that UID.
func (m *Manager) GetPodByUID(uid types.UID) (*v1.Pod, bool) {
	p, ok := m.byUID[uid]
	return p, ok
}

// GetPodByMirrorPod returns the static pod of a mirror pod.
func (m *Manager) GetPodByMirrorPod(mirror *v1.Pod) (*v1.Pod, bool) {
	p, ok := m.staticByName[fullName(mirror)]
	return p, ok
}

// GetMirrorPodByPod returns the mirror pod of a static pod.
func (m *Manager) GetMirrorPodByPod(pod *v1.Pod) (*v1.Pod, bool) {
	p, ok := m.mirrorByName[fullName(pod)]
	return p, ok
}

// GetPodAndMirrorPod returns a static pod with its mirror, given either;
// wasMirror says which was given. For any other pod the mirror is nil.
func (m *Manager) GetPodAndMirrorPod(p *v1.Pod) (pod, mirror *v1.Pod, wasMirror bool) {
	if kubetypes.IsMirrorPod(p) {
		return m.staticByName[fullName(p)], p, true
	}
	return p, m.mirrorByName[fullName(p)], false
}

// TranslatePodUID returns the UID of the static pod if uid is a mirror pod's,
// else uid.
func (m *Manager) TranslatePodUID(uid types.UID) types.UID {
	if t, ok := m.translation[uid]; ok {
		return t
	}
	return uid
}

// MirrorUID returns the UID of a static pod's mirror, if there is one. It also
// answers for a static pod that was removed while its mirror is still there.
func (m *Manager) MirrorUID(static types.UID) (types.UID, bool) {
	mirror, ok := m.mirrorOf[static]
	return mirror, ok
}

// GetMirrorPodByUID returns the mirror pod of that UID.
func (m *Manager) GetMirrorPodByUID(uid types.UID) (*v1.Pod, bool) {
	p, ok := m.mirrorByUID[uid]
	return p, ok
}
