// Package eviction ends pods that use more of the node than they may. It
// answers to upstream's pkg/kubelet/eviction and, for the usage of volumes, to
// pkg/kubelet/server/stats.
//
// So far it judges what each pod may use of the node's disk: sizeLimit of
// emptyDirs and ephemeral-storage limits of pods and containers. Thresholds of
// the node have their place in synchronize, after that; their conditions come
// in through Options.NodeConditions, which admission heeds already.
//
// Upstream looks at all pods every 10 s. Here only those are looked at that
// have a limit, on the same grid of time; without any there is no timer.
package eviction

import (
	"context"
	"io/fs"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubetypes "github.com/drydock-sim/drydock/kubelet/types"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
	"github.com/drydock-sim/drydock/sim/loop"
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
	startCost           = 70 * time.Millisecond
	localGracePeriod    = int64(1)
	volumeStatsFallback = time.Minute
)

// FS is what the manager needs of the node's files.
type FS interface {
	ReadDir(name string) ([]fs.DirEntry, error)
}

// usager is a file system that knows how much is below a path.
type usager interface {
	// Usage returns bytes and inodes.
	Usage(name string) (bytes, inodes int64)
}

// Stats are the CRI's.
type Stats interface {
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
}

// Options are what a Manager is made of.
type Options struct {
	Loop  *loop.Loop
	Group *loop.Group
	// FS without a method Usage(name) (bytes, inodes int64) shows no usage.
	FS FS
	// Stats has what containers wrote; nil: nothing.
	Stats Stats
	// PodDir and LogDir are a pod's directories.
	PodDir func(uid types.UID) string
	LogDir func(pod *v1.Pod) string
	// VolumeStatsPeriod is volumeStatsAggPeriod; below 0 volumes are not
	// looked at, 0 means a minute.
	VolumeStatsPeriod time.Duration
	// ActivePods returns the pods that use the node with what they were
	// allocated, by namespace and name, in a slice of the caller's.
	ActivePods func() []*v1.Pod
	// Kill ends a pod and waits for its end, or for the time that it is given.
	Kill func(ctx context.Context, pod *v1.Pod, grace int64, status func(*v1.PodStatus)) error
	// Finished tells whether nothing of a pod is left.
	Finished func(uid types.UID) bool
	// Event records an event about a pod.
	Event func(pod *v1.Pod, eventtype, reason, message string)
	// NodeConditions are the pressures that the node reports; nil: none.
	NodeConditions func() []v1.NodeConditionType
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// Manager evicts pods. It is for use on one loop.
type Manager struct {
	o Options
	// watched are the pods that have a limit, by UID.
	watched map[types.UID]*watched
	started bool
	// timer is set to the next pass while there is a pod to look at; passes are
	// every monitoringInterval from base, in ns.
	timer *loop.Timer
	base  int64
	busy  bool
	// refreshes of the pods whose volumes are looked at begin with born.
	born int64
}

// New returns a Manager that does nothing until Start.
func New(o Options) *Manager {
	if o.VolumeStatsPeriod == 0 {
		o.VolumeStatsPeriod = volumeStatsFallback
	}
	return &Manager{o: o, watched: map[types.UID]*watched{}, born: o.Loop.UnixNano()}
}

// Start begins the passes, the first one now.
func (m *Manager) Start() {
	m.started = true
	m.base = m.o.Loop.UnixNano() + int64(startCost)
	m.timer = m.o.Group.NewTimer("eviction", func() { m.o.Group.Go("eviction", m.pass) })
	m.arm()
}

// AddPod has a pod looked at if it has a limit; it is called for each pod that
// the kubelet is told of, and may be repeated.
func (m *Manager) AddPod(pod *v1.Pod) {
	if !limited(pod) || m.watched[pod.UID] != nil {
		return
	}
	w := &watched{uid: pod.UID}
	m.watched[pod.UID] = w
	if hasEmptyDir(pod) && m.o.VolumeStatsPeriod > 0 {
		w.timer = m.o.Group.NewTimer("volume-stats", func() {
			if _, slow := m.o.FS.(filesystem.UsageWaiter); slow {
				m.o.Group.Go("volume-stats", func(ctx context.Context) { m.measure(ctx, w) })
				return
			}
			m.measure(m.o.Group.Background(), w)
		})
		// It is noticed by the next refresh of the pods.
		now, period := m.o.Loop.UnixNano(), int64(m.o.VolumeStatsPeriod)
		w.timer.Reset(time.Duration(period - (now-m.born)%period))
	}
	m.arm()
}

// RemovePod forgets a pod that is gone.
func (m *Manager) RemovePod(uid types.UID) {
	w := m.watched[uid]
	if w == nil {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	delete(m.watched, uid)
	if len(m.watched) == 0 && m.timer != nil {
		m.timer.Stop()
	}
}

// arm sets the next pass, if there is anything to look at.
func (m *Manager) arm() {
	if !m.started || m.busy || len(m.watched) == 0 || m.timer.Set() {
		return
	}
	since := m.o.Loop.UnixNano() - m.base
	n := since/int64(monitoringInterval) + 1
	m.timer.Reset(time.Duration(n*int64(monitoringInterval) - since))
}

// pass is one turn of the loop; after an eviction the next follows at once.
func (m *Manager) pass(ctx context.Context) {
	m.busy = true
	defer func() {
		m.busy = false
		m.arm()
	}()
	for {
		evicted := m.synchronize(ctx)
		if len(evicted) == 0 {
			return
		}
		m.waitForCleanup(ctx, evicted)
		m.base = m.o.Loop.UnixNano()
	}
}

// synchronize evicts the pods that are over their limits and returns them.
func (m *Manager) synchronize(ctx context.Context) []types.UID {
	return m.localStorageEviction(ctx)
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

// evict ends a pod unless it is critical; it tells whether it did.
func (m *Manager) evict(ctx context.Context, pod *v1.Pod, grace int64, message string) bool {
	if kubetypes.IsCriticalPod(pod) {
		m.log("Eviction manager: cannot evict a critical pod pod=%s/%s", pod.Namespace, pod.Name)
		return false
	}
	m.o.Event(pod, v1.EventTypeWarning, Reason, message)
	err := m.o.Kill(ctx, pod, grace, func(s *v1.PodStatus) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, Reason, message
	})
	if err != nil {
		m.log("Eviction manager: pod failed to evict pod=%s/%s: %v", pod.Namespace, pod.Name, err)
	}
	return true
}

func (m *Manager) log(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}
