package volumemanager

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// work is what a loop has to do: nothing, or something from a time on. A pass
// takes all that there is, and leaves what it can't do yet. It is the Elider of the
// loop's passes, which do nothing without work.
type work struct {
	// after is the time (ns since the Unix epoch) after which there is something to
	// do; never: there is nothing.
	after   int64
	version loop.Version // grows with each wake
	reads   [1]*loop.Version
	passes  *loop.Periodic // nil: they are not elided
}

const never = math.MaxInt64

// wake notes that there is something to do after a time, in ns since the Unix
// epoch; 0: from now on.
func (w *work) wake(after int64) {
	w.after = min(w.after, after)
	w.version.Grow()
}

// begin is called when a pass begins, end when it has ended.
func (w *work) begin() { w.after = never }

func (w *work) end() {
	if w.passes != nil {
		w.passes.Settle()
	}
}

// Reads implements loop.Elider.
func (w *work) Reads() []*loop.Version { return w.reads[:] }

// Until implements loop.Elider.
func (w *work) Until(int64) int64 {
	if w.after == never {
		return loop.Forever
	}
	return w.after + 1
}

// Plan implements loop.Planner.
func (w *work) Plan(now int64) int64 { return w.Until(now) }

// LeftOut implements loop.Elider.
func (w *work) LeftOut(int64, int64) {}

func (w *work) elide(passes *loop.Periodic) {
	w.reads[0], w.passes = &w.version, passes
	passes.Elide(w)
}

// Told is an API that tells of changes: it knows whether it would answer as it did last when
// it was asked for an object.
type Told interface {
	ClaimStillTrue(namespace, name string) bool
	VolumeStillTrue(name string) bool
	DriverStillTrue(name string) bool
	// Untold grows when one of these may have become false.
	Untold() *loop.Version
}

// Untold grows when a volume for which Fixed was true may show something else.
func (m *Manager) Untold() *loop.Version {
	if m.told == nil {
		return &m.never
	}
	return m.told.Untold()
}

// stillTrue reports whether what the API says of a driver's volume is what it said when it was
// asked last, so that a sync need not ask again.
func (m *Manager) stillTrue(pod *v1.Pod, v *podVolume) bool {
	d := v.driver
	if m.told == nil || d.republish || d.claim != nil || v.spec == nil {
		return false
	}
	now := m.told.Untold().Count()
	if d.known && d.knownAt == now {
		return true
	}
	if d.pv == nil {
		d.known = v.spec.CSI != nil && m.told.DriverStillTrue(v.spec.CSI.Driver)
	} else {
		d.known = m.told.ClaimStillTrue(pod.Namespace, d.claimName) && m.told.VolumeStillTrue(d.pv.Name) && m.told.DriverStillTrue(d.pv.Spec.CSI.Driver)
	}
	d.knownAt = now
	return d.known
}

// elide has the loops' passes left out that have nothing to do, and whoever waits
// for a pod's volumes look only when something of them has changed.
func (m *Manager) elide() {
	if !m.l.Elides() {
		return
	}
	m.populating.elide(m.populator)
	m.reconciling.elide(m.reconciler)
	m.idle = func(ctx context.Context, w *waiter) error { return w.changed.Wait(ctx) }
}
