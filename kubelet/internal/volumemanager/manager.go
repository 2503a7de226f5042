// Package volumemanager mounts what pods ask for before their containers start,
// brings it up to date while they run and takes it away when they have ended.
// It mirrors upstream's pkg/kubelet/volumemanager, and what volumes without devices
// need of pkg/volume/util/operationexecutor.
//
// # How it differs
//
// Upstream has two loops that look at everything every 100 ms: the populator,
// which decides what is wanted, and the reconciler, which acts; whoever waits
// for volumes looks every 300 ms. So they do here, but instants at which there is
// nothing to see are elided (elide.go): while nothing changes there is neither a
// timer nor a task. A pod without volumes is not known here.
//
// What is wanted (upstream's desired state of the world) and what is (its actual
// state) are two fields of one record. What pods share, volumes that are attached
// and mounted for the node, are records of their own (devices.go).
package volumemanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// Times of upstream's volume_manager.go and exponential_backoff.go.
const (
	loopPeriod     = 100 * time.Millisecond
	waitPeriod     = 300 * time.Millisecond
	waitTimeout    = 2*time.Minute + 3*time.Second
	pathsPeriod    = 100 * time.Millisecond
	backoffInitial = 500 * time.Millisecond
	backoffMax     = 2*time.Minute + 2*time.Second
)

// PodManager knows the pods of the sources.
type PodManager interface {
	GetPodByUID(uid types.UID) (*v1.Pod, bool)
}

// PodStates tells how far pods are on their way out.
type PodStates interface {
	ShouldPodContainersBeTerminating(uid types.UID) bool
	ShouldPodRuntimeBeRemoved(uid types.UID) bool
}

// EventRecorder records events.
type EventRecorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// Claims reads claims and their volumes. What it returns is shared.
type Claims interface {
	GetPersistentVolumeClaim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error)
	GetPersistentVolume(ctx context.Context, name string) (*v1.PersistentVolume, error)
	// UpdatePersistentVolumeClaimStatus writes a claim's status. Errors: Conflict.
	UpdatePersistentVolumeClaimStatus(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error)
	GetNode(ctx context.Context, name string) (*v1.Node, error)
}

// Options are what a Manager is made of.
type Options struct {
	Group    *loop.Group
	NodeName string
	Host     *volume.Host
	Plugins  []volume.Plugin
	Pods     PodManager
	States   PodStates
	Recorder EventRecorder
	// AttachesItself: no controller is to attach volumes (enableControllerAttachDetach: false).
	AttachesItself bool
	// Claims is nil without an API.
	Claims Claims
	// SourcesReady reports whether all sources of pods have told of theirs.
	// SourcesSeen has to be called when that may have changed.
	SourcesReady func() bool
	// InUseChanged, if not nil, is called when GetVolumesInUse has changed.
	InUseChanged func()
	Log          func(format string, args ...any)
}

// Manager is a node's volume manager.
type Manager struct {
	o    Options
	l    *loop.Loop
	pods map[types.UID]*podVolumes
	// order is the pods in the order in which they came.
	order []*podVolumes
	// devices are the volumes that pods share, in the order in which they came; inUse
	// those of them that have to be attached, sorted.
	devices []*device
	inUse   []v1.UniqueVolumeName
	// reportedInUse are those that the API knew to be in use at the last look; unmarked:
	// there are newer ones, of which it may know as well.
	reportedInUse []v1.UniqueVolumeName
	unmarked      bool

	// populated: the populator has run with all sources ready, so what is not
	// wanted by now is not wanted at all.
	populated bool
	// unsynced: what an earlier kubelet left is not known well enough to take it away: which
	// of the volumes have to be attached only the node's status tells.
	unsynced              bool
	populator, reconciler *loop.Periodic
	told                  Told         // nil: nobody tells
	never                 loop.Version // grows never
	// populating and reconciling are when there is something for the two loops to do.
	populating, reconciling work
	// idle waits until a waiter could see something new; nil: it looks at each of
	// its instants.
	idle func(ctx context.Context, w *waiter) error
}

// podVolumes is what is known of a pod with volumes.
type podVolumes struct {
	uid types.UID
	// pod is the pod as the populator last saw it; nil until then.
	pod *v1.Pod
	// processed: what is wanted was worked out since somebody last asked.
	processed bool
	errs      []string
	volumes   []*podVolume
	claims    map[string]*claimAnswer // by the volume's name
	waiters   []*waiter
}

type mountState uint8

const (
	notMounted mountState = iota
	mounted
	// uncertain: found on the disk by a new kubelet.
	uncertain
)

// podVolume is one volume of a pod.
type podVolume struct {
	name    string
	plugin  volume.Plugin
	spec    *v1.Volume // nil of one that was found on the disk
	path    string
	desired bool
	state   mountState
	// remount: it is to be set up again.
	remount bool
	running bool
	// inputs are what its content was made of.
	inputs  []any
	backoff backoff
	// driver is nil of a volume whose plugin is no DeviceMounter.
	driver *driverVolume
	// pv is what a claim is bound to whose plugin is no DeviceMounter.
	pv *v1.PersistentVolume
}

// backoff keeps an operation that failed from being tried again at once.
type backoff struct {
	kind operation
	last int64
	wait time.Duration
}

type operation uint8

const (
	mountOperation operation = iota
	unmountOperation
	verifyOperation
	expandOperation
	unmountDeviceOperation
	attachOperation
	detachOperation
)

// New returns a Manager that does nothing until Start.
func New(o Options) *Manager {
	m := &Manager{o: o, l: o.Group.Loop(), pods: map[types.UID]*podVolumes{}}
	if m.l.Elides() {
		m.told, _ = o.Claims.(Told)
	}
	m.populator = o.Group.Grid("volume populator", loopPeriod, m.populate)
	m.reconciler = o.Group.Grid("volume reconciler", loopPeriod, m.reconcile)
	return m
}

func (m *Manager) logf(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}

// Start reads what volumes are on the disk and starts the loops.
func (m *Manager) Start() {
	// Upstream's two loops begin in goroutines of their own, in either order.
	apart := m.l.Between(0, loopPeriod, "volume/reconciler", m.o.NodeName, 0)
	m.reconstruct()
	for _, p := range m.o.Plugins {
		if driven, ok := p.(volume.DeviceMounter); ok {
			m.reconstructStaged(driven)
		}
	}
	m.syncDevices()
	m.populator.BeginAfter(loopPeriod)
	m.reconciler.BeginAfter(cmp.Or(apart, loopPeriod))
	m.elide()
}

// next is the first instant of a loop after now.
func next(start, now int64, period time.Duration) int64 {
	if now < start {
		return start
	}
	return start + ((now-start)/int64(period)+1)*int64(period)
}

// SourcesSeen says that a source of pods has told of its pods.
func (m *Manager) SourcesSeen() {
	if !m.populated {
		m.populating.wake(0)
	}
}

// PodsChanged says that pods may have come, gone or ended.
func (m *Manager) PodsChanged() {
	if len(m.order) > 0 {
		m.populating.wake(0)
	}
}

// PodAdded says that the pod manager has a pod, or has it anew.
func (m *Manager) PodAdded(pod *v1.Pod) {
	if len(pod.Spec.Volumes) == 0 {
		return
	}
	p := m.pods[pod.UID]
	if p == nil && len(util.UsedVolumes(pod)) > 0 || p != nil && p.pod == nil {
		m.record(pod.UID)
		m.populating.wake(0)
	}
}

// ReplacePod takes over the next version of a pod's object, with the same
// volumes.
func (m *Manager) ReplacePod(old, pod *v1.Pod) {
	if p := m.pods[pod.UID]; p != nil && p.pod == old {
		p.pod = pod
	}
}

// record returns the record of a pod, a new one if need be.
func (m *Manager) record(uid types.UID) *podVolumes {
	p := m.pods[uid]
	if p == nil {
		p = &podVolumes{uid: uid}
		m.pods[uid] = p
		m.order = append(m.order, p)
	}
	return p
}

func (m *Manager) forget(p *podVolumes) {
	delete(m.pods, p.uid)
	m.order = slices.DeleteFunc(m.order, func(o *podVolumes) bool { return o == p })
	p.notify()
}

// volume returns the volume of that name, or nil.
func (p *podVolumes) volume(name string) *podVolume {
	for _, v := range p.volumes {
		if v.name == name {
			return v
		}
	}
	return nil
}

// GetMountedVolumesForPod returns the mounted volumes of a pod by name; nil for
// none.
func (m *Manager) GetMountedVolumesForPod(uid types.UID) kubecontainer.VolumeMap {
	p := m.pods[uid]
	if p == nil {
		return nil
	}
	out := make(kubecontainer.VolumeMap, len(p.volumes))
	for _, v := range p.volumes {
		if v.state != mounted {
			continue
		}
		info := kubecontainer.VolumeInfo{Path: v.path, ReadOnly: v.spec != nil && v.plugin.ReadOnly(v.spec) || v.driver != nil && v.driver.readOnly}
		if v.driver != nil && v.driver.device != nil {
			info.Block = v.driver.device.Block
		}
		if v.spec.Image != nil {
			info.Image = &runtimeapi.ImageSpec{Image: v.spec.Image.Reference, UserSpecifiedImage: v.spec.Image.Reference}
		}
		out[v.name] = info
	}
	return out
}

// HasPossiblyMountedVolumesForPod reports whether anything of a pod is mounted,
// or may be.
func (m *Manager) HasPossiblyMountedVolumesForPod(uid types.UID) bool {
	p := m.pods[uid]
	return p != nil && slices.ContainsFunc(p.volumes, func(v *podVolume) bool { return v.state != notMounted })
}

// Settled reports whether a sync of the pod would leave its volumes as they are:
// all are mounted and show what they would show if they were set up now.
func (m *Manager) Settled(pod *v1.Pod) bool {
	if len(pod.Spec.Volumes) == 0 {
		return true
	}
	p := m.pods[pod.UID]
	if p == nil {
		return len(util.UsedVolumes(pod)) == 0
	}
	if !p.processed || len(p.errs) > 0 || p.pod != pod {
		return false
	}
	for _, v := range p.volumes {
		// What the API says of a driver's volume is asked for at each sync.
		if v.running || v.remount || v.desired != (v.state == mounted) || v.driver != nil && !m.stillTrue(pod, v) {
			return false
		}
		r, ok := v.plugin.(volume.Remounter)
		if !ok {
			continue
		}
		inputs, ok := r.Inputs(pod, v.spec)
		if !ok || !slices.Equal(inputs, v.inputs) {
			return false
		}
	}
	return true
}

// Fixed reports whether the volumes of a pod that is Settled show the same as long
// as the pod does and Untold doesn't grow: none goes by another object, or only by such of which
// changes are told.
func (m *Manager) Fixed(pod *v1.Pod) bool {
	if len(pod.Spec.Volumes) == 0 {
		return true
	}
	p := m.pods[pod.UID]
	if p == nil {
		return false
	}
	return !slices.ContainsFunc(p.volumes, func(v *podVolume) bool {
		_, remounts := v.plugin.(volume.Remounter)
		return remounts || v.driver != nil && !m.stillTrue(pod, v)
	})
}

// Metrics is what a volume holds.
type Metrics struct {
	// Used is in bytes, Inodes a number.
	Used, Inodes int64
}

// GetMetrics returns what a mounted volume of a pod holds, as du counts it;
// false if it is not mounted or not of the pod alone.
func (m *Manager) GetMetrics(uid types.UID, name string) (Metrics, bool) {
	p := m.pods[uid]
	if p == nil {
		return Metrics{}, false
	}
	v := p.volume(name)
	if v == nil || v.state != mounted || !v.plugin.InPodDir() || v.driver == nil && v.waits() {
		return Metrics{}, false
	}
	bytes, inodes := m.o.Host.FS.Usage(v.path)
	return Metrics{Used: bytes, Inodes: inodes}, true
}

// WaitForAllPodsUnmount waits until nothing of the pods is mounted any more, for
// each as WaitForUnmount does, all at once. It needs no task for a pod that has
// nothing mounted.
func (m *Manager) WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error {
	var (
		errs []error
		wait loop.WaitGroup
	)
	left := time.Duration(-1)
	if end, ok := ctx.Deadline(); ok {
		left = end.Sub(m.l.Now())
	}
	for _, pod := range pods {
		if m.pods[pod.UID] == nil {
			continue
		}
		wait.Add(1)
		m.o.Group.Go("wait for unmount", func(own context.Context) {
			defer wait.Done()
			if left >= 0 {
				var cancel context.CancelFunc
				own, cancel = withTimeout(own, left)
				defer cancel()
			}
			if err := m.WaitForUnmount(own, pod); err != nil {
				errs = append(errs, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
			}
		})
	}
	if err := wait.Wait(ctx); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(errs...)
}

// names formats names as upstream formats sorted lists.
func names(list []string) string {
	slices.Sort(list)
	return "[" + strings.Join(list, " ") + "]"
}
