package prober

import (
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// A worker whose next tick would find and do what the last one did needs no
// ticks: it is parked, without a timer, until something that it goes by
// changes: its pod's status, or an answer that was said to hold. Then it is on
// its old grid of ticks again, as if all had been run.

// StatusNotifier is a StatusProvider that tells of each new status of a pod.
type StatusNotifier interface {
	OnStatusChange(fn func(uid types.UID))
}

// elision is what a Manager has of it.
type elision struct {
	// parked are the workers whose ticks are left out; parks: there may be any.
	parked []*elided
	parks  bool
	// took is how long the last quick answer takes, if it holds; else passing.
	took time.Duration
	// looks are the workers whose ticks could be left out, with the status that
	// the last tick saw. It is nil unless elision is checked, which runs them.
	looks map[*elided]*v1.PodStatus
}

// elide has workers parked if whoever could change their outcome tells.
func (m *Manager) elide() {
	statuses, ok := m.o.Statuses.(StatusNotifier)
	if !ok || !m.o.Loop.Elides() {
		return
	}
	m.elision.parks = true
	if m.o.Loop.ChecksElision() {
		m.elision.looks = map[*elided]*v1.PodStatus{}
	}
	statuses.OnStatusChange(m.statusChanged)
	if n, ok := m.o.Network.(AnswerNotifier); ok {
		m.o.Network = &heldNetwork{m.o.Network, &m.elision}
		n.OnAnswerChange(m.o.Group, m.answerChanged)
	}
}

func (m *Manager) statusChanged(uid types.UID) {
	for _, w := range m.pods[uid] {
		w.unpark()
	}
}

func (m *Manager) answerChanged(containerID string) {
	for _, list := range m.pods { //drydock:unordered each has a timer of its own
		for _, w := range list {
			if w.containerID == containerID {
				w.unpark()
			}
		}
	}
}

// Probes counts the probes that were run, or left out as unchanged.
func (m *Manager) Probes() uint64 {
	n, now := m.probes, m.o.Loop.UnixNano()
	for _, w := range m.elision.parked {
		if w.runs {
			n += uint64(w.missed(now))
		}
	}
	return n
}

// passing stands for an answer that does not hold.
const passing time.Duration = -1

// heldNetwork notes of quick answers whether they hold.
type heldNetwork struct {
	Network
	e *elision
}

func (n *heldNetwork) note(holds bool, took time.Duration) {
	if n.e.took = passing; holds {
		n.e.took = took
	}
}

// QuickHTTP implements Network.
func (n *heldNetwork) QuickHTTP(containerID string, req *http.Request) (HTTPAnswer, bool) {
	a, ok := n.Network.QuickHTTP(containerID, req)
	n.note(a.Holds, a.Took)
	return a, ok
}

// QuickTCP implements Network.
func (n *heldNetwork) QuickTCP(containerID, host string, port int) (TCPAnswer, bool) {
	a, ok := n.Network.QuickTCP(containerID, host, port)
	n.note(a.Holds, a.Took)
	return a, ok
}

// QuickGRPC implements Network.
func (n *heldNetwork) QuickGRPC(containerID, host string, port int, service string) (GRPCAnswer, bool) {
	a, ok := n.Network.QuickGRPC(containerID, host, port, service)
	n.note(a.Holds, a.Took)
	return a, ok
}

// elided is a worker that is parked while its ticks would do nothing new.
type elided struct {
	worker
	// parked is its place among the manager's parked workers and 1; 0: none.
	parked int32
	// runs: parked, it leaves out probes that Probes counts.
	runs bool
	// changed: what it goes by has changed since its last tick.
	changed bool
	// took is how long the answer to its last probe takes, if it holds; else passing.
	took time.Duration
}

func (m *Manager) newWorker(pod *v1.Pod, c *v1.Container, t probeType) *elided {
	w := &elided{}
	w.init(m, pod, c, t, w.fire)
	return w
}

// fire is the worker's, and parks it if the next tick would be the same.
func (w *elided) fire() {
	e := &w.m.elision
	left := w.look()
	if w.resume(); w.probing && w.timer.Set() {
		return
	}
	begins := !w.probing
	if begins {
		e.took, w.changed = passing, false
	}
	t := w.worker.fire()
	if begins {
		w.took = e.took
	}
	switch {
	case !e.parks || w.ended || t == underway:
	case w.rests(t):
		w.runs = !w.onHold && t == good
		w.park()
	case left:
		w.untold("answers")
	}
}

// rests reports whether the next tick would do what this one did, which came to t.
func (w *elided) rests(t tick) bool {
	switch {
	case w.changed || w.triggered || w.next <= w.m.o.Loop.UnixNano():
		return false
	case w.onHold: // only another container ends that
		return true
	case t == good:
		return w.took != passing && w.resultRun >= w.spec().SuccessThreshold
	}
	// Whatever ends the look at the status, the same status ends it again.
	return t == idle
}

// park takes the worker off the clock, unless elision is checked.
func (w *elided) park() {
	e := &w.m.elision
	e.parked = append(e.parked, w)
	w.parked = int32(len(e.parked))
	if e.looks == nil {
		w.timer.Stop()
	} else {
		e.looks[w], _ = w.m.o.Statuses.GetPodStatus(w.pod.UID)
	}
}

// unpark sets a parked worker's timer to its next tick. One whose probe is in
// progress must not be parked after it: its tick saw what was before.
func (w *elided) unpark() {
	w.changed = true
	delete(w.m.elision.looks, w)
	if w.parked != 0 {
		if w.resume(); !w.probing {
			w.arm()
		}
	}
}

// resume accounts for the ticks that a parked worker has left out. The probe of
// the last of them may still wait for its answer.
func (w *elided) resume() {
	if w.parked == 0 {
		return
	}
	e := &w.m.elision
	now := w.m.o.Loop.UnixNano()
	n := w.missed(now)
	if w.runs {
		w.m.probes += uint64(n)
		w.told[results.Success] += uint32(n)
	}
	w.next += n * w.period()
	list := e.parked
	last := list[len(list)-1]
	list[w.parked-1], last.parked = last, w.parked
	list[len(list)-1] = nil
	e.parked = list[:len(list)-1]
	w.parked = 0
	if answered := w.next - w.period() + int64(w.took); n > 0 && w.runs && answered > now {
		w.probing, w.quick = true, outcome{result: probe.Success}
		w.timer.Reset(time.Duration(answered - now))
	}
}

// missed is how many ticks a parked worker has left out before now.
func (w *elided) missed(now int64) int64 {
	late := now - w.next
	if late <= 0 || w.m.elision.looks != nil {
		return 0
	}
	return (late-1)/w.period() + 1
}

// stop is the worker's.
func (w *elided) stop() {
	w.unpark()
	w.worker.stop()
}

// remove is the worker's.
func (w *elided) remove() {
	w.unpark()
	w.worker.remove()
}

// look is called when the timer is up. It reports whether elision is checked and
// would have left this out; then nobody has told of another status.
func (w *elided) look() bool {
	e := &w.m.elision
	seen, left := e.looks[w]
	if !left || w.probing {
		return left
	}
	if w.triggered { // a run beside the ticks
		delete(e.looks, w)
		return false
	}
	// One that says the same may have taken its place.
	if status, _ := w.m.o.Statuses.GetPodStatus(w.pod.UID); status != seen && !equality.Semantic.DeepEqual(status, seen) {
		w.untold("statuses")
	}
	return true
}

// untold ends a run in which elision is checked.
func (w *elided) untold(version string) {
	delete(w.m.elision.looks, w)
	w.m.o.Loop.Untold(w.probeType.String()+" probe of container "+w.container.Name+" of "+kubecontainer.PodDesc(w.pod), version)
}
