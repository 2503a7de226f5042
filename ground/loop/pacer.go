package loop

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// PacerOptions configure a Pacer.
type PacerOptions struct {
	// Speed is how many times as fast as the wall clock the engine's time runs. 0
	// means 1.
	Speed float64
	// Since is when it was the engine's time by the wall clock. The zero time is now;
	// from an earlier one the engine first catches up.
	Since time.Time
	// Paused has the time stand still until Step or Resume.
	Paused bool
	// Next, if set, returns when Due is to be called next, with all clocks at that
	// time and no loop running; the zero time is never. An error of Due ends the run.
	Next func() time.Time
	Due  func() error
}

// Pacer has an engine's time follow the wall clock, and lets other goroutines at its
// loops in between. Time moves on in whole windows: what is done in between happens at
// the end of the last window that is over, at once.
//
// All methods but Run may be called from any goroutine. One goroutine at a time has the
// loops: Run's for a window, or a caller's for as long as its function takes.
type Pacer struct {
	e    *Engine
	opts PacerOptions
	// wake has Run look again for what is due.
	wake chan struct{}

	mu     sync.Mutex // whoever holds it has the loops, and all below
	closed bool
	// wall and at are a time of the wall clock and the engine's at that moment. While
	// the time stands still, at is where it does.
	wall   time.Time
	at     int64
	paused bool
	until  int64 // the window or time that Run sleeps for
	lost   time.Duration
	// steps are closed when nothing is left to be done before at.
	steps []chan struct{}
}

// ErrClosed is returned for loops whose run has ended.
var ErrClosed = errors.New("loop: the run has ended")

// maxBehind is by how much of the wall clock's time an engine that is too slow may be
// behind. Then its time is counted from where it is, lest it run after the wall clock
// for ever.
const maxBehind = 2 * time.Second

// NewPacer returns the pacer of an engine, which nothing else may run from then on. The
// engine's time begins to follow the wall clock at once.
func (e *Engine) NewPacer(opts PacerOptions) *Pacer {
	if !(opts.Speed > 0) {
		opts.Speed = 1
	}
	if opts.Since.IsZero() {
		opts.Since = time.Now()
	}
	e.regain()
	return &Pacer{e: e, opts: opts, wake: make(chan struct{}, 1), wall: opts.Since, at: e.now, paused: opts.Paused}
}

// Run runs the engine until ctx ends (it then returns nil), a task panics, or Due fails.
// It is called once.
func (p *Pacer) Run(ctx context.Context) error {
	e := p.e
	p.mu.Lock()
	e.regain()
	if e.opts.Workers > 1 && len(e.loops) > 2 {
		e.pool = startWorkers(e.opts.Workers - 1)
	}
	p.mu.Unlock()
	defer p.end()
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait, err := p.turn()
		if err != nil {
			return err
		}
		if wait == 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.e.err
}

// end shuts the loops after Run.
func (p *Pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.stepped()
	if p.e.pool != nil {
		p.e.pool.close()
		p.e.pool = nil
	}
	for i, l := range p.e.loops {
		p.e.calendar.seats[i].takeIn()
		l.reach(p.e.now)
	}
}

// turn runs one window, if one is over, or what Due has to do. It returns how long to
// wait before the next turn.
func (p *Pacer) turn() (wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.e.err != nil { // of a function from outside
		return 0, p.e.err
	}
	e, limit, due := p.e, p.target(), p.due()
	limit = min(limit, due)
	if w := e.calendar.next(); w < math.MaxInt64/e.lookahead && w*e.lookahead < limit {
		e.window(w, limit)
		if e.err != nil {
			return 0, e.err
		}
		if (w+1)*e.lookahead <= limit {
			p.keepUp()
			return 0, nil
		}
	}
	e.now = max(e.now, limit)
	if due <= e.now {
		var err error
		p.between(func() { err = p.opts.Due() })
		return 0, errors.Join(err, e.err)
	}
	if p.paused {
		p.stepped()
		p.until = math.MaxInt64
		return math.MaxInt64, nil
	}
	p.until = p.next(due)
	return p.outside(p.until), nil
}

// next is when there is something to do: at the end of the next window in which
// something is due, or at what Due does.
func (p *Pacer) next(due int64) int64 {
	if w := p.e.calendar.next(); w < math.MaxInt64/p.e.lookahead-1 {
		return min(due, (w+1)*p.e.lookahead)
	}
	return due
}

// due is when Due is to be called.
func (p *Pacer) due() int64 {
	if p.opts.Next == nil {
		return math.MaxInt64
	}
	at := p.opts.Next()
	if at.IsZero() {
		return math.MaxInt64
	}
	return at.UnixNano()
}

// clock is where the engine's time should be.
func (p *Pacer) clock() int64 {
	if p.paused {
		return p.at
	}
	return p.at + int64(float64(time.Since(p.wall))*p.opts.Speed)
}

// target is clock, cut to whole windows.
func (p *Pacer) target() int64 { return max(p.clock()/p.e.lookahead*p.e.lookahead, p.e.now) }

// outside is how long the engine's time takes to get to at, on the wall clock; at least
// a nanosecond.
func (p *Pacer) outside(at int64) time.Duration {
	d := math.Ceil(float64(at-p.clock()) / p.opts.Speed)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(time.Duration(d), 1)
}

// keepUp gives up on time that the engine is behind by too much.
func (p *Pacer) keepUp() {
	if p.paused {
		return
	}
	behind := time.Duration(float64(p.clock()-p.e.now) / p.opts.Speed)
	if behind > maxBehind {
		p.wall, p.at, p.lost = time.Now(), p.e.now, p.lost+behind
	}
}

// moveOn brings the time up to date if nothing is to be done before.
func (p *Pacer) moveOn() {
	at := p.target()
	if w := p.e.calendar.next(); (w >= math.MaxInt64/p.e.lookahead || w*p.e.lookahead >= at) && p.due() > at {
		p.e.now = at
	}
}

// On has fn run on a loop, as a step of its own, between two windows.
func (p *Pacer) On(l *Loop, fn func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.e.err != nil {
		return ErrClosed
	}
	p.moveOn()
	l.now = max(l.now+1, p.e.now)
	l.instantSteps = 0
	l.begin(0, l.now)
	t := Timer{g: l.root, do: callback(fn), name: "from outside"}
	l.callback(&t)
	for len(l.dying) > 0 {
		l.unwindDying()
	}
	if l.err != nil {
		p.e.err = l.err
		p.nudge()
		return ErrClosed
	}
	p.e.flush(l)
	if at := l.next(); at != math.MaxInt64 {
		p.e.enterEarlier(int32(l.index), at)
	}
	if !p.paused && p.next(math.MaxInt64) < p.until {
		p.nudge()
	}
	return nil
}

// Between has fn run between two windows, when all clocks show one time; it may act on
// every loop, as between runs of the engine.
func (p *Pacer) Between(fn func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.e.err != nil {
		return ErrClosed
	}
	p.moveOn()
	p.between(fn)
	p.nudge()
	if p.e.err != nil {
		return ErrClosed
	}
	return nil
}

func (p *Pacer) between(fn func()) {
	for i, l := range p.e.loops {
		p.e.calendar.seats[i].takeIn()
		l.reach(p.e.now)
	}
	defer func() {
		if v := recover(); v != nil {
			p.e.err = newPanicError("what was done between windows", v)
			return
		}
		p.e.regain()
	}()
	fn()
}

// nudge has Run look again.
func (p *Pacer) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// stepped tells those who wait that all was done.
func (p *Pacer) stepped() {
	for _, done := range p.steps {
		close(done)
	}
	p.steps = nil
}

// Pause has the time stand still.
func (p *Pacer) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused {
		p.at, p.paused = p.target(), true
	}
}

// Resume has the time go on.
func (p *Pacer) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.wall, p.paused = time.Now(), false
		p.nudge()
	}
}

// Step pauses, and has the time go on by d, as fast as the machine can. It returns when
// that is done, or with the context's error.
func (p *Pacer) Step(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	if !p.paused {
		p.at, p.paused = p.target(), true
	}
	p.at += int64(d)
	done := make(chan struct{})
	p.steps = append(p.steps, done)
	p.nudge()
	p.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	return nil
}

// Pace is where a paced engine stands.
type Pace struct {
	Now    time.Time
	Speed  float64
	Paused bool
	// Lost is how much of the wall clock's time the engine was too slow for.
	Lost time.Duration
}

// Pace returns where the engine stands.
func (p *Pacer) Pace() Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Pace{Now: time.Unix(0, p.target()).UTC(), Speed: p.opts.Speed, Paused: p.paused, Lost: p.lost}
}
