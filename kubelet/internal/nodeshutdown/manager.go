package nodeshutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// What pods that end, or are not admitted, are told.
const (
	reasonTerminated   = "Terminated"
	messageTerminated  = "Pod was terminated in response to imminent node shutdown."
	reasonNotAdmitted  = "NodeShutdown"
	messageNotAdmitted = "Pod was rejected as the node is shutting down."
)

const (
	// reconnectPause is the time from the end of a watch to the next start.
	reconnectPause = time.Second
	// The looks at logind's delay after its configuration was read again: so
	// many, with pauses that double.
	reloadTries      = 5
	reloadFirstPause = 100 * time.Millisecond
)

// errShuttingDown has upstream's text, which the node's condition shows.
var errShuttingDown = errors.New("node is shutting down")

// Options configure a Manager.
type Options struct {
	Loop *loop.Loop
	// Group is the kubelet's.
	Group *loop.Group
	// Logind is the machine's.
	Logind Logind
	// GracePeriods are those of the function of that name.
	GracePeriods []kubeletconfig.ShutdownGracePeriodByPodPriority
	// ActivePods returns the pods that use the node, static ones too.
	ActivePods func() []*v1.Pod
	// KillPod ends a pod within so many seconds and waits for that; fn changes
	// its status.
	KillPod func(ctx context.Context, pod *v1.Pod, grace int64, fn func(*v1.PodStatus)) error
	// WaitForAllPodsUnmount waits until no volume of the pods is mounted.
	WaitForAllPodsUnmount func(ctx context.Context, pods []*v1.Pod) error
	// FlushStatuses waits until the API has the last statuses of pods that end.
	FlushStatuses func(ctx context.Context, pods []types.UID) error
	// SyncNodeStatus reports the node's status now.
	SyncNodeStatus func(ctx context.Context)
	// Event records an event about the node.
	Event func(eventtype, reason, message string)
	// FS and StateFile are where the times of the last shutdown are kept; "":
	// they are not.
	FS        filesystem.FS
	StateFile string
	// Log takes log lines; nil: none are made.
	Log func(format string, args ...any)
}

// Manager holds the machine's shutdown up until the node's pods have ended. A
// nil Manager is that of a node that does not care.
type Manager struct {
	o    Options
	down bool // the machine is about to go down
	// release gives the lock back; nil: none is held.
	release func()
	// signals are those that nobody has looked at; ended: there will be no more.
	signals []bool
	ended   bool
	busy    bool // a task looks at them
	again   *loop.Timer
}

// New returns a Manager that does nothing until Start; nil if there are no grace
// periods or there is no logind.
func New(o Options) *Manager {
	if len(o.GracePeriods) == 0 || o.Logind == nil {
		return nil
	}
	m := &Manager{o: o}
	m.again = o.Group.NewTimer("node-shutdown watch", func() { o.Group.Go("node-shutdown watch", m.restart) })
	return m
}

// ShutdownStatus is an error while the machine is about to go down.
func (m *Manager) ShutdownStatus() error {
	if m != nil && m.down {
		return errShuttingDown
	}
	return nil
}

// Admit refuses pods while the machine is about to go down.
func (m *Manager) Admit(context.Context, *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	if m != nil && m.down {
		return lifecycle.PodAdmitResult{Reason: reasonNotAdmitted, Message: messageNotAdmitted}
	}
	return lifecycle.PodAdmitResult{Admit: true}
}

// Start takes the lock and watches for the shutdown. If that fails nobody holds
// it up; a watch that ends later is started again each second.
func (m *Manager) Start(ctx context.Context) error {
	if m == nil {
		return nil
	}
	return m.start(ctx)
}

// start takes the lock that delays a shutdown, and watches for one. The delay
// has to be long enough for all pods before the lock is worth anything.
func (m *Manager) start(ctx context.Context) error {
	logind := m.o.Logind
	want := total(m.o.GracePeriods)
	has, err := logind.CurrentInhibitDelay(ctx)
	if err != nil {
		return err
	}
	if want > has {
		if err := m.raiseDelay(ctx, want); err != nil {
			return err
		}
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	m.ended = false
	if err := logind.MonitorShutdown(ctx, m.told, m.watchEnded); err != nil {
		m.unlock()
		return fmt.Errorf("failed to monitor shutdown: %w", err)
	}
	return nil
}

// raiseDelay has logind grant the delay.
func (m *Manager) raiseDelay(ctx context.Context, want time.Duration) error {
	logind := m.o.Logind
	if err := logind.OverrideInhibitDelay(ctx, want); err != nil {
		return fmt.Errorf("unable to override inhibit delay by shutdown manager: %w", err)
	}
	if err := logind.ReloadLogindConf(ctx); err != nil {
		return err
	}
	pause := reloadFirstPause
	for try := 1; ; try++ {
		has, err := logind.CurrentInhibitDelay(ctx)
		if err != nil {
			return err
		}
		if has >= want {
			return nil
		}
		if try == reloadTries {
			return fmt.Errorf("node shutdown manager was timed out after %d attempts waiting for logind InhibitDelayMaxSec to update to %v (ShutdownGracePeriod), current value is %v", try, want, has)
		}
		m.logf("InhibitDelayMaxSec still less than requested, retrying attempt=%d current=%v requested=%v", try, has, want)
		if err := m.o.Loop.Sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// lock takes a lock; one that is held goes only then.
func (m *Manager) lock(ctx context.Context) error {
	release, err := m.o.Logind.InhibitShutdown(ctx)
	if err != nil {
		return err
	}
	m.unlock()
	m.release = release
	return nil
}

// unlock lets the machine go down; it may be called again.
func (m *Manager) unlock() {
	if release := m.release; release != nil {
		m.release = nil
		release()
	}
}

// told takes a signal of logind's. Signals are handled in order, one at a time.
func (m *Manager) told(goingDown bool) {
	m.signals = append(m.signals, goingDown)
	m.wake()
}

// watchEnded has the watch begun anew: logind may have been restarted.
func (m *Manager) watchEnded(err error) {
	m.logf("Ended to watching the node for shutdown events: %v", err)
	m.ended = true
	m.wake()
}

// wake has a task handle what has come, unless one does.
func (m *Manager) wake() {
	if !m.busy {
		m.busy = true
		m.o.Group.Go("node-shutdown", m.run)
	}
}

// run looks at the signals, one after another: that a shutdown was called off
// shows only when the pods have ended.
func (m *Manager) run(ctx context.Context) {
	for len(m.signals) > 0 {
		goingDown := m.signals[0]
		m.signals = m.signals[1:]
		m.signal(ctx, goingDown)
	}
	m.busy = false
	if m.ended {
		m.again.Reset(reconnectPause)
	}
}

// restart tries to watch again, every second until it succeeds.
func (m *Manager) restart(ctx context.Context) {
	m.logf("Restarting watch for node shutdown events")
	if err := m.start(ctx); err != nil {
		m.logf("Unable to watch the node for shutdown events: %v", err)
		m.again.Reset(reconnectPause)
	}
}

// signal handles the begin of a shutdown, or its cancellation. Pods that were
// killed meanwhile stay so; the lock is taken for the next one.
func (m *Manager) signal(ctx context.Context, goingDown bool) {
	m.down = goingDown
	if !goingDown {
		m.o.Event(v1.EventTypeNormal, events.NodeShutdown, "Shutdown manager detected shutdown cancellation")
		if err := m.lock(ctx); err != nil {
			m.logf("Failed to take the inhibitor lock again: %v", err)
		}
		return
	}
	m.o.Event(v1.EventTypeNormal, events.NodeShutdown, "Shutdown manager detected shutdown event")
	m.o.Group.Go("node-status", m.o.SyncNodeStatus)
	m.process(ctx)
}

// process ends the pods and lets the machine go down.
func (m *Manager) process(ctx context.Context) {
	m.logf("Shutdown manager processing shutdown event")
	pods := m.o.ActivePods()
	times := state{StartTime: m.o.Loop.Now()}
	m.store(times)
	for _, g := range groupByPriority(m.o.GracePeriods, pods) {
		if len(g.pods) > 0 {
			m.killGroup(ctx, &g)
		}
	}
	m.flush(ctx, pods, total(m.o.GracePeriods)-m.o.Loop.Since(times.StartTime))
	times.EndTime = m.o.Loop.Now()
	m.store(times)
	m.unlock()
	m.logf("Shutdown manager completed processing shutdown event, node will shutdown shortly")
}

// killGroup ends the pods of a group and waits, at most for its period, until
// they have ended and nothing of them is mounted. A kill may outlast it.
func (m *Manager) killGroup(ctx context.Context, g *group) {
	var kills loop.WaitGroup
	kills.Add(len(g.pods))
	for _, pod := range g.pods {
		grace := g.grace(pod)
		m.o.Group.Go("shutdown/"+pod.Namespace+"/"+pod.Name, func(ctx context.Context) {
			defer kills.Done()
			m.logf("Shutdown manager killing pod with gracePeriod pod=%s/%s gracePeriod=%d", pod.Namespace, pod.Name, grace)
			if err := m.o.KillPod(ctx, pod, grace, m.terminated(pod)); err != nil {
				m.logf("Shutdown manager failed killing pod pod=%s/%s: %v", pod.Namespace, pod.Name, err)
				return
			}
			m.logf("Shutdown manager finished killing pod pod=%s/%s", pod.Namespace, pod.Name)
		})
	}
	wctx, cancel := loop.WithTimeout(ctx, g.period)
	defer cancel()
	if kills.Wait(wctx) == nil {
		if err := m.o.WaitForAllPodsUnmount(wctx, g.pods); err != nil {
			m.logf("Failed while waiting for all the volumes belonging to Pods in this group to unmount priority=%d: %v", g.priority, err)
		}
	}
	if wctx.Err() != nil {
		m.logf("Shutdown manager pod killing time out gracePeriod=%v priority=%d", g.period, g.priority)
	}
}

// terminated is what becomes of a pod's status.
func (m *Manager) terminated(pod *v1.Pod) func(*v1.PodStatus) {
	return func(s *v1.PodStatus) {
		if s.Phase != v1.PodSucceeded {
			s.Phase = v1.PodFailed
		}
		s.Reason, s.Message = reasonTerminated, messageTerminated
		lifecycle.SetDisruptionTarget(s, pod, messageTerminated, m.o.Loop.Now())
	}
}

// flush gives the pods' last statuses the rest of the time to reach the API: a
// pod whose end did not get there would be shown running while the machine is
// off. Upstream lets the machine go down before
// (kubernetes/kubernetes issues 109531, 110755, 112443).
func (m *Manager) flush(ctx context.Context, pods []*v1.Pod, left time.Duration) {
	if len(pods) == 0 || left <= 0 {
		return
	}
	uids := make([]types.UID, len(pods))
	for i, pod := range pods {
		uids[i] = pod.UID
	}
	fctx, cancel := loop.WithTimeout(ctx, left)
	defer cancel()
	if err := m.o.FlushStatuses(fctx, uids); err != nil {
		m.logf("Failed while waiting for the statuses of terminated pods to reach the API: %v", err)
	}
}

func (m *Manager) logf(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}
