package loop

import (
	"context"
	"math"
	"sync"
	"time"
)

// realState is what a loop on the wall clock has besides.
type realState struct {
	base  time.Time
	speed float64
	wake  chan struct{}

	mu     sync.Mutex
	inbox  []func()
	closed bool
}

// NewReal returns a loop for RunReal: its clock is the wall clock, or starts
// there and runs Options.Speed times as fast.
func NewReal(opts Options) *Loop {
	now := time.Now()
	opts.Start = now.UTC()
	l := New(opts)
	l.real = &realState{base: now, speed: opts.Speed, wake: make(chan struct{}, 1)}
	if !(opts.Speed > 0) {
		l.real.speed = 1
	}
	return l
}

// Speed is how many times as fast as the wall clock the loop's clock runs: 1
// unless Options.Speed says otherwise, and on virtual clocks.
func (l *Loop) Speed() float64 {
	if l.real == nil {
		return 1
	}
	return l.real.speed
}

// Wall maps a time of the loop's clock to the wall clock, both in nanoseconds
// since the Unix epoch. Times before the loop's start stay, and so do all times
// of a loop that runs at the wall clock's pace or on a virtual clock.
func (l *Loop) Wall(t int64) int64 {
	if l.real == nil || l.real.speed == 1 {
		return t
	}
	base := l.real.base.UnixNano()
	if t <= base {
		return t
	}
	return base + int64(float64(t-base)/l.real.speed)
}

// outside is how long d of the loop's clock takes on the wall clock, rounded up.
func (r *realState) outside(d int64) time.Duration {
	if r.speed == 1 {
		return time.Duration(d)
	}
	f := math.Ceil(float64(d) / r.speed)
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(f)
}

// inside is how far the loop's clock gets in d of the wall clock.
func (r *realState) inside(d time.Duration) int64 {
	if r.speed == 1 {
		return int64(d)
	}
	return int64(float64(d) * r.speed)
}

// Post has fn run on the loop soon. It may be called from any goroutine; after
// the loop is closed it does nothing. Only loops of NewReal have it.
func (l *Loop) Post(fn func()) {
	r := l.real
	r.mu.Lock()
	if !r.closed {
		r.inbox = append(r.inbox, fn)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// wall moves the loop's clock to the wall clock's time; it never goes back.
func (l *Loop) wall() {
	now := l.real.base.UnixNano() + l.real.inside(time.Since(l.real.base))
	l.now = max(l.now+1, now)
	l.instantSteps = 0
}

// RunReal runs the loop on the wall clock until ctx ends (it then returns nil)
// or a task panics. The caller closes the loop afterwards.
func (l *Loop) RunReal(ctx context.Context) error {
	defer l.left()
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for l.err == nil {
		l.drain()
		l.wall()
		for l.err == nil && len(l.heap.items) > 0 && l.heap.items[0].at <= l.now {
			l.step()
			l.drain()
			l.wall()
		}
		if l.err != nil || ctx.Err() != nil {
			break
		}
		d := time.Duration(math.MaxInt64)
		if len(l.heap.items) > 0 {
			d = l.real.outside(l.heap.items[0].at - l.now)
		}
		timer.Reset(d)
		select {
		case <-ctx.Done():
		case <-l.real.wake:
		case <-timer.C:
		}
	}
	return l.err
}

// drain runs what was posted.
func (l *Loop) drain() {
	r := l.real
	r.mu.Lock()
	fns := r.inbox
	r.inbox = nil
	r.mu.Unlock()
	for _, fn := range fns {
		if l.err != nil {
			return
		}
		l.wall()
		t := Timer{g: l.root, do: callback(fn), name: "posted"}
		l.callback(&t)
		for len(l.dying) > 0 {
			l.unwindDying()
		}
	}
}

// WithEnd is WithCancel for a context that something outside the loop ends,
// with the error that its Err is to return: context.Canceled or
// context.DeadlineExceeded. Like WithCancel's, the function is for use on the
// loop.
func WithEnd(parent context.Context) (context.Context, func(err error)) {
	c := &Context{}
	c.descend(parent)
	return c, c.cancel
}

// awaitReal runs fn on a goroutine. Its context is a plain one, with the
// caller's deadline, that is cancelled when the caller's ends or unwinds.
func awaitReal[T any](ctx context.Context, l *Loop, fn func(ctx context.Context) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	gctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c := own(ctx); c != nil {
		if at, ok := ctx.Deadline(); ok {
			var done context.CancelFunc
			gctx, done = context.WithTimeout(gctx, l.real.outside(at.UnixNano()-l.now))
			defer done()
		}
		defer c.AfterFunc(cancel)()
	}
	var (
		e   Event
		v   T
		err error
		pan *PanicError
	)
	go func() {
		var (
			gv   T
			gerr error
			gp   *PanicError
		)
		func() {
			defer func() {
				if p := recover(); p != nil {
					gp = newPanicError("an awaited call", p)
				}
			}()
			gv, gerr = fn(gctx)
		}()
		l.Post(func() {
			v, err, pan = gv, gerr, gp
			e.Fire()
		})
	}()
	for !e.fired {
		t := l.current
		if t == nil {
			panic(errPark)
		}
		e.w.add(t)
		werr := func() error {
			defer e.w.remove(t)
			return l.wait(ctx, WaitOutside, "a call that leaves the loop")
		}()
		if werr != nil {
			return zero, werr
		}
	}
	if pan != nil {
		panic(pan)
	}
	return v, err
}
