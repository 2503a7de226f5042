package prober

import (
	"context"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// probeType is what a probe decides about.
type probeType uint8

const (
	liveness probeType = iota
	readiness
	startup
)

func (t probeType) String() string { return [...]string{"Liveness", "Readiness", "Startup"}[t] }

// initial is what counts until a new container was probed.
func (t probeType) initial() results.Result {
	return [...]results.Result{results.Success, results.Failure, results.Unknown}[t]
}

func (t probeType) spec(c *v1.Container) *v1.Probe {
	switch t {
	case liveness:
		return c.LivenessProbe
	case readiness:
		return c.ReadinessProbe
	}
	return c.StartupProbe
}

// worker runs one probe of one container name, over all containers that bear
// it. Pod and container are those of its creation, and shared.
type worker struct {
	m         *Manager
	pod       *v1.Pod
	container *v1.Container
	timer     *loop.Timer

	containerID string // the CRI's; "" while none was seen
	resultRun   int32
	// told counts the results, by results.Result.
	told       [3]uint32
	probeType  probeType
	lastResult results.Result
	onHold     bool
	// begun: the wait before the first tick is over.
	begun bool
	// probing: a probe is in progress.
	probing bool
	// triggered: somebody asks for a run beside the ticks.
	triggered bool
	stopped   bool
	cancelled bool
	ended     bool

	// next is when the ticker's next tick is due, in ns. One that is due while
	// a probe is in progress is kept, further ones are dropped.
	next int64
	// cancel ends the command in progress.
	cancel context.CancelFunc
	// quick is the outcome that the timer waits to tell.
	quick outcome

	// request is kept as long as the pod's address stays.
	request   *http.Request
	requestIP string
}

// outcome is what one probe came to.
type outcome struct {
	result probe.Result
	output string
	err    error
}

// tick says what came of a tick, or of the probe that it began.
type tick uint8

const (
	over     tick = iota // the worker ends
	idle                 // by the pod's status there is nothing to probe
	early                // the initial delay is not over
	underway             // a probe is in progress
	good                 // a probe succeeded
	bad                  // a probe was told of in an event
)

// init makes it the worker of a probe. fire is what its timer calls.
func (w *worker) init(m *Manager, pod *v1.Pod, c *v1.Container, t probeType, fire func()) {
	w.m, w.pod, w.container, w.probeType = m, pod, c, t
	w.timer = m.o.Group.NewTimer("probe", fire)
}

func (w *worker) spec() *v1.Probe { return w.probeType.spec(w.container) }

func (w *worker) period() int64 { return int64(w.spec().PeriodSeconds) * int64(time.Second) }

// begin sets the first tick: at once, but after a random part of the period
// while the kubelet has been running for less than that, so that a restarted
// kubelet does not run all probes at once.
func (w *worker) begin() {
	l := w.m.o.Loop
	if w.period() <= int64(l.Since(w.m.start)) {
		w.timer.Reset(0)
		return
	}
	f := l.Float64("probe start", string(w.pod.UID)+"/"+w.container.Name, uint64(w.probeType))
	w.timer.Reset(time.Duration(f * float64(w.period())))
}

// fire is called by the timer: at a tick, for a trigger, or when a quick
// answer has arrived.
func (w *worker) fire() tick {
	now := w.m.o.Loop.UnixNano()
	switch {
	case w.ended:
		return over
	case w.probing:
		o := w.quick
		w.quick = outcome{}
		return w.finish(o)
	case !w.begun:
		w.begun = true
		w.next = now + w.period()
	case w.triggered:
		w.triggered = false
		w.next = now + w.period()
	default:
		w.next += w.period()
		if late := now - w.next; late >= 0 {
			w.next += (late/w.period() + 1) * w.period()
		}
	}
	t := w.doProbe()
	switch t {
	case over:
		w.end()
	case underway:
	default:
		w.arm()
	}
	return t
}

// arm sets the timer to what comes next.
func (w *worker) arm() {
	switch wait := w.next - w.m.o.Loop.UnixNano(); {
	case w.stopped:
		w.end()
	case w.triggered || wait <= 0:
		w.timer.Reset(0)
	default:
		w.timer.Reset(time.Duration(wait))
	}
}

func (w *worker) trigger() {
	if w.ended || w.triggered {
		return
	}
	w.triggered = true
	if w.begun && !w.probing {
		w.timer.Reset(0)
	}
}

// stop ends the worker, after the probe in progress if there is one.
func (w *worker) stop() {
	if w.ended {
		return
	}
	w.stopped = true
	if !w.probing {
		w.end()
	}
}

// remove is stop that leaves nothing behind.
func (w *worker) remove() {
	if w.ended {
		w.m.forget(w)
		return
	}
	w.stop()
}

// cancelCommands cancels what runs in the container, now and later.
func (w *worker) cancelCommands() {
	w.cancelled = true
	if w.cancel != nil {
		w.cancel()
	}
}

// end drops the worker and its result. One that ended by itself stays on
// record, see revived.
func (w *worker) end() {
	w.ended = true
	w.timer.Stop()
	if w.containerID != "" {
		w.m.resultsOf(w.probeType).Remove(w.containerID)
	}
	if w.stopped {
		w.m.forget(w)
	}
}

// revived reports whether a worker that ended by itself has a container again
// that it could probe.
func (w *worker) revived() bool {
	status, ok := w.m.o.Statuses.GetPodStatus(w.pod.UID)
	if !ok {
		return false
	}
	c := containerStatus(status, w.container.Name)
	return c != nil && (c.State.Terminated == nil || criID(c.ContainerID) != w.containerID)
}

// set stores a result for the present container.
func (w *worker) set(r results.Result) {
	w.m.resultsOf(w.probeType).Set(w.containerID, r, w.pod.UID)
}

// doProbe is one tick: it looks whether the container is to be probed and
// begins that.
func (w *worker) doProbe() tick {
	status, ok := w.m.o.Statuses.GetPodStatus(w.pod.UID)
	if !ok {
		return idle // not created yet, or deleted already
	}
	if kubetypes.IsTerminalPhase(status.Phase) {
		return over
	}
	c := containerStatus(status, w.container.Name)
	if c == nil {
		return idle
	}
	if id := criID(c.ContainerID); id != w.containerID {
		w.newContainer(id, c)
	}
	if w.onHold {
		return idle
	}
	if c.State.Running == nil {
		w.set(results.Failure)
		if c.State.Terminated == nil || w.comesBack(status, c.State.Terminated.ExitCode) {
			return idle
		}
		return over
	}
	if w.pod.DeletionTimestamp != nil && w.probeType != readiness {
		w.set(results.Success) // for a quiet end
		return over
	}
	age := w.m.o.Loop.Since(c.State.Running.StartedAt.Time)
	if int32(age/time.Second) < w.spec().InitialDelaySeconds {
		return early
	}
	if started := c.Started != nil && *c.Started; started == (w.probeType == startup) {
		return idle // a startup probe is over once started, the others begin then
	}
	w.m.probes++
	return w.run(status)
}

// newContainer takes up another container of the name. One that ran well
// before this kubelet keeps what the API says of it until a probe knows better.
func (w *worker) newContainer(id string, c *v1.ContainerStatus) {
	if w.containerID != "" {
		w.m.resultsOf(w.probeType).Remove(w.containerID)
	}
	w.containerID, w.onHold = id, false
	if r := c.State.Running; r == nil || !r.StartedAt.Time.Before(w.m.start.Add(-startGrace)) {
		w.set(w.probeType.initial())
		return
	}
	if w.probeType == startup && c.Started != nil && *c.Started && kubecontainer.IsRestartableInit(w.container) {
		w.set(results.Success)
	}
}

// comesBack reports whether a container that ended with that code starts again.
func (w *worker) comesBack(status *v1.PodStatus, code int32) bool {
	if kubecontainer.IsRestartableInit(w.container) || kubecontainer.ShouldRestart(w.container, w.pod, code) {
		return true
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.AllContainersRestarting {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// finish takes in what a probe came to.
func (w *worker) finish(o outcome) tick {
	w.probing = false
	w.cancel = nil
	if w.ended {
		return over
	}
	t := w.take(o)
	w.arm()
	return t
}

// take takes in an outcome.
func (w *worker) take(o outcome) tick {
	if r, ok := w.tell(o); ok {
		w.told[r]++
		w.count(r)
	}
	if o.err == nil && o.result == probe.Success {
		return good
	}
	return bad
}

// count stores a result once there were enough of it in a row.
func (w *worker) count(r results.Result) {
	if w.lastResult == r {
		w.resultRun++
	} else {
		w.lastResult, w.resultRun = r, 1
	}
	spec := w.spec()
	if r == results.Failure && w.resultRun < spec.FailureThreshold || r == results.Success && w.resultRun < spec.SuccessThreshold {
		return
	}
	w.set(r)
	if w.probeType == liveness && r == results.Failure || w.probeType == startup {
		// It is restarted, or has started: nothing more until there is
		// another container.
		w.onHold = true
		w.resultRun = 0
	}
}

// containerStatus finds the status of a regular or init container that has
// been created, or nil.
func containerStatus(s *v1.PodStatus, name string) *v1.ContainerStatus {
	for _, list := range [...][]v1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].ContainerID != "" {
				return &list[i]
			}
		}
	}
	return nil
}

// criID is the CRI's ID in the ID of the API, "containerd://ID".
func criID(id string) string {
	if i := strings.Index(id, "://"); i >= 0 {
		return id[i+len("://"):]
	}
	return id
}
