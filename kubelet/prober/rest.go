package prober

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A worker whose next tick would find and do what the last one did needs no
// ticks: it is parked, without a timer, until something that it goes by
// changes: its pod's status, or an answer that was said to hold. Then it is on
// its old grid of ticks again, as if all had been run.

// StatusNotifier is a StatusProvider that tells of each new status of a pod.
type StatusNotifier interface {
	OnStatusChange(fn func(uid types.UID))
}

// notified has workers parked if whoever could change their outcome tells.
func (m *Manager) notified() {
	statuses, ok := m.o.Statuses.(StatusNotifier)
	if !ok || !m.o.Loop.Elides() {
		return
	}
	m.parks = true
	statuses.OnStatusChange(m.statusChanged)
	if n, ok := m.o.Network.(AnswerNotifier); ok {
		n.OnAnswerChange(m.o.Group, m.answerChanged)
	}
}

func (m *Manager) statusChanged(uid types.UID) {
	if len(m.parked) == 0 {
		return
	}
	for _, w := range m.pods[uid] {
		w.unpark()
	}
}

func (m *Manager) answerChanged(containerID string) {
	for i := len(m.parked) - 1; i >= 0; i-- { // unpark moves what comes after
		if w := m.parked[i]; w.containerID == containerID {
			w.unpark()
		}
	}
}

// park takes the worker off the clock.
func (w *worker) park() {
	w.m.parked = append(w.m.parked, w)
	w.parked = int32(len(w.m.parked))
}

// unpark sets a parked worker's timer to its next tick.
func (w *worker) unpark() {
	if w.parked == 0 {
		return
	}
	now := w.m.o.Loop.UnixNano()
	n := w.missed(now)
	if w.runs {
		w.m.probes += uint64(n)
	}
	w.next += n * w.period()
	list := w.m.parked
	last := list[len(list)-1]
	list[w.parked-1], last.parked = last, w.parked
	list[len(list)-1] = nil
	w.m.parked = list[:len(list)-1]
	w.parked = 0
	w.timer.Reset(time.Duration(w.next - now))
}

// missed is how many ticks a parked worker has left out before now.
func (w *worker) missed(now int64) int64 {
	late := now - w.next
	if late <= 0 {
		return 0
	}
	return (late-1)/w.period() + 1
}
