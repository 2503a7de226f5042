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

// keptMessages is for how many messages an inbox or outbox always keeps room.
const keptMessages = 8

// MinLookahead is the least lookahead that NewEngine takes.
const MinLookahead = time.Millisecond

// EngineOptions configure an Engine.
type EngineOptions struct {
	// Seed is given to every loop.
	Seed uint64
	// Typical is given to every loop, too.
	Typical bool
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
	after      []after     // by loop
	inbox      [][]message // by loop: what it takes in when it runs next
	now        int64
	onWindow   []func(end time.Time, ran []int32)
	stop       atomic.Bool
	pool       *workers
	coros      []workerCoros // by worker
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

type workerCoros struct {
	coros
	_ [80]byte // keeps two workers' off one cache line
}

// after is what the engine needs to know of a loop that has run, put side by
// side so that it need not touch the loop's own memory, which another core's
// cache holds.
type after struct {
	next int64 // when the next step is due
	sent bool  // the outbox holds something
	err  bool
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
	e := &Engine{opts: opts, lookahead: int64(opts.Lookahead), now: opts.Start.UnixNano(), coros: make([]workerCoros, opts.Workers)}
	e.calendar.base = e.now / e.lookahead
	return e, nil
}

// NewLoop adds a loop. Loops are added before the run, or between runs.
func (e *Engine) NewLoop(name string) *Loop {
	l := New(Options{Name: name, Seed: e.opts.Seed, Typical: e.opts.Typical, Start: time.Unix(0, e.now).UTC()})
	l.engine = e
	l.index = len(e.loops)
	e.loops = append(e.loops, l)
	e.calendar.add()
	e.after = append(e.after, after{})
	e.inbox = append(e.inbox, nil)
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
// engine, while no loop runs. ran are the indices of the loops that ran in it,
// good until fn returns.
func (e *Engine) OnWindow(fn func(end time.Time, ran []int32)) { e.onWindow = append(e.onWindow, fn) }

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
	t.fn = m.fn
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
	for _, l := range e.loops {
		for len(l.dying) > 0 { // killed between runs
			l.unwindDying()
		}
		e.flush(l)
	}
	for _, l := range e.loops {
		e.takeIn(l)
		e.enter(l)
	}
	defer func() {
		for _, l := range e.loops {
			e.takeIn(l)
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

// Stopped tells whether Stop was called.
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
		for _, idx := range e.due {
			e.runLoop(idx, end, 0)
		}
	}
	for _, idx := range e.due {
		a := &e.after[idx]
		if a.sent {
			e.flush(e.loops[idx])
		}
		if a.err && e.err == nil {
			e.err = e.loops[idx].err
		}
	}
	for _, idx := range e.due {
		// A message handed over just now may have put it in for earlier.
		if at := e.after[idx].next; at != math.MaxInt64 {
			e.enterEarlier(idx, at)
		}
	}
	e.now = max(e.now, end)
	e.windows++
	e.progress.Store(e.windows)
	for _, fn := range e.onWindow {
		fn(time.Unix(0, end).UTC(), e.due)
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

// runLoop runs one loop to the end of the window on a worker; 0 is the engine's
// own goroutine.
func (e *Engine) runLoop(idx int32, end int64, worker int) {
	l := e.loops[idx]
	l.pool = &e.coros[worker].coros
	e.takeIn(l)
	l.runUntil(end)
	l.pool = &l.own
	e.after[idx] = after{next: l.next(), sent: len(l.outbox) > 0, err: l.err != nil}
}

// flush hands over what l has sent. Those who get it take it in on their own
// worker: here it would cost a visit of each, one after another.
func (e *Engine) flush(l *Loop) {
	for i := range l.outbox {
		m := &l.outbox[i]
		idx := int32(m.to.index)
		e.inbox[idx] = append(e.inbox[idx], *m)
		e.enterEarlier(idx, m.at)
		*m = message{}
	}
	l.outbox = emptied(l.outbox)
}

// emptied returns the list without its messages, and without its room if that
// was by far too much: a burst must not cost memory for ever.
func emptied(list []message) []message {
	if cap(list) > keptMessages && len(list) < cap(list)/4 {
		return nil
	}
	return list[:0]
}

// takeIn schedules what a loop was sent.
func (e *Engine) takeIn(l *Loop) {
	in := e.inbox[l.index]
	if len(in) == 0 {
		return
	}
	for i := range in {
		l.deliver(&in[i])
		in[i] = message{}
	}
	e.inbox[l.index] = emptied(in)
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
	if w := max(at/e.lookahead, e.calendar.base); w < e.calendar.slot[idx] {
		e.calendar.enter(idx, w)
	}
}

// Close closes every loop. No run may be in progress.
func (e *Engine) Close() {
	for _, l := range e.loops {
		l.Close()
	}
	for i := range e.coros {
		e.coros[i].close()
	}
}
