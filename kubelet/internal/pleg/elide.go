package pleg

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Generation is implemented by a runtime client that knows, without a call,
// whether a listing could show something new.
type Generation interface {
	// Generation grows with every change that a listing could show. 0 means
	// that it is not known, so the real call must be made: a fault or an
	// outage may be in its way.
	Generation() uint64
}

// Notifier is a Generation that tells of its changes, so that nobody needs to
// ask for it meanwhile.
type Notifier interface {
	Generation
	// OnChange has fn called whenever Generation has changed, or has become
	// unknown or different with each call. fn must not wait.
	OnChange(fn func())
}

// Elided is a Generic that makes no relist of a runtime whose generation is what
// it was. While nobody waits for the time of the next there is not even a timer.
type Elided struct {
	*Generic
	plain   relister
	runtime Generation
	version *loop.Version // grows with the runtime's generation
	asked   loop.Version  // grows when somebody asks for a relist, or waits for one
	// generation is the runtime's from before the last good relist; 0: the next
	// one must be made.
	generation uint64
	n          uint64 // counts the relists that were left out
}

// Elide returns a PLEG, not yet started, with the relists left out that could show
// nothing new. version grows with the runtime's generation.
func Elide(p *Generic, runtime Generation, version *loop.Version) *Elided {
	e := &Elided{Generic: p, plain: p.relister, runtime: runtime, version: version}
	p.relister = e
	p.o.Cache.SetSource(e)
	return e
}

// Start is Generic's.
func (e *Elided) Start(g *loop.Group) {
	e.Generic.Start(g)
	e.passes.Elide(e)
}

// Healthy is Generic's.
func (e *Elided) Healthy() error {
	e.CatchUp()
	return e.Generic.Healthy()
}

// LastRelist is Generic's.
func (e *Elided) LastRelist() time.Time {
	e.CatchUp()
	return e.Generic.LastRelist()
}

// Stats is Generic's.
func (e *Elided) Stats() Stats {
	e.CatchUp()
	s := e.Generic.Stats()
	s.Elided = e.n
	return s
}

// RequestReinspect is Generic's.
func (e *Elided) RequestReinspect(uid types.UID) {
	e.asked.Grow()
	e.Generic.RequestReinspect(uid)
}

// Relist is Generic's.
func (e *Elided) Relist(ctx context.Context) error {
	e.CatchUp()
	return e.Generic.Relist(ctx)
}

// unchanged reports whether a relist now could show nothing new.
func (e *Elided) unchanged() bool {
	return e.generation != 0 && len(e.reinspec) == 0 && e.runtime.Generation() == e.generation
}

// Describe says what the versions of its own stand for.
func (e *Elided) Describe(g *loop.Group) {
	seen, busy, rises := 0, false, uint64(0)
	g.Describe(&e.asked, "asked", func() uint64 {
		asked := len(e.reinspec) + e.o.Cache.Waiters()
		if asked > seen && !e.busy && !busy { // a pass that is under way is followed by another
			rises++
		}
		seen, busy = asked, e.busy
		return rises
	})
}

// Reads implements loop.Elider.
func (e *Elided) Reads() []*loop.Version { return []*loop.Version{e.version, &e.asked} }

// Until implements loop.Elider.
func (e *Elided) Until(now int64) int64 {
	switch {
	case e.busy || !e.unchanged() || len(e.requests) > 0:
		return now
	case e.o.Cache.Waiting():
		return now + 1
	}
	return loop.Forever
}

// LeftOut implements loop.Elider: it does what relists that find nothing would.
func (e *Elided) LeftOut(n, last int64) {
	e.n += uint64(n)
	e.lastRelist = time.Unix(0, last).UTC()
	e.o.Cache.UpdateTime(e.lastRelist)
}

// relist implements relister.
func (e *Elided) relist(ctx context.Context) bool {
	if e.unchanged() {
		e.LeftOut(1, e.o.Loop.UnixNano())
		return true
	}
	generation := e.runtime.Generation()
	e.generation = 0
	good := e.plain.relist(ctx)
	if good {
		// A pod whose inspection failed is marked, so the next relist is made.
		e.generation = generation
	}
	return good
}

// relistPod implements relister.
func (e *Elided) relistPod(ctx context.Context, r request) {
	if e.seen(r) || !e.unchanged() {
		e.plain.relistPod(ctx, r)
		return
	}
	if _, known := e.find(r.uid); known {
		e.o.Cache.SetObservedTime(r.uid, e.o.Loop.Now())
	}
}

// CatchUp implements container.Source.
func (e *Elided) CatchUp() { e.passes.CatchUp() }

// Awaited implements container.Source.
func (e *Elided) Awaited() { e.asked.Grow() }

// Parked reports whether relists find nothing until the runtime tells of a
// change.
func (e *Elided) Parked() bool { return e.passes.Parked() }

// HealthyUntil is the time (ns since the Unix epoch) before which Healthy
// returns nil whatever happens; 0 if it does not now.
func (e *Elided) HealthyUntil() int64 {
	last := e.LastRelist()
	if last.IsZero() {
		return 0
	}
	return last.Add(e.o.RelistThreshold).UnixNano() + 1
}
