package loop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// paced runs an engine of two loops; the function returned ends it.
func paced(t *testing.T, opts PacerOptions, with func(a, b *Loop)) (a *Loop, p *Pacer, stop func() error) {
	t.Helper()
	e, err := NewEngine(EngineOptions{Seed: 1, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	a, b := e.NewLoop("a"), e.NewLoop("b")
	with(a, b)
	p = e.NewPacer(opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := p.Run(ctx)
		e.Close()
		ended <- err
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return a, p, stop
}

func TestPacerFollowsTheWallClock(t *testing.T) {
	var rounds int
	a, p, stop := paced(t, PacerOptions{Speed: 1000}, func(a, b *Loop) {
		var there, back func()
		there = func() { a.Send(b, 5*time.Millisecond, 0, back) }
		back = func() { b.Send(a, 5*time.Millisecond, 0, func() { rounds++; there() }) }
		a.Root().After(0, there)
	})
	from, began := p.Pace().Now, time.Now()
	time.Sleep(50 * time.Millisecond)
	var got int
	var now time.Time
	if err := p.On(a, func() { got, now = rounds, a.Now() }); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	// A loaded machine may be behind by maxBehind at most, and by the time of a turn.
	if d := now.Sub(from); d < time.Second || d > 1000*took+time.Second {
		t.Errorf("%v passed in %v", d, took)
	}
	if want := int(now.Sub(Epoch()) / (10 * time.Millisecond)); got < want-2 || got > want+2 {
		t.Errorf("%d rounds in %v, want about %d", got, now.Sub(Epoch()), want)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := p.On(a, func() {}); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestPacerWakes has something to do come in while nothing is due.
func TestPacerWakes(t *testing.T) {
	a, p, _ := paced(t, PacerOptions{}, func(_, _ *Loop) {})
	time.Sleep(5 * time.Millisecond)
	done := make(chan struct{})
	if err := p.On(a, func() { a.Root().After(time.Millisecond, func() { close(done) }) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("a timer that was set from outside never fired")
	}
}

func TestPacerPauses(t *testing.T) {
	var ticks int
	a, p, _ := paced(t, PacerOptions{Paused: true}, func(a, _ *Loop) {
		var tick func()
		tick = func() { ticks++; a.Root().After(time.Second, tick) }
		a.Root().After(time.Second/2, tick)
	})
	read := func() (n int, at time.Duration) {
		t.Helper()
		if err := p.On(a, func() { n, at = ticks, a.Now().Sub(Epoch()).Truncate(time.Millisecond) }); err != nil {
			t.Fatal(err)
		}
		return n, at
	}
	for i, want := range []struct {
		step  time.Duration
		ticks int
		at    time.Duration
	}{{0, 0, 0}, {10 * time.Second, 10, 10 * time.Second}, {time.Hour, 3610, time.Hour + 10*time.Second}} {
		if want.step > 0 {
			if err := p.Step(t.Context(), want.step); err != nil {
				t.Fatal(err)
			}
		}
		if n, at := read(); n != want.ticks || at != want.at {
			t.Errorf("%d: %d ticks at %v, want %d at %v", i, n, at, want.ticks, want.at)
		}
	}
	p.Resume()
	time.Sleep(20 * time.Millisecond)
	p.Pause()
	_, at := read()
	if at <= time.Hour+10*time.Second {
		t.Errorf("the time does not go on: %v", at)
	}
	time.Sleep(20 * time.Millisecond)
	if _, again := read(); again != at {
		t.Errorf("the time goes on from %v to %v", at, again)
	}
}

func TestPacerAgenda(t *testing.T) {
	var seen []time.Duration
	var a, b *Loop
	due := []time.Duration{0, 7 * time.Millisecond, 3 * time.Second}
	_, p, stop := paced(t, PacerOptions{
		Paused: true,
		Next: func() time.Time {
			if len(due) == 0 {
				return time.Time{}
			}
			return Epoch().Add(due[0])
		},
		Due: func() error {
			if len(seen) == 2 {
				return errors.New("no more")
			}
			if b.Now() != a.Now() {
				t.Errorf("clocks show %v and %v", a.Now(), b.Now())
			}
			due, seen = due[1:], append(seen, a.Now().Sub(Epoch()))
			return nil
		},
	}, func(x, y *Loop) { a, b = x, y })
	if err := p.Step(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := p.Between(func() {
		if len(seen) != 2 || seen[0] != 0 || seen[1] != 7*time.Millisecond || a.Now() != b.Now() {
			t.Errorf("seen %v", seen)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.Step(t.Context(), time.Minute); !errors.Is(err, ErrClosed) {
		t.Errorf("a step that fails: %v", err)
	}
	if err := stop(); err == nil || err.Error() != "no more" {
		t.Errorf("the run's error: %v", err)
	}
}

func TestPacerPanic(t *testing.T) {
	a, p, stop := paced(t, PacerOptions{}, func(_, _ *Loop) {})
	if err := p.On(a, func() { panic("oh") }); !errors.Is(err, ErrClosed) {
		t.Errorf("a panic: %v", err)
	}
	if err := stop(); err == nil {
		t.Error("the run has no error")
	}
}

func BenchmarkPacerOn(b *testing.B) {
	e, err := NewEngine(EngineOptions{Workers: 2})
	if err != nil {
		b.Fatal(err)
	}
	l := e.NewLoop("a")
	p := e.NewPacer(PacerOptions{})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for b.Loop() {
		if err := p.On(l, func() {}); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-ended
	e.Close()
}
