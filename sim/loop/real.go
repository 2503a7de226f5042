package loop

import (
	"context"
	"math"
	"sync"
	"time"
)

// realState is what a loop on the wall clock has besides.
type realState struct {
	base time.Time
	wake chan struct{}

	mu     sync.Mutex
	inbox  []func()
	closed bool
}

// NewReal returns a loop for RunReal: its clock is the wall clock.
func NewReal(opts Options) *Loop {
	now := time.Now()
	opts.Start = now.UTC()
	l := New(opts)
	l.real = &realState{base: now, wake: make(chan struct{}, 1)}
	return l
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
	now := l.real.base.UnixNano() + int64(time.Since(l.real.base))
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
			d = time.Duration(l.heap.items[0].at - l.now)
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
		t := Timer{g: l.root, fn: fn, name: "posted"}
		l.callback(&t)
		for len(l.dying) > 0 {
			l.unwindDying()
		}
	}
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
			gctx, done = context.WithTimeout(gctx, time.Duration(at.UnixNano()-l.now))
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
