package loop

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// maxStepsPerInstant bounds the steps at one instant; more is a livelock.
const maxStepsPerInstant = 1_000_000

// Options configure a Loop.
type Options struct {
	// Name tells this loop from others in draws and messages.
	Name string
	// Seed decides the order of what is simultaneous, and every draw. With 0
	// what is simultaneous happens in the order in which it was scheduled.
	Seed uint64
	// Typical has Between and Jitter return the middle of their range in place
	// of a draw.
	Typical bool
	// Speed is how many times as fast as the wall clock the clock of NewReal
	// runs, from the wall clock's time on. 0 means 1.
	Speed float64
	// OnPanic, if set, takes the panic of a task or callback, on the loop,
	// which then goes on; else a panic ends the loop's run.
	OnPanic func(*PanicError)
	// Elision is what the loop does with periodic passes that would do nothing
	// new: see elide.go.
	Elision ElisionMode
	// Start is the time at which the loop's clock begins.
	// Zero means 2026-01-01T00:00:00Z.
	Start time.Time
}

// epoch is what Epoch returns.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Epoch returns the time at which virtual clocks start: 2026-01-01T00:00:00Z.
func Epoch() time.Time { return epoch }

// Loop runs tasks and callbacks one at a time on a clock of its own. All its
// methods but Post are for use on the loop (inside a step) or while no driver
// runs it.
type Loop struct {
	// What each step touches stands first, side by side.
	now  int64 // ns since the Unix epoch
	heap heap
	seed uint64
	seq  uint64
	// stream and streams make the numbers of NewStream: from the step that
	// asks, and how many it has asked for.
	stream, streams uint64
	steps           uint64
	err             error
	current         *Task
	dying           []*Group
	pool            *pool // that of the engine's worker; own of a loop without engine
	fake            *clocktesting.FakePassiveClock
	outbox          []message
	limit           int64 // no step of the present run is due then or later
	// instantSteps counts the steps since the clock last jumped.
	instantSteps int32
	// fresh tells that the clock was moved on between runs and no step has
	// seen its time yet, so that where a run is cut does not show.
	fresh   bool
	typical bool
	elision ElisionMode
	closed  bool
	marked  bool
	calm    uint8 // of the outbox, see emptied
	// stepping: a step is being taken. woken are the periodic bodies that are to be
	// planned at its end.
	stepping bool
	woken    []*Periodic
	// described are the versions that a check of elision looks at after each step.
	described []described

	drawBase uint64
	root     *Group
	name     string
	groups   []*Group
	index    int
	engine   *Engine
	own      *pool // nil in an engine
	real     *realState
	onPanic  func(*PanicError)
}

// New returns a loop whose clock stands at opts.Start.
func New(opts Options) *Loop {
	own := &pool{}
	l := newLoop(opts, own)
	l.own = own
	return l
}

func newLoop(opts Options, p *pool) *Loop {
	if opts.Start.IsZero() {
		opts.Start = epoch
	}
	l := &Loop{
		name:     opts.Name,
		seed:     opts.Seed,
		typical:  opts.Typical,
		elision:  opts.Elision,
		now:      opts.Start.UnixNano(),
		drawBase: Hash(opts.Seed, []string{opts.Name}),
		index:    -1,
		onPanic:  opts.OnPanic,
	}
	l.pool = p
	l.root = l.NewGroup("loop")
	return l
}

// Name returns the loop's name.
func (l *Loop) Name() string { return l.name }

// Index returns the number of a loop of an engine: they are numbered from 0.
func (l *Loop) Index() int { return l.index }

// Seed returns the loop's seed.
func (l *Loop) Seed() uint64 { return l.seed }

// Now returns the loop's time, UTC. No two steps see the same.
func (l *Loop) Now() time.Time { return time.Unix(0, l.now).UTC() }

// UnixNano returns the loop's time in nanoseconds since the Unix epoch.
func (l *Loop) UnixNano() int64 { return l.now }

// Since returns the time that passed on the loop's clock since t.
func (l *Loop) Since(t time.Time) time.Duration { return time.Duration(l.now - t.UnixNano()) }

// Steps returns how many steps the loop has taken.
func (l *Loop) Steps() uint64 { return l.steps }

// Root is a group that lives as long as the loop.
func (l *Loop) Root() *Group { return l.root }

// Clock returns a passive clock, for libraries that want one, that shows the
// loop's time.
func (l *Loop) Clock() clock.PassiveClock {
	if l.fake == nil {
		l.fake = clocktesting.NewFakePassiveClock(l.Now())
	}
	return l.fake
}

// NewStream returns a number for use with Group.AfterInStream: what is
// scheduled in one stream for one instant happens in the order of scheduling.
//
// It follows from the step that asks and from how many it has asked for, so
// that one more task or timer elsewhere shifts no other's order.
func (l *Loop) NewStream() uint64 {
	l.streams++
	return mix(l.stream + l.streams*0x9e3779b97f4a7c15)
}

// next returns when the next step is due; MaxInt64 when nothing is scheduled.
func (l *Loop) next() int64 {
	if len(l.heap.items) == 0 {
		return math.MaxInt64
	}
	return l.heap.items[0].at
}

// schedule puts t into the heap for the time at, or moves it there.
func (l *Loop) schedule(t *Timer, at int64) {
	l.seq++
	t.seq = l.seq
	it := item{at: at, tie: l.tie(t.stream, at), t: t}
	if t.idx >= 0 {
		l.heap.items[t.idx] = it
		l.heap.fix(int(t.idx))
		return
	}
	l.heap.push(it)
}

// tie is the seed's word on the order of steps at one instant.
func (l *Loop) tie(stream uint64, at int64) uint64 {
	if l.seed == 0 {
		return 0
	}
	return mix(l.seed ^ mix(stream) ^ uint64(at))
}

// step takes the next step; the caller knows that there is one.
func (l *Loop) step() {
	at := l.heap.items[0].at
	t := l.heap.popTop()
	if t.g.dead {
		return
	}
	if at > l.now || l.fresh && at == l.now {
		l.now = at
		l.instantSteps = 0
		l.fresh = false
	} else {
		l.fresh = false
		l.now++
		l.instantSteps++
		if l.instantSteps > maxStepsPerInstant {
			l.fail(fmt.Errorf("loop %s: %d steps at one instant, %s; the last was %s", l.name, l.instantSteps, l.Now().Format(time.RFC3339Nano), t.what()))
			return
		}
	}
	l.begin(t.stream, at)
	l.stepping = true
	if task, ok := t.do.(*Task); ok {
		task.fire()
	} else {
		l.callback(t)
	}
	for len(l.dying) > 0 {
		l.unwindDying()
	}
	if len(l.woken) > 0 {
		l.plan()
	}
	if l.elision == CheckEachStep {
		l.checkVersions(t)
	}
	l.stepping = false
}

// begin makes the loop's own records of a step; its clock has moved.
func (l *Loop) begin(stream uint64, at int64) {
	if l.fake != nil {
		l.fake.SetTime(l.Now())
	}
	l.steps++
	l.stream, l.streams = mix(stream^mix(uint64(at))), 0
}

// goesOn reports whether the next step of all is the waking of the task that runs,
// at a time that it sleeps until, and begins that step if so: a task that need not
// give way saves two changes of stacks.
func (l *Loop) goesOn(t *Task, at int64) bool {
	if at >= l.limit || l.err != nil || len(l.dying) > 0 || l.instantSteps >= maxStepsPerInstant || l.elision == CheckEachStep {
		return false
	}
	if len(l.woken) > 0 {
		l.plan()
	}
	l.seq++
	t.wake.seq = l.seq
	it := item{at: at, tie: l.tie(t.wake.stream, at), t: &t.wake}
	if len(l.heap.items) > 0 && !it.before(&l.heap.items[0]) {
		return false
	}
	if at > l.now {
		l.now, l.instantSteps = at, 0
	} else {
		l.now++
		l.instantSteps++
	}
	l.begin(t.wake.stream, at)
	return true
}

func (l *Loop) callback(t *Timer) {
	defer func() {
		if v := recover(); v != nil {
			l.panicked(newPanicError(t.what(), v))
		}
	}()
	do := t.do
	if t.pooled {
		t.do = nil
		l.pool.putMessage(t)
	}
	do.fire()
}

// panicked acts on a panic of a task or callback.
func (l *Loop) panicked(err *PanicError) {
	if l.onPanic != nil {
		l.onPanic(err)
		return
	}
	l.fail(err)
}

// fail records the first error; it ends the run.
func (l *Loop) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// Err returns what ended the loop's run early: a panic in a task or callback,
// or a livelock; else nil.
func (l *Loop) Err() error { return l.err }

// RunUntil takes every step that is due before limit, in virtual time, and
// returns the first panic of a task or callback as an error. The clock ends at
// limit or later.
func (l *Loop) RunUntil(limit time.Time) error {
	l.runUntil(limit.UnixNano())
	if l.err == nil {
		l.reach(limit.UnixNano())
	}
	return l.err
}

// reach moves the clock on to the end of a run.
func (l *Loop) reach(at int64) {
	l.stream, l.streams = uint64(at), 0
	if at > l.now {
		l.now, l.fresh = at, true
		if l.fake != nil {
			l.fake.SetTime(l.Now())
		}
	}
}

func (l *Loop) runUntil(limit int64) {
	defer l.left()
	l.limit = limit
	for len(l.dying) > 0 { // killed between runs
		l.unwindDying()
	}
	for l.err == nil && len(l.heap.items) > 0 && l.heap.items[0].at < limit {
		l.step()
	}
}

// Closed reports whether Close was called: groups that die from then on die with
// the run.
func (l *Loop) Closed() bool { return l.closed }

// Close kills every group, unwinds their tasks and frees the coroutines. A
// closed loop takes no further steps. It must not be called from a step.
func (l *Loop) Close() {
	if l.closed {
		return
	}
	l.closed = true
	for _, g := range slices.Backward(slices.Clone(l.groups)) {
		g.Kill()
	}
	for len(l.dying) > 0 {
		l.unwindDying()
	}
	if l.own != nil {
		l.own.close()
	}
	l.heap.items = nil
	if l.real != nil {
		l.real.mu.Lock()
		l.real.closed, l.real.inbox = true, nil
		l.real.mu.Unlock()
	}
}
