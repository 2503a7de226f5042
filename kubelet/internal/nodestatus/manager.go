// Package nodestatus registers the node and keeps its status in the API:
// addresses, capacity, versions, images and conditions. It mirrors
// upstream's pkg/kubelet/kubelet_node_status.go and pkg/kubelet/nodestatus.
//
// [Elided] leaves out periodic updates whose inputs are what they were when one
// last found nothing to send.
package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Constants of upstream's kubelet.
const (
	updateRetries  = 5
	updateJitter   = 0.04
	fastPeriod     = 100 * time.Millisecond
	fastWindow     = 120 * time.Second
	firstBackoff   = 100 * time.Millisecond
	maxBackoff     = 7 * time.Second
	defaultTimeout = 10 * time.Second
)

// Client is what the manager needs of the API (the heartbeat client).
type Client interface {
	CreateNode(ctx context.Context, node *v1.Node) (*v1.Node, error)
	GetNode(ctx context.Context, name string) (*v1.Node, error)
	PatchNode(ctx context.Context, name string, base, node *v1.Node) (*v1.Node, error)
}

// Recorder records events.
type Recorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// Machine holds the facts of the machine. It is shared and never written to;
// when a fact changes there is a new one.
type Machine struct {
	MachineID, SystemUUID, BootID string
	KernelVersion, OSImage        string
	// OperatingSystem and Architecture are Go's names; "" means linux, amd64.
	OperatingSystem, Architecture string
	// SwapCapacity is in bytes; nil: no swap.
	SwapCapacity *int64
}

// Resources are what the node has and what pods may use of it, without
// extended resources of others. They are shared and never written to; when one
// changes there is a new struct.
type Resources struct{ Capacity, Allocatable v1.ResourceList }

// Image is an image on the node.
type Image struct {
	ID                    string
	RepoDigests, RepoTags []string
	Size                  int64 // bytes
}

// Sources are where the status comes from. Functions must not wait unless they
// take a context. A nil function means that there is none of it.
type Sources struct {
	// Addresses returns the node's addresses and annotations, as Addresses.Of does. What
	// it returns must follow from its arguments alone if updates are elided.
	Addresses func(ctx context.Context, node string, have []v1.NodeAddress, annotations map[string]string) ([]v1.NodeAddress, map[string]string, error)
	Machine   func() *Machine
	Resources func() *Resources
	// RuntimeVersion makes the CRI Version call; it returns the version
	// without the runtime's name.
	RuntimeVersion func(ctx context.Context) (string, error)
	// Images returns the cached list of images, which is shared; a new slice
	// means that it may have changed.
	Images func() []Image
	// RuntimeHandlers are sorted by name. Shared.
	RuntimeHandlers func() []v1.NodeRuntimeHandler
	// Features is nil while the runtime's are unknown. Shared.
	Features func() *v1.NodeFeatures
	// MemoryPressure, DiskPressure and PIDPressure are the eviction manager's.
	MemoryPressure, DiskPressure, PIDPressure func() bool
	// RuntimeErrors, NetworkErrors, StorageErrors and ShutdownErrors make the
	// node not ready, in this order.
	RuntimeErrors, NetworkErrors, StorageErrors, ShutdownErrors func() error
	// SoftRequirements is the container manager's complaint, or nil.
	SoftRequirements func() error
	// VolumesInUse returns the volumes that are in use, as another slice once they change, and
	// false while they are not known; ReportedInUse is told which of them the API knows.
	VolumesInUse  func() ([]v1.UniqueVolumeName, bool)
	ReportedInUse func([]v1.UniqueVolumeName)
	// UpdatePodCIDR hands a new CIDR to the runtime and reports whether it was
	// new.
	UpdatePodCIDR func(ctx context.Context, cidr string) (bool, error)
	// UpdateRuntimeUp checks the runtime now (CRI Status).
	UpdateRuntimeUp func(ctx context.Context)
	// Node returns the node as the informer has it, or nil.
	Node func() *v1.Node
}

// Options configure a Manager.
type Options struct {
	Loop *loop.Loop
	// Client is nil in standalone mode: nothing is sent.
	Client   Client
	Recorder Recorder
	NodeName string
	// Ref is the object of the node's events; nil means NodeRef(NodeName).
	Ref *v1.ObjectReference
	// Hostname is the value of the hostname label; "" means NodeName.
	Hostname string
	// Register is registerNode; RegisterTaints, Labels (--node-labels) and
	// ProviderID are those of a new node.
	Register       bool
	RegisterTaints []v1.Taint
	Labels         map[string]string
	ProviderID     string
	// Annotations are what the function of that name returns. Shared.
	Annotations map[string]string
	// UpdateFrequency and ReportFrequency are nodeStatusUpdateFrequency (10s)
	// and nodeStatusReportFrequency (5m).
	UpdateFrequency, ReportFrequency time.Duration
	// MaxImages is nodeStatusMaxImages: 50 unless set; -1: no cap.
	MaxImages int32
	// Port is that of the kubelet's server.
	Port int32
	// RuntimeName is the scheme of the runtime's version; KubeletVersion is
	// reported as it stands.
	RuntimeName, KubeletVersion string
	DeclaredFeatures            []string
	// Timeout is that of one request; 0 means 10s.
	Timeout time.Duration
	// RepeatedFailure closes idle connections after repeated failures; may be
	// nil.
	RepeatedFailure func()
	Sources         Sources
	// Log is told what goes wrong; nil: nobody is.
	Log func(format string, args ...any)
}

// Manager keeps one node's status in the API.
type Manager struct {
	opts Options
	g    *loop.Group
	// lock is held by one sync or fast update at a time.
	lock       *loop.Semaphore
	passes     *loop.Periodic
	registered bool
	updater

	lastReport time.Time
	delay      time.Duration
	delays     uint64

	rebooted      bool // the event was sent
	unschedulable bool
	images        imageCache
	version       string // the last answer, "" for none

	fastStart time.Time
}

// updater makes one try to bring the status up to date; sent reports whether there
// was something to send.
type updater interface {
	tryUpdate(ctx context.Context, try int) (sent bool, err error)
}

// New returns a manager that does nothing until Start.
func New(opts Options) *Manager {
	if opts.Hostname == "" {
		opts.Hostname = opts.NodeName
	}
	if opts.UpdateFrequency == 0 {
		opts.UpdateFrequency = 10 * time.Second
	}
	if opts.ReportFrequency == 0 {
		opts.ReportFrequency = 5 * time.Minute
	}
	if opts.MaxImages == 0 {
		opts.MaxImages = 50
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.Ref == nil {
		opts.Ref = NodeRef(opts.NodeName)
	}
	m := &Manager{opts: opts, lock: loop.NewSemaphore(1)}
	m.updater = statusUpdater{m}
	return m
}

// NodeRef is the object of node events: a node without a UID.
func NodeRef(nodeName string) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: nodeName}
}

// Start has the node registered and its status sent by tasks of g: after one
// check of the runtime, then each update period and up to 4% more; and at
// first each 100 ms until the node is ready.
func (m *Manager) Start(g *loop.Group) {
	if m.opts.Client == nil {
		return
	}
	m.g = g
	m.passes = g.Sliding("node-status", m.opts.UpdateFrequency, func() { m.pass(m.Sync) })
	m.passes.Tasks()
	m.passes.Jitter(updateJitter, "node-status", m.opts.NodeName)
	m.pass(func(ctx context.Context) {
		m.updateRuntimeUp(ctx)
		m.Sync(ctx)
	})
	m.fastStart = m.opts.Loop.Now()
	g.Go("fast-node-status", m.fast)
}

// pass starts one periodic update.
func (m *Manager) pass(update func(ctx context.Context)) {
	m.g.Start("node-status", func(ctx context.Context) {
		update(ctx)
		m.passes.Again()
	})
}

// Sync registers the node if that is still to do, which waits until it
// succeeds, and brings its status to the API.
func (m *Manager) Sync(ctx context.Context) {
	if m.opts.Client == nil || m.lock.Acquire(ctx) != nil {
		return
	}
	defer m.lock.Release()
	m.sync(ctx)
}

func (m *Manager) sync(ctx context.Context) {
	if m.opts.Register && !m.registered {
		m.register(ctx)
	}
	if err := m.update(ctx); err != nil {
		m.log("unable to update node status: %v", err)
	}
}

// update mirrors upstream's updateNodeStatus: all tries come at once, and only
// failures after the first close idle connections.
func (m *Manager) update(ctx context.Context) error {
	for i := range updateRetries {
		_, err := m.tryUpdate(ctx, i)
		if err == nil {
			return nil
		}
		if i > 0 && m.opts.RepeatedFailure != nil {
			m.opts.RepeatedFailure()
		}
		m.log("error updating node status, will retry: %v", err)
	}
	return errors.New("update node status exceeds retry count")
}

// statusUpdater is the updater that computes the status each time.
type statusUpdater struct{ m *Manager }

// tryUpdate computes the status and sends it if it changed or is due. The
// first try begins with the informer's node, later ones ask the API.
func (u statusUpdater) tryUpdate(ctx context.Context, try int) (sent bool, err error) {
	m := u.m
	node := m.informed()
	if try > 0 {
		node, err = request(ctx, m, func(ctx context.Context) (*v1.Node, error) {
			return m.opts.Client.GetNode(ctx, m.opts.NodeName)
		})
		if err != nil {
			return false, fmt.Errorf("error getting node %q: %w", m.opts.NodeName, err)
		}
	}
	if node == nil {
		return false, fmt.Errorf("error getting node %q: node %q not found", m.opts.NodeName, m.opts.NodeName)
	}
	var next v1.Node // on the stack: most of the time it is not sent
	changed := m.compute(ctx, node, &next)
	if !changed && !m.expired() {
		m.reportedInUse(node)
		return false, nil
	}
	m.delay = 0
	if changed || m.lastReport.IsZero() {
		// The next report is moved by up to half its period either way
		// (upstream's calculateDelay), so that nodes that changed together don't
		// report together for good.
		r := m.opts.Loop.Float64("node-report", m.opts.NodeName, m.delays)
		m.delays++
		m.delay = time.Duration(float64(m.opts.ReportFrequency) * (r - 0.5))
	}
	return true, m.patch(ctx, node, next)
}

// patch counts a report only if it reached the API; otherwise the next update
// finds it due again.
func (m *Manager) patch(ctx context.Context, base *v1.Node, node v1.Node) error {
	patched, err := request(ctx, m, func(ctx context.Context) (*v1.Node, error) {
		return m.opts.Client.PatchNode(ctx, m.opts.NodeName, base, &node)
	})
	if err != nil {
		return err
	}
	m.lastReport = m.opts.Loop.Now()
	m.reportedInUse(patched)
	return nil
}

// reportedInUse tells which volumes the API knows to be in use (markVolumesFromNode).
func (m *Manager) reportedInUse(node *v1.Node) {
	if m.opts.Sources.ReportedInUse != nil {
		m.opts.Sources.ReportedInUse(node.Status.VolumesInUse)
	}
}

// expired reports whether the status is due although it did not change.
func (m *Manager) expired() bool {
	return m.lastReport.IsZero() || m.opts.Loop.Since(m.lastReport) >= m.opts.ReportFrequency+m.delay
}

// fast looks each 100 ms whether the node has become ready, for two minutes at
// most (upstream fastNodeStatusUpdate).
func (m *Manager) fast(ctx context.Context) {
	for !m.fastOnce(ctx) {
		if m.opts.Loop.Sleep(ctx, fastPeriod) != nil {
			return
		}
	}
}

// fastOnce reports whether the fast updates are over.
func (m *Manager) fastOnce(ctx context.Context) bool {
	if m.lock.Acquire(ctx) != nil {
		return true
	}
	defer m.lock.Release()
	if m.opts.Loop.Since(m.fastStart) >= fastWindow {
		// The periodic updates go on, so this is no error.
		m.log("node not ready in time")
		return true
	}
	node := m.informed()
	if node == nil {
		return false
	}
	ready := findCondition(node.Status.Conditions, v1.NodeReady)
	if ready == nil {
		return false
	}
	if ready.Status == v1.ConditionTrue {
		return true
	}
	// The runtime may have come up since its last periodic check.
	m.updateRuntimeUp(ctx)
	var next v1.Node
	if !m.compute(ctx, node, &next) {
		return false
	}
	if ready := findCondition(next.Status.Conditions, v1.NodeReady); ready == nil || ready.Status != v1.ConditionTrue {
		return false
	}
	if err := m.patch(ctx, node, next); err != nil {
		m.log("error updating node status, will retry with the full update: %v", err)
		m.sync(ctx)
	}
	return true
}

func (m *Manager) informed() *v1.Node {
	if m.opts.Sources.Node == nil {
		return nil
	}
	return m.opts.Sources.Node()
}

func (m *Manager) updateRuntimeUp(ctx context.Context) {
	if m.opts.Sources.UpdateRuntimeUp != nil {
		m.opts.Sources.UpdateRuntimeUp(ctx)
	}
}

// request makes a request within the heartbeat client's timeout.
func request[T any](ctx context.Context, m *Manager, fn func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := loop.WithTimeout(ctx, m.opts.Timeout)
	defer cancel()
	return fn(ctx)
}

func (m *Manager) event(eventtype, reason, message string) {
	if m.opts.Recorder != nil {
		m.opts.Recorder.Event(m.opts.Ref, eventtype, reason, message)
	}
}

func (m *Manager) log(format string, args ...any) {
	if m.opts.Log != nil {
		m.opts.Log(format, args...)
	}
}
