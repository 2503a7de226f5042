package accounts

import (
	"math"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
)

// NoLimit is the limit of a guard that watches nothing.
const NoLimit = math.MaxInt64

// How much more than now interpreted processes may use before a guard looks
// again: they say what they take only when they take it.
const (
	memorySlack = 16 << 20
	pidSlack    = 16
)

// demand is what is used of something, by whom it is used.
type demand struct {
	*ledger
	// extra is used by interpreted processes and sandboxes, own by the machine.
	extra int64
	own   usage.User
}

// bound is an amount that will not be exceeded while nobody else comes.
func (d demand) bound() int64 { return d.peak + d.extra + d.own.Curve.Peak() }

// now is what is used at an instant.
func (d demand) now(at time.Duration) int64 { return d.ledger.now(at) + d.extra + d.own.At(at) }

// guard acts when more than a limit is used. When that will be is computed from
// the curves: while their peaks together fit below the limit it costs a
// comparison whenever a container starts, else a timer.
type guard struct {
	r     *Node
	kind  *guardKind
	pod   *records.Sandbox // whose limit it is; nil: not a pod's
	limit int64

	timer *loop.Timer
	told  int64 // the extra up to which the timer's time holds
	armed bool
}

// guardKind is what guards of one kind have in common; all nodes share it. The
// sandbox is the guard's.
type guardKind struct {
	name   string
	slack  int64
	demand func(*Node, *records.Sandbox) demand
	// passed is called when more is used. false: nothing could be done about it.
	passed func(*Node, *records.Sandbox) bool
	// inner, if any, has the limits inside acted on that are passed, too: what is
	// charged passes these first. false: none is.
	inner func(*Node, *records.Sandbox) bool
}

// The kinds: the OOM killer's, and those of a watch in the order of Node.low.
var (
	nodeGuard = guardKind{"memory", memorySlack, (*Node).memoryDemand, (*Node).nodeOOM, func(r *Node, _ *records.Sandbox) bool { return r.innerOOM(nil, true) }}
	podsGuard = guardKind{"pods memory", memorySlack, (*Node).podsMemoryDemand, (*Node).podsOOM, func(r *Node, _ *records.Sandbox) bool { return r.innerOOM(nil, false) }}
	podGuard  = guardKind{"pod memory", memorySlack, (*Node).podDemand, (*Node).podOOM, func(r *Node, s *records.Sandbox) bool { return r.innerOOM(s, false) }}
	lowGuards = [3]guardKind{
		{"low memory", memorySlack, (*Node).memoryDemand, (*Node).tellLow, nil},
		{"low pods memory", memorySlack, (*Node).podsMemoryDemand, (*Node).tellLow, nil},
		{"low pids", pidSlack, (*Node).pidsDemand, (*Node).tellLow, nil},
	}
)

// lowPIDs is where Node.low has the guard of processes.
const lowPIDs = 2

func (g *guard) demand() demand { return g.kind.demand(g.r, g.pod) }

// retry is after how long a guard tries again that could do nothing.
const retry = time.Second

// Grown is called when there may be more users (started) or a larger extra. What
// has to be done is done in a step of its own.
func (g *guard) Grown(started bool) {
	if g.limit == NoLimit {
		return
	}
	d := g.demand()
	if d.bound() <= g.limit || !started && g.armed && d.extra <= g.told {
		return
	}
	g.reset(0, d.extra)
}

// reset has the guard look after a time; until then an extra up to told needs no
// other look.
func (g *guard) reset(after time.Duration, told int64) {
	if g.timer == nil {
		g.timer = g.r.kern.Powered.NewTimer(g.kind.name, g.look)
	}
	g.armed, g.told = true, told
	g.timer.Reset(after)
}

// look acts while more than the limit is used, and then computes when to look again.
func (g *guard) look() {
	g.armed = false
	for g.limit != NoLimit {
		now := time.Duration(g.r.l.UnixNano())
		d := g.demand()
		sum := d.now(now)
		if sum > g.limit {
			if !g.act() {
				g.reset(retry, NoLimit)
				return
			}
			continue
		}
		if d.bound() <= g.limit {
			return
		}
		slack := int64(0)
		if g.r.kern.Machine != nil {
			slack = min(g.kind.slack, (g.limit-sum)/2)
		}
		users := append(d.Users[:len(d.Users):len(d.Users)], d.own)
		if at, ok := usage.FirstOver(users, g.limit-slack-d.fixed-d.extra, now+1); ok {
			g.reset(at-now, d.extra+slack)
		} else {
			g.armed, g.told = true, d.extra+slack
		}
		return
	}
}

// over reports whether more than the limit is used at an instant.
func (g *guard) over(now int64) bool {
	return g.limit != NoLimit && g.demand().now(time.Duration(now)) > g.limit
}

// act does what has to be done when more than the limit is used; false: nothing
// could be.
func (g *guard) act() bool {
	return g.kind.inner != nil && g.kind.inner(g.r, g.pod) || g.kind.passed(g.r, g.pod)
}

// stop ends a guard's timer; with its group dead the next is made anew.
func (g *guard) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer, g.armed = nil, false
}

// WatchUsage is Runtime.WatchUsage.
func (r *Node) WatchUsage(memory, podsMemory, pids int64, changed func()) bool {
	r.unwatch()
	if changed == nil {
		return true
	}
	now, limits := time.Duration(r.l.UnixNano()), [...]int64{memory, podsMemory, pids}
	for i, limit := range limits {
		if d := r.low[i].demand(); limit < NoLimit && d.bound() > limit && d.now(now) > limit {
			return false
		}
	}
	r.changed = changed
	for i, limit := range limits {
		r.low[i].limit = limit
		r.low[i].Grown(true)
	}
	return true
}

// unwatch ends a watch.
func (r *Node) unwatch() {
	for i := range r.low {
		r.low[i].stop()
		r.low[i].limit = NoLimit
	}
}

// tellLow is a limit of a watch passed, which ends the watch.
func (r *Node) tellLow(*records.Sandbox) bool {
	for i := range r.low {
		r.low[i].limit = NoLimit
	}
	r.changed()
	return true
}
