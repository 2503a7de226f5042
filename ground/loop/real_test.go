package loop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// runReal runs a real loop until the function returned is called.
func runReal(t *testing.T, opts Options) (*Loop, func() error) {
	t.Helper()
	l := NewReal(opts)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := l.RunReal(ctx)
		l.Close()
		ended <- err
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return l, stop
}

// onLoop runs a task and waits for it.
func onLoop(l *Loop, fn func(ctx context.Context)) {
	done := make(chan struct{})
	l.Post(func() {
		l.Root().Go("test", func(ctx context.Context) {
			defer close(done)
			fn(ctx)
		})
	})
	<-done
}

func TestSpeed(t *testing.T) {
	l, _ := runReal(t, Options{Name: "fast", Speed: 1000})
	began := time.Now()
	var from, to, wall int64
	onLoop(l, func(ctx context.Context) {
		from = l.UnixNano()
		_ = l.Sleep(ctx, 100*time.Second)
		to = l.UnixNano()
		wall = l.Wall(to)
	})
	took := time.Since(began)
	if took < 99*time.Millisecond || took > 20*time.Second {
		t.Errorf("100s at speed 1000 took %v", took)
	}
	if d := time.Duration(to - from); d < 100*time.Second {
		t.Errorf("the loop's clock moved by %v", d)
	}
	if at := time.Unix(0, wall); at.Before(began.Add(99*time.Millisecond)) || at.After(began.Add(took+time.Second)) {
		t.Errorf("the loop's time is %v on the wall clock; it is between %v and %v", at, began, began.Add(took))
	}
	if l.Speed() != 1000 || New(Options{}).Speed() != 1 {
		t.Error("Speed")
	}
	if v := New(Options{Speed: 5}); v.Wall(12345) != 12345 {
		t.Error("a virtual loop maps times")
	}
}

// The deadline of a call that leaves a fast loop is on the wall clock.
func TestAwaitAtSpeed(t *testing.T) {
	l, _ := runReal(t, Options{Name: "fast", Speed: 100})
	var left time.Duration
	onLoop(l, func(ctx context.Context) {
		ctx, cancel := WithTimeout(ctx, 1000*time.Second)
		defer cancel()
		_, _ = Await(ctx, func(ctx context.Context) (int, error) {
			at, _ := ctx.Deadline()
			left = time.Until(at)
			return 0, nil
		})
	})
	if left <= 0 || left > 10*time.Second {
		t.Errorf("1000s of a loop at speed 100 are %v outside, want 10s at most", left)
	}
}

// A context that something outside ends has the error that it is given.
func TestWithEnd(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		l, _ := runReal(t, Options{})
		ends := make(chan func(error), 1)
		var err error
		go func() {
			end := <-ends
			l.Post(func() { end(want) })
		}()
		onLoop(l, func(ctx context.Context) {
			ctx, end := WithEnd(ctx)
			ends <- end
			err = l.Sleep(ctx, time.Hour)
		})
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// With OnPanic the loop goes on after a panic of a task or callback.
func TestOnPanic(t *testing.T) {
	var got []string
	l, stop := runReal(t, Options{OnPanic: func(err *PanicError) { got = append(got, err.Error()) }})
	l.Post(func() { panic("one") })
	l.Post(func() { l.Root().Go("second", func(context.Context) { panic("two") }) })
	onLoop(l, func(ctx context.Context) { _ = l.Sleep(ctx, time.Millisecond) })
	if err := stop(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
	if len(got) != 2 || got[0] != "callback posted panicked: one" || got[1] != "task second panicked: two" {
		t.Errorf("panics: %q", got)
	}
}
