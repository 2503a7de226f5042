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
func (e *elision) statusGeneration() uint64 {
	if e.statuses == nil {
		return 0
	}
	return e.statuses.StatusGeneration()
}

// elidedChecks leaves out checks of a runtime whose answer is known to be what it
// was when all was well: such a check only renews the time of the answer.
type elidedChecks struct {
	*elision
	node   *nodeReporter
	passes *loop.Periodic
	// generation is the runtime's from before the last good status; 0: the next
	// check is made.
	generation uint64
	begun      loop.Version // grows when a check begins, whoever makes it
}

// elideChecks has the checks of the runtime elided.
func (el *elision) elideChecks() {
	e := &elidedChecks{elision: el, node: el.kl.reporter}
	el.checks = e
	e.node.state.catchUp = func() { e.passes.CatchUp() }
	check := e.node.check
	e.node.check = func(ctx context.Context) bool {
		// Read before the call, as in rememberedImages.
		generation := e.statusGeneration()
		e.generation = 0
		e.begun.Grow()
		good := check(ctx)
		if good {
			e.generation = generation
		}
		return good
	}
}

// describe says what the version of its own stands for.
func (e *elidedChecks) describe(g *loop.Group) {
	g.Describe(&e.begun, "runtime status", loop.Rises(func() int {
		if e.generation == 0 {
			return 1
		}
		return 0
	}))
}

// Parked reports whether whoever asked the runtime now would get a good status.
func (e *elidedChecks) Parked() bool { return e != nil && e.passes.Parked() }

// Reads implements loop.Elider.
func (e *elidedChecks) Reads() []*loop.Version {
	return []*loop.Version{&e.runtime, &e.begun}
}

// Until implements loop.Elider.
func (e *elidedChecks) Until(now int64) int64 {
	n, s := e.node, e.node.state
	// A check that is in progress holds the lock: what it will find is not known
	// yet.
	if !n.facts.once || e.generation == 0 || e.generation != e.statusGeneration() || n.lock.Taken() ||
		s.runtimeError != nil || s.networkError != nil {
		return now
	}
	return loop.Forever
}

// LeftOut implements loop.Elider.
func (e *elidedChecks) LeftOut(n, last int64) {
	// Checks that were left out count, and leave the time of their answer, as if
	// they had run.
	e.node.checks += uint64(n)
	e.node.state.lastSync = max(e.node.state.lastSync, last)
}

// knownRuntimeVersion is what a Version call would return, if that is known
// without one: the call would be answered, and the runtime answered its last
// status check, so it is the one that was asked before.
func (e *elision) knownRuntimeVersion() (string, bool) {
	kl, s := e.kl, e.kl.node.state
	v := kl.runtime.RuntimeVersion()
	if e.statusGeneration() == 0 || v == nil || s.runtimeErrors() != nil ||
		kl.l.UnixNano()-s.lastSync > int64(2*runtimeUpPeriod) {
		return "", false
	}
	return v.RuntimeVersion, true
}
