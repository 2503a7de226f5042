// Package eviction ends pods when the node runs out of something, and pods that
// use more of its disk than they may. It mirrors upstream's
// pkg/kubelet/eviction at v1.36.
//
// Each pass compares what is left of memory, disk, inodes and processes with the
// configured thresholds, sets the node's conditions, frees what nobody needs and
// then evicts at most one pod; pods over a limit of their own on local storage
// go at once, however many they are. Decisions are functions over values:
// thresholds, observations, ranks, messages.
//
// # How it differs
//
// Upstream looks every 10 s, at everything. Here passes are on that grid of time,
// too, but a machine that can tell beforehand when it may be low on something
// (stats.Watcher) is left alone until then: if nothing is met and no condition is
// reported, only pods with a limit on local storage are looked at, and without
// any there is no timer.
package eviction

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// Reason is the reason of events and statuses of evicted pods.
const Reason = "Evicted"

// The times of the loop.
const (
	monitoringInterval = 10 * time.Second
	podCleanupTimeout  = 30 * time.Second
	podCleanupPeriod   = time.Second
	// startCost is what upstream starts before this manager (cAdvisor, the
	// container manager), while relists have begun: passes and relists, whose
	// periods fit, never fall together.
	startCost = 70 * time.Millisecond
	// hardGracePeriod is that of pods which are evicted at once, in seconds.
	hardGracePeriod = int64(1)
)

// Stats are the statistics that the manager decides by.
type Stats interface {
	// Summary has those of the node and of all pods; force has the node's made
	// anew.
	Summary(ctx context.Context, force bool) (*statsapi.Summary, error)
	// Pods has those of some pods.
	Pods(ctx context.Context, pods []*v1.Pod) ([]statsapi.PodStats, error)
	// Filesystems says how images and containers lie on the machine's.
	Filesystems(ctx context.Context) (stats.Filesystems, error)
}

// Options are what a Manager is made of.
type Options struct {
	Loop  *loop.Loop
	Group *loop.Group
	// Config is the kubelet's; see Thresholds for what is wrong with it.
	Config Config
	// Thresholds are those of Config; nil: New reads them.
	Thresholds *ThresholdSet
	// Stats has statistics of pods and, with Node, of the node; without Node
	// nothing of the node is ever low.
	Stats Stats
	Node  bool
	// Volumes look at pods' volumes: at those of pods with a limit always, at
	// others only while the node is low on disk, or with AllVolumes always, too.
	Volumes    *stats.Volumes
	AllVolumes bool
	// Came is when the kubelet was told of a pod, in ns.
	Came func(uid types.UID) int64
	// Watcher, if there is one, tells when something may be low.
	Watcher stats.Watcher
	// Foreteller, if there is one, tells whether passes would fail: those do so
	// aloud, whatever the Watcher says.
	Foreteller Foreteller
	// Memcg tells when a cgroup's usage passes a limit; nil: nobody does.
	Memcg stats.MemcgNotifier
	// PodsCgroup is the path of the cgroup that holds all pods.
	PodsCgroup string
	// ActivePods returns the pods that use the node with what they were
	// allocated, by namespace and name, in a slice of the caller's.
	ActivePods func() []*v1.Pod
	// DeleteUnusedContainers and DeleteUnusedImages free what no pod needs; nil:
	// nothing can be freed.
	DeleteUnusedContainers, DeleteUnusedImages func(ctx context.Context) error
	// Kill ends a pod and waits for its end, or for the time that it is given.
	Kill func(ctx context.Context, pod *v1.Pod, grace int64, status func(*v1.PodStatus)) error
	// Finished reports whether nothing of a pod is left.
	Finished func(uid types.UID) bool
	// Event records an event about a pod, with annotations if not nil.
	Event func(pod *v1.Pod, annotations map[string]string, eventtype, reason, message string)
	// NodeEvent records an event about the node.
	NodeEvent func(eventtype, reason, message string)
	// Changed is told when the node's conditions have changed; may be nil.
	Changed func()
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// Manager evicts pods. It is for use on one loop.
type Manager struct {
	o       Options
	started bool
	// limited are the pods that have a limit on local storage; nil before the first.
	limited map[types.UID]struct{}

	// thresholds are all; from the second pass on with those of the file system
	// of the writable layers.
	thresholds  []Threshold
	layout      Layout
	layoutKnown bool
	// since is since when thresholds have been met, met those of them that were
	// met for their grace period, both at the last pass.
	since    []firstObserved
	met      []Threshold
	seen     observations
	pressure pressure
	memcg    memcg
	// lent are the pods whose volumes are looked at while the disk is low.
	lent    []types.UID
	evicted map[Signal]uint64 // nil before the first

	// timer is set to the next pass while there is something to look at; passes
	// are every monitoringInterval from base, in ns, which is the end of the last
	// that took time.
	timer *loop.Timer
	base  int64
	busy  bool
	// quiet: the machine tells when it may be low, so it need not be asked.
	quiet bool
}

// New returns a Manager that does nothing until Start. Errors are of the
// configured thresholds.
func New(o Options) (*Manager, error) {
	if o.Thresholds == nil {
		var err error
		if o.Thresholds, err = NewThresholdSet(&o.Config); err != nil {
			return nil, err
		}
	}
	return &Manager{o: o, thresholds: o.Thresholds.configured}, nil
}

// Start begins the passes, the first one once what upstream starts before has
// been started.
func (m *Manager) Start() {
	m.started = true
	m.base = m.o.Loop.UnixNano() + int64(startCost)
	m.timer = m.o.Group.NewTimer("eviction", m.wake)
	m.quiet = !m.o.Node
	if m.nothing() {
		return
	}
	if m.o.Node && m.o.Watcher != nil && m.o.Foreteller != nil {
		m.o.Foreteller.OnChange(m.runtimeChanged)
	}
	m.timer.Reset(startCost)
}

// nothing reports whether passes have nothing to do whatever happens.
func (m *Manager) nothing() bool {
	return len(m.thresholds) == 0 && !m.o.Config.LocalStorage
}

// Evictions returns how many pods were evicted, by the signal.
func (m *Manager) Evictions() map[Signal]uint64 {
	if len(m.evicted) == 0 {
		return nil
	}
	out := make(map[Signal]uint64, len(m.evicted))
	maps.Copy(out, m.evicted)
	return out
}

// count counts an evicted pod.
func (m *Manager) count(s Signal) {
	if m.evicted == nil {
		m.evicted = map[Signal]uint64{}
	}
	m.evicted[s]++
}

// AddPod has a pod looked at if it has a limit; it is called for each pod that
// the kubelet is told of, and may be repeated.
func (m *Manager) AddPod(pod *v1.Pod) {
	limit := m.o.Config.LocalStorage && hasLimit(pod)
	if limit || m.o.AllVolumes {
		m.o.Volumes.Add(pod, m.o.Loop.UnixNano())
	}
	if limit {
		if m.limited == nil {
			m.limited = map[types.UID]struct{}{}
		}
		m.limited[pod.UID] = struct{}{}
		m.arm()
	}
}

// RemovePod forgets a pod that is gone.
func (m *Manager) RemovePod(uid types.UID) {
	delete(m.limited, uid)
	m.o.Volumes.Remove(uid)
	if m.idle() && m.timer != nil {
		m.timer.Stop()
	}
}

// idle reports whether a pass would find nothing to look at.
func (m *Manager) idle() bool { return m.nothing() || m.quiet && len(m.limited) == 0 }

// arm sets the next pass, if there is anything to look at.
func (m *Manager) arm() {
	if !m.started || m.busy || m.idle() || m.timer.Set() {
		return
	}
	since := m.o.Loop.UnixNano() - m.base
	if since < 0 {
		m.timer.Reset(time.Duration(-since))
		return
	}
	n := since/int64(monitoringInterval) + 1
	m.timer.Reset(time.Duration(n*int64(monitoringInterval) - since))
}

// wake is the timer's.
func (m *Manager) wake() {
	m.busy = true
	m.o.Group.Go("eviction", m.pass)
}

// pass is one turn of the loop; after an eviction the next follows at once.
func (m *Manager) pass(ctx context.Context) {
	defer func() {
		m.busy = false
		m.arm()
	}()
	for {
		began := m.o.Loop.UnixNano()
		evicted := m.synchronize(ctx)
		if len(evicted) == 0 {
			if now := m.o.Loop.UnixNano(); now > began {
				m.base = now // the interval is between passes
			}
			break
		}
		m.waitForCleanup(ctx, evicted)
		m.base = m.o.Loop.UnixNano()
	}
	m.rest()
}

// rest leaves the machine alone if it can tell when it may be low, and nothing
// is going on.
func (m *Manager) rest() {
	if m.quiet || !m.layoutKnown || len(m.since) > 0 || len(m.met) > 0 || len(m.pressure.reported) > 0 {
		return
	}
	m.forgetVolumes()
	if m.o.Watcher == nil || !m.untroubled() {
		return
	}
	m.quiet = m.o.Watcher.Watch(m.floor(), func() {
		m.quiet = false
		m.arm()
	})
}

// Foreteller is a runtime client that knows, without a call, what a pass would be
// told.
type Foreteller interface {
	// Untroubled reports whether calls of these CRI methods would be answered by
	// what they ask for.
	Untroubled(methods ...string) bool
	// OnChange has fn called when that may have changed.
	OnChange(fn func())
}

// untroubled reports whether the calls of a pass would be answered.
func (m *Manager) untroubled() bool {
	return m.o.Foreteller == nil || m.o.Foreteller.Untroubled("ListContainers", "ListPodSandboxStats", "ListContainerStats", "ImageFsInfo")
}

// runtimeChanged ends the rest if passes fail from now on.
func (m *Manager) runtimeChanged() {
	if m.quiet && !m.untroubled() {
		m.quiet = false
		m.arm()
	}
}

// floor are the amounts below which a threshold is met.
func (m *Manager) floor() stats.Floor {
	var f stats.Floor
	for i := range m.thresholds {
		t := &m.thresholds[i]
		o, ok := m.seen.of(t.Signal)
		if !ok || t.Inert {
			continue
		}
		q := t.Value.Of(o.capacity)
		if at := m.floorOf(&f, t.Signal); at != nil {
			*at = max(*at, q.Value())
		}
	}
	return f
}

// floorOf is the amount in f that a signal is about. Unless the layout is
// split, containers are where images are.
func (m *Manager) floorOf(f *stats.Floor, s Signal) *int64 {
	switch s {
	case MemoryAvailable:
		return &f.Memory
	case AllocatableMemoryAvailable:
		return &f.PodsMemory
	case NodeFsAvailable:
		return &f.RootBytes
	case NodeFsInodesFree:
		return &f.RootInodes
	case ImageFsAvailable:
		return &f.ImageBytes
	case ImageFsInodesFree:
		return &f.ImageInodes
	case ContainerFsAvailable:
		if m.layout.Split {
			return &f.ContainerBytes
		}
		return &f.ImageBytes
	case ContainerFsInodesFree:
		if m.layout.Split {
			return &f.ContainerInodes
		}
		return &f.ImageInodes
	case PIDAvailable:
		return &f.PIDs
	}
	return nil
}

// waitForCleanup waits until nothing of the pods is left, but not for long.
func (m *Manager) waitForCleanup(ctx context.Context, pods []types.UID) {
	for range int(podCleanupTimeout / podCleanupPeriod) {
		if m.o.Loop.Sleep(ctx, podCleanupPeriod) != nil {
			return
		}
		if !slices.ContainsFunc(pods, func(uid types.UID) bool { return !m.o.Finished(uid) }) {
			return
		}
	}
}

func (m *Manager) log(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}
