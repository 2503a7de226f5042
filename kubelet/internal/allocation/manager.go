// Package allocation decides which resources pods are given: it admits new
// pods, and resizes of running ones, against what the node has, and keeps the
// outcome across restarts of the kubelet. It mirrors upstream's
// pkg/kubelet/allocation.
//
// A pod that has what its spec asks for costs nothing here, see package state.
// The checkpoint files are written when a resize changes what they say, and
// when the kubelet's process ends, whichever way: upstream writes them at each
// admission, which nobody could tell from this but by reading them in between.
package allocation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// StatusManager keeps the conditions of resizes; see status.Manager.
type StatusManager interface {
	// PodResizeConditions returns copies; nil means that there is none.
	PodResizeConditions(uid types.UID) (pending, inProgress *v1.PodCondition)
	// SetPodResizePending reports whether reason or generation changed.
	SetPodResizePending(uid types.UID, reason, message string, generation int64) (changed bool)
	ClearPodResizePending(uid types.UID)
	SetPodResizeInProgress(uid types.UID, reason, message string, generation int64) (changed bool)
	ClearPodResizeInProgress(uid types.UID) (generation int64, cleared bool)
}

// FS is where checkpoints are kept.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
}

// Options are what a Manager is made of.
type Options struct {
	Loop *loop.Loop
	// Group is the kubelet's.
	Group *loop.Group
	// FS and Dir say where the checkpoint files are; a nil FS: nowhere.
	FS  FS
	Dir string
	// Handlers judge pods and resizes, after what judges resizes alone.
	Handlers lifecycle.PodAdmitHandlers
	Status   StatusManager
	// ActivePods returns the pods that use the node, as their sources have
	// them, in a slice of the caller's.
	ActivePods func() []*v1.Pod
	// PodByUID returns a pod as its source has it.
	PodByUID func(uid types.UID) (*v1.Pod, bool)
	// Admitted returns the pods that checkpoints have entries of.
	Admitted func() []*v1.Pod
	// SourcesReady reports whether all sources have told of their pods.
	SourcesReady func() bool
	// Sync has a pod synced.
	Sync func(pod *v1.Pod)
	// Event records an event about a pod.
	Event func(pod *v1.Pod, eventtype, reason, message string)
	// Limits are settings that make resizes infeasible.
	Limits ResizeLimits
	// Durable has the checkpoints written soon after every change, as upstream
	// does, not only at resizes and at the process's end.
	Durable bool
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// The delays of RetryPendingResizes' own clock.
const (
	initialRetryDelay = 30 * time.Second
	retryDelay        = 3 * time.Minute
)

// checkpointDelay gathers changes of a moment into one write.
const checkpointDelay = 10 * time.Millisecond

// Manager is one kubelet's allocation manager. It is for use on one loop.
type Manager struct {
	o     Options
	state *state.State
	// restored are the entries of the checkpoints whose pods were not added
	// yet.
	allocated, actuated map[types.UID]state.Resources
	// pending are the pods whose resize was not decided, or deferred, in the
	// order in which they are tried.
	pending []types.UID
	// The clock of retries: a tick every delay after the last retry.
	ticker  *loop.Timer
	since   int64
	delay   time.Duration
	started bool
	// write is the coming write of the checkpoints, files what they say.
	write *loop.Timer
	files map[string]string
}

// New returns a Manager that knows what the checkpoint files say. An error
// means that one of them can't be read; the kubelet must not start then.
func New(o Options) (*Manager, error) {
	m := &Manager{o: o, state: state.New(), delay: initialRetryDelay}
	if o.FS == nil {
		return m, nil
	}
	for _, f := range [...]struct {
		name string
		into *map[types.UID]state.Resources
	}{{state.AllocatedFile, &m.allocated}, {state.ActuatedFile, &m.actuated}} {
		file := path.Join(o.Dir, f.name)
		data, err := o.FS.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			*f.into, err = state.Decode(data)
		}
		if err != nil {
			return nil, fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the allocation checkpoint file %q before restarting Kubelet", err, file)
		}
	}
	return m, nil
}

// Run starts the clock that retries pending resizes, and has the checkpoints
// written when the kubelet's process ends.
func (m *Manager) Run() {
	m.started = true
	m.since = m.o.Loop.UnixNano()
	if m.o.FS != nil {
		m.o.Group.OnKill(m.checkpointAtEnd)
	}
	m.ticker = m.o.Group.NewTimer("pod-resize-retry", func() {
		m.o.Group.Go("pod-resize-retry", func(ctx context.Context) { m.RetryPendingResizes(ctx, "periodic_retry") })
	})
	m.arm()
}

// State has what containers were given that differs from their spec.
func (m *Manager) State() *state.State { return m.state }

// UpdatePodFromAllocation returns the pod with its allocated resources: the pod
// itself if those are its spec's.
func (m *Manager) UpdatePodFromAllocation(pod *v1.Pod) (allocated *v1.Pod, updated bool) {
	e := m.state.Get(pod.UID)
	if e == nil {
		return pod, false
	}
	return e.Substitute(pod)
}

// AllocatedPods puts pods with their allocated resources in the place of those
// in the slice.
func (m *Manager) AllocatedPods(pods []*v1.Pod) []*v1.Pod {
	if m.state.Len() > 0 {
		for i := range pods {
			pods[i], _ = m.UpdatePodFromAllocation(pods[i])
		}
	}
	return pods
}

// AddPod admits a pod that is new to this kubelet, beside the active pods,
// which must be allocated ones. What an earlier kubelet has allocated to it counts,
// not its spec (upstream AddPod). It may wait.
func (m *Manager) AddPod(ctx context.Context, active func() []*v1.Pod, pod *v1.Pod) lifecycle.PodAdmitResult {
	return m.AddPodTo(ctx, active, nil, pod)
}

// AddPodTo is AddPod for a node of which usage is what the active pods take at
// most; nil: nobody knows.
func (m *Manager) AddPodTo(ctx context.Context, active func() []*v1.Pod, usage *lifecycle.Usage, pod *v1.Pod) lifecycle.PodAdmitResult {
	m.restore(pod)
	allocated, updated := m.UpdatePodFromAllocation(pod)
	r := m.o.Handlers.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: allocated, OtherPods: active, Usage: usage})
	if !r.Admit {
		m.state.Put(pod.UID, nil)
		return r
	}
	if updated {
		m.PushPendingResize(pod.UID)
	}
	m.changed()
	return r
}

// changed has the checkpoints written, if they are to be durable, once the
// present step is done.
func (m *Manager) changed() {
	if !m.o.Durable || m.o.FS == nil {
		return
	}
	if m.write == nil {
		m.write = m.o.Group.NewTimer("allocation-checkpoint", m.checkpoint)
	}
	m.write.Reset(checkpointDelay)
}

// restore takes over what the checkpoints say of a pod.
func (m *Manager) restore(pod *v1.Pod) {
	was, ok := m.allocated[pod.UID]
	if !ok {
		return
	}
	told, ok := m.actuated[pod.UID]
	if !ok {
		told = was
	}
	delete(m.allocated, pod.UID)
	delete(m.actuated, pod.UID)
	if e := (&state.Entry{Allocated: was, Actuated: told}); !e.MatchesSpec(pod) {
		m.state.Put(pod.UID, e)
	}
}

// SpecUpdated says that a pod's spec was replaced. It reports whether that asks
// for other resources than the spec before (nil: unknown) did. It must be
// called before anything else sees the new pod.
func (m *Manager) SpecUpdated(old, pod *v1.Pod) (resized bool) {
	if old == pod || old != nil && sharesSpec(old, pod) {
		return false
	}
	if old != nil {
		was := state.Of(old)
		if resized = !state.SameAs(&was, pod); resized && m.state.Get(pod.UID) == nil {
			m.state.Put(pod.UID, &state.Entry{Allocated: was, Actuated: was})
		}
		return resized
	}
	return true
}

// sharesSpec reports whether two pods' containers are the same memory, as those
// of two versions of a pod are of which only the status changed.
func sharesSpec(a, b *v1.Pod) bool {
	same := func(a, b []v1.Container) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
	return same(a.Spec.Containers, b.Spec.Containers) && same(a.Spec.InitContainers, b.Spec.InitContainers) && a.Spec.Resources == b.Spec.Resources
}

// RemovePod forgets a pod that is gone.
func (m *Manager) RemovePod(uid types.UID) {
	m.state.Put(uid, nil)
	delete(m.allocated, uid)
	delete(m.actuated, uid)
	m.changed()
}

// RemoveOrphanedPods forgets what earlier kubelets kept of pods that are not
// known.
func (m *Manager) RemoveOrphanedPods(known func(types.UID) bool) {
	for _, all := range [...]map[types.UID]state.Resources{m.allocated, m.actuated} {
		for uid := range all { //drydock:unordered removes from a set
			if !known(uid) {
				delete(all, uid)
			}
		}
	}
}

// Actuated says that a container was started with resources, or given them
// while it ran.
func (m *Manager) Actuated(pod *v1.Pod, container string, r v1.ResourceRequirements) {
	e := m.state.Get(pod.UID)
	if e == nil {
		return // as its spec says
	}
	e.Actuate(container, r)
	m.settle(pod.UID, e)
	m.checkpoint()
}

// ActuatedPod is Actuated for the pod-level resources.
func (m *Manager) ActuatedPod(pod *v1.Pod, r *v1.ResourceRequirements) {
	e := m.state.Get(pod.UID)
	if e == nil {
		return
	}
	e.Actuated.Pod = r
	m.settle(pod.UID, e)
	m.checkpoint()
}

// settle drops the entry of a pod that has all that its spec asks for.
func (m *Manager) settle(uid types.UID, e *state.Entry) {
	if pod, ok := m.o.PodByUID(uid); ok && e.MatchesSpec(pod) && !slices.Contains(m.pending, uid) {
		m.state.Put(uid, nil)
	}
}

// checkpointAtEnd writes the checkpoints unless the whole run ends.
func (m *Manager) checkpointAtEnd() {
	if !m.o.Loop.Closed() {
		m.checkpoint()
	}
}

// checkpoint writes both files.
func (m *Manager) checkpoint() {
	if m.o.FS == nil {
		return
	}
	allocated, actuated := map[types.UID]state.Resources{}, map[types.UID]state.Resources{}
	for _, pod := range m.o.Admitted() {
		if e := m.state.Get(pod.UID); e != nil {
			allocated[pod.UID], actuated[pod.UID] = e.Allocated, e.Actuated
			continue
		}
		r := state.Of(pod)
		allocated[pod.UID], actuated[pod.UID] = r, r
	}
	maps.Copy(allocated, m.allocated)
	maps.Copy(actuated, m.actuated)
	m.writeFile(state.AllocatedFile, allocated)
	m.writeFile(state.ActuatedFile, actuated)
}

// writeFile keeps a checkpoint in upstream's form. An error is only logged: the
// pods run on, and the next change writes it again.
func (m *Manager) writeFile(name string, all map[types.UID]state.Resources) {
	data, err := state.Encode(all)
	if err == nil && m.o.Durable && m.files[name] == string(data) {
		return
	}
	if err == nil {
		err = filesystem.Replace(m.o.FS, path.Join(m.o.Dir, name), data, 0o600)
	}
	if err == nil && m.o.Durable {
		if m.files == nil {
			m.files = map[string]string{}
		}
		m.files[name] = string(data)
	}
	if err != nil {
		m.log("Failed to write pod allocation checkpoint %s: %v", name, err)
	}
}

// log makes a log line, if anybody takes them.
func (m *Manager) log(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}
