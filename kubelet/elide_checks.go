package kubelet

import (
	"context"

	"github.com/drydock-sim/drydock/ground/loop"
)

// statusGeneration is implemented by a runtime client that knows, without a
// call, whether Version and Status would say something new.
type statusGeneration interface {
	// StatusGeneration grows with every change that they could show. 0 means
	// that it is not known, so the real call must be made.
	StatusGeneration() uint64
}

// statusGeneration returns the runtime's; 0 if it has none, or nothing is elided.
func (kl *Kubelet) statusGeneration() uint64 {
	if kl.elided.statuses == nil {
		return 0
	}
	return kl.elided.statuses.StatusGeneration()
}

// elidedChecks leaves out checks of a runtime whose answer is known to be what it
// was when all was well: such a check only renews the time of the answer.
type elidedChecks struct {
	kl     *Kubelet
	passes *loop.Periodic
	// generation is the runtime's from before the last good status; 0: the next
	// check is made.
	generation uint64
	begun      loop.Version // grows when a check begins, whoever makes it
}

// elideChecks has the checks of the runtime elided.
func (kl *Kubelet) elideChecks() {
	e := &elidedChecks{kl: kl}
	kl.elided.checks = e
	kl.state.catchUp = func() { e.passes.CatchUp() }
	check := kl.bodies.checkRuntime
	kl.bodies.checkRuntime = func(ctx context.Context) bool {
		// Read before the call, as in rememberedImages.
		generation := kl.statusGeneration()
		e.generation = 0
		e.begun.Grow()
		good := check(ctx)
		if good {
			e.generation = generation
		}
		return good
	}
}

// Parked reports whether whoever asked the runtime now would get a good status.
func (e *elidedChecks) Parked() bool { return e != nil && e.passes.Parked() }

// Reads implements loop.Elider.
func (e *elidedChecks) Reads() []*loop.Version {
	return []*loop.Version{&e.kl.elided.runtime, &e.begun}
}

// Until implements loop.Elider.
func (e *elidedChecks) Until(now int64) int64 {
	u, s := &e.kl.runtimeUp, e.kl.state
	// A check that is in progress holds the lock: what it will find is not known
	// yet.
	if !u.once || e.generation == 0 || e.generation != e.kl.statusGeneration() || u.lock.Taken() ||
		s.runtimeError != nil || s.networkError != nil {
		return now
	}
	return loop.Forever
}

// LeftOut implements loop.Elider.
func (e *elidedChecks) LeftOut(n, last int64) {
	// Checks that were left out count, and leave the time of their answer, as if
	// they had run.
	e.kl.runtimeChecks += uint64(n)
	e.kl.state.lastSync = max(e.kl.state.lastSync, last)
}

// knownRuntimeVersion is what a Version call would return, if that is known
// without one: the call would be answered, and the runtime answered its last
// status check, so it is the one that was asked before.
func (kl *Kubelet) knownRuntimeVersion() (string, bool) {
	v := kl.runtime.RuntimeVersion()
	if kl.statusGeneration() == 0 || v == nil || kl.state.runtimeErrors() != nil ||
		kl.l.UnixNano()-kl.state.lastSync > int64(2*runtimeUpPeriod) {
		return "", false
	}
	return v.RuntimeVersion, true
}
