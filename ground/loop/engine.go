package loop

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// keptMessages is for how many messages an inbox or outbox always keeps room.
	keptMessages = 8
	// calmMessages is how often one in use is found to need less than a quarter of
	// its room before that is given back: it is used far less often than a heap.
	calmMessages = 32
)

// MinLookahead is the least lookahead that NewEngine takes.
const MinLookahead = time.Millisecond

// EngineOptions configure an Engine.
type EngineOptions struct {
	// Seed is given to every loop.
	Seed uint64
	// Typical and Elision are given to every loop, too.
	Typical bool
	Elision ElisionMode
	// Start is where every loop's clock starts. Zero means Epoch.
	Start time.Time
	// Lookahead is the least delay of a message between loops, and so the
	// length of a window. Zero means 5 ms; under MinLookahead is refused.
	Lookahead time.Duration
	// Workers is how many goroutines run loops. Zero means GOMAXPROCS. The
	// result never depends on it.
	Workers int
	// Watchdog is how long (wall clock) a body may run without giving way
	// before a line on Stderr names its loop. Zero means 20 s; negative means
	// never.
	Watchdog time.Duration
	// Stderr takes the watchdog's lines. Nil means os.Stderr.
	Stderr io.Writer
}

// Engine drives many loops in virtual time, in windows of one lookahead. Inside
// a window each loop that has something due runs alone, on any core; what loops
// send each other (Loop.Send) is handed over between windows, in the order of
// sender and sending. A loop with nothing due is not visited.
type Engine struct {
	opts       EngineOptions
	lookahead  int64
	loops      []*Loop
	calendar   calendar
	due        []int32
	marked     []int32 // of them, those that have been marked
	now        int64
	onWindow   []func(end time.Time, marked []int32)
	stop       atomic.Bool
	pool       *workers
	pools      []workerPool // by worker
	idle       pool         // of loops that act between runs
	windows    uint64
	progress   atomic.Uint64 // windows + 1, for the watchdog
	progressAt atomic.Int64
	err        error
}

// message is work that one loop hands to another.
type message struct {
	at     int64
	sent   int64
	to     *Loop
	stream uint64
	fn     func()
}

type workerPool struct {
	pool
	fetched uint64
	_       [128]byte // keeps two workers' off one cache line
}

// NewEngine returns an engine without loops.
func NewEngine(opts EngineOptions) (*Engine, error) {
	if opts.Lookahead == 0 {
		opts.Lookahead = 5 * time.Millisecond
	}
	if opts.Lookahead < MinLookahead {
		return nil, fmt.Errorf("loop: a lookahead of %v is under %v", opts.Lookahead, MinLookahead)
	}
	if opts.Start.IsZero() {
		opts.Start = epoch
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Watchdog == 0 {
		opts.Watchdog = 20 * time.Second
	}
	if opts.Stderr == nil {
		opts.Stderr = os.Stderr
	}
	e := &Engine{opts: opts, lookahead: int64(opts.Lookahead), now: opts.Start.UnixNano(), pools: make([]workerPool, opts.Workers)}
	e.calendar.base = e.now / e.lookahead
	return e, nil
}

// NewLoop adds a loop. Loops are added before the run, or between runs.
func (e *Engine) NewLoop(name string) *Loop {
	l := newLoop(Options{Name: name, Seed: e.opts.Seed, Typical: e.opts.Typical, Elision: e.opts.Elision, Start: time.Unix(0, e.now).UTC()}, &e.idle)
	l.engine = e
	l.index = len(e.loops)
	e.loops = append(e.loops, l)
	e.calendar.add(l)
	return l
}

// Lookahead returns the least delay of a message between loops.
func (e *Engine) Lookahead() time.Duration { return e.opts.Lookahead }

// Now returns the end of the last window, or the limit of the last run.
func (e *Engine) Now() time.Time { return time.Unix(0, e.now).UTC() }

// Windows returns how many windows were run.
func (e *Engine) Windows() uint64 { return e.windows }

// Steps returns how many steps all loops took.
func (e *Engine) Steps() uint64 {
	var n uint64
	for _, l := range e.loops {
		n += l.steps
	}
	return n
}

// OnWindow has fn called after each window, on the goroutine that runs the
// engine, while no loop runs. marked are the indices of the loops that ran in it
// and had Loop.Mark called, then or before; good until fn returns.
func (e *Engine) OnWindow(fn func(end time.Time, marked []int32)) {
	e.onWindow = append(e.onWindow, fn)
}

// Mark has the functions of Engine.OnWindow told of this loop, once, so that they
// need not look at each loop that ran. It is for use on the loop or while no loop
// runs.
func (l *Loop) Mark() { l.marked = true }

// Stop ends a run after its present window. It may be called from any
// goroutine.
func (e *Engine) Stop() { e.stop.Store(true) }

// Send has fn run on the loop to after delay, which is at least the engine's
// lookahead. What is sent in one stream for one instant runs in the order of
// sending. It is for use on the loop l.
func (l *Loop) Send(to *Loop, delay time.Duration, stream uint64, fn func()) {
	if l.engine == nil || to.engine != l.engine {
		panic("loop: Send between loops of different engines")
	}
	if int64(delay) < l.engine.lookahead {
		panic(fmt.Sprintf("loop %s: a message to %s after %v, under the lookahead of %v", l.name, to.name, delay, l.engine.opts.Lookahead))
	}
	l.outbox = append(l.outbox, message{at: l.now + int64(delay), sent: l.now, to: to, stream: stream, fn: fn})
}

// deliver schedules a message on the loop.
func (l *Loop) deliver(m *message) {
	if l.closed {
		return
	}
	t := l.pool.takeMessage()
	t.g = l.root
	t.do = callback(m.fn)
	t.stream = m.stream
	l.schedule(t, m.at)
	if l.seed == 0 { // by the time of sending, wherever runs are cut
		l.heap.items[t.idx].tie = uint64(m.sent)
		l.heap.fix(int(t.idx))
	}
}

// RunUntil runs windows until nothing is due before limit, or until a task
// panics, which it returns, or until Stop. Between runs the caller may act on
// the loops.
func (e *Engine) RunUntil(limit time.Time) error {
	end := limit.UnixNano()
	e.regain()
	defer func() {
		for i := range e.calendar.seats {
			e.calendar.seats[i].takeIn()
		}
	}()
	if e.opts.Workers > 1 && len(e.loops) > 2 {
		e.pool = startWorkers(e.opts.Workers - 1)
		defer func() {
			e.pool.close()
			e.pool = nil
		}()
	}
	dog := e.startWatchdog()
	defer dog()
	for e.err == nil && !e.stop.Load() {
		w := e.calendar.next()
		if w == none || w*e.lookahead >= end {
			break
		}
		e.window(w, end)
		if (w+1)*e.lookahead > end {
			break // the limit cut the window; what is left of it is not due
		}
	}
	if e.err == nil && !e.stop.Load() {
		e.now = max(e.now, end)
		for _, l := range e.loops {
			l.reach(end)
		}
	}
	return e.err
}

// NextDue returns when the first step of any loop is due, with what was sent and
// not yet taken in; false: nothing is. It is for use between runs.
func (e *Engine) NextDue() (at time.Time, ok bool) {
	e.regain()
	due := int64(math.MaxInt64)
	for _, l := range e.loops {
		due = min(due, l.next())
	}
	return time.Unix(0, due).UTC(), due != math.MaxInt64
}

// regain takes up what was done to the loops while none ran.
func (e *Engine) regain() {
	for _, l := range e.loops {
		for len(l.dying) > 0 { // killed between runs
			l.unwindDying()
		}
		e.flush(l)
	}
	for _, l := range e.loops {
		e.calendar.seats[l.index].takeIn()
		e.enter(l)
	}
}

// Stopped reports whether Stop was called.
func (e *Engine) Stopped() bool { return e.stop.Load() }

func (e *Engine) window(w, limit int64) {
	e.progressAt.Store(w * e.lookahead)
	end := min((w+1)*e.lookahead, limit)
	e.calendar.advance(w)
	e.due = e.calendar.take(w, e.due[:0])
	if len(e.due) == 0 {
		return
	}
	if e.pool != nil && len(e.due) >= minParallel {
		e.pool.run(e, end)
		if e.pool.lost.Load() {
			e.err = e.firstErr()
			return
		}
	} else {
		e.runLoops(e.due, end, 0)
	}
	e.marked = e.marked[:0]
	for _, idx := range e.due {
		s := &e.calendar.seats[idx]
		if s.marked {
			e.marked = append(e.marked, idx)
		}
		if s.sent {
			e.flush(s.loop)
		}
		if s.failed && e.err == nil {
			e.err = s.loop.err
		}
	}
	for _, idx := range e.due {
		// A message handed over just now may have put it in for earlier.
		if at := e.calendar.seats[idx].due; at != math.MaxInt64 {
			e.enterEarlier(idx, at)
		}
	}
	e.now = max(e.now, end)
	e.windows++
	e.progress.Store(e.windows)
	for _, fn := range e.onWindow {
		fn(time.Unix(0, end).UTC(), e.marked)
	}
}

// firstErr returns the error of the first due loop that has one.
func (e *Engine) firstErr() error {
	for _, idx := range e.due {
		if err := e.loops[idx].err; err != nil {
			return err
		}
	}
	return errors.New("loop: a worker is gone")
}

// ahead is for how many loops memory is fetched at a time.
const ahead = 8

// runLoops runs some of the loops that are due, one after another.
func (e *Engine) runLoops(due []int32, end int64, worker int) {
	for i, idx := range due {
		if i%ahead == 0 {
			e.fetch(due[i:min(i+ahead, len(due))], worker)
		}
		e.runLoop(idx, end, worker)
	}
}

// fetch reads what the next steps of some loops begin with. Of thousands of loops
// nothing is in the cache, each pointer to follow waits for memory, and here the
// processor follows those of several loops at a time.
func (e *Engine) fetch(due []int32, worker int) {
	var sum uint64
	for _, idx := range due {
		s := &e.calendar.seats[idx]
		if items := s.loop.heap.items; len(items) > 0 {
			sum += items[0].t.stream + items[len(items)-1].tie
		}
		if len(s.inbox) > 0 {
			sum += s.inbox[0].stream
		}
	}
	e.pools[worker].fetched = sum // so that it isn't left out
}

// runLoop runs one loop to the end of the window on a worker; 0 is the engine's
// own goroutine.
func (e *Engine) runLoop(idx int32, end int64, worker int) {
	s := &e.calendar.seats[idx]
	l := s.loop
	l.pool = &e.pools[worker].pool
	s.takeIn()
	l.runUntil(end)
	l.pool = &e.idle
	s.due, s.sent, s.failed, s.marked = l.next(), len(l.outbox) > 0, l.err != nil, l.marked
	l.marked = false
}

// flush hands over what l has sent. Those who get it take it in on their own
// worker: here it would cost a visit of each, one after another.
func (e *Engine) flush(l *Loop) {
	if len(l.outbox) == 0 {
		return
	}
	for i := range l.outbox {
		m := &l.outbox[i]
		idx := int32(m.to.index)
		s := &e.calendar.seats[idx]
		s.inbox = append(s.inbox, *m)
		e.enterEarlier(idx, m.at)
		*m = message{}
	}
	l.outbox = emptied(l.outbox, &l.calm)
}

// emptied returns the list without its messages, and without its room if that
// has been by far too much for a while: a burst must not cost memory for ever.
func emptied(list []message, calm *uint8) []message {
	if cap(list) <= keptMessages || len(list) >= cap(list)/4 {
		*calm = 0
		return list[:0]
	}
	if *calm++; *calm < calmMessages {
		return list[:0]
	}
	*calm = 0
	return nil
}

// takeIn schedules what a loop was sent.
func (s *seat) takeIn() {
	if len(s.inbox) == 0 {
		return
	}
	for i := range s.inbox {
		s.loop.deliver(&s.inbox[i])
		s.inbox[i] = message{}
	}
	s.inbox = emptied(s.inbox, &s.calm)
}

// enter puts a loop into the calendar, or moves it to its present place.
func (e *Engine) enter(l *Loop) {
	at := l.next()
	if at == math.MaxInt64 {
		e.calendar.enter(int32(l.index), none)
		return
	}
	e.calendar.enter(int32(l.index), max(at/e.lookahead, e.calendar.base))
}

// enterEarlier puts a loop into the calendar unless it is there for an earlier
// window.
func (e *Engine) enterEarlier(idx int32, at int64) {
	if w := max(at/e.lookahead, e.calendar.base); w < e.calendar.seats[idx].w {
		e.calendar.enter(idx, w)
	}
}

// Close closes every loop. No run may be in progress.
func (e *Engine) Close() {
	for _, l := range e.loops {
		l.Close()
	}
	for i := range e.pools {
		e.pools[i].close()
	}
	e.idle.close()
}
