package loop

import (
	"context"
	"testing"
	"time"
)

// Two consumers; the one that is woken is cancelled at the same instant.
func TestLostWakeCancelled(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	q := NewQueue[int](0)
	got := ""
	var cancel context.CancelFunc
	l.Root().Go("a", func(ctx context.Context) {
		ctx, cancel = WithCancel(ctx)
		if _, err := q.Get(ctx); err == nil {
			got += "a"
		}
	})
	l.Root().Go("b", func(ctx context.Context) {
		if _, err := q.Get(ctx); err == nil {
			got += "b"
		}
	})
	l.Root().After(time.Second, func() { q.TryPut(1); cancel() })
	_ = l.RunUntil(Epoch().Add(time.Minute))
	if got != "b" {
		t.Fatalf("got %q, the queue still holds %d", got, q.Len())
	}
}

// The first consumer's group is killed in the step that puts.
func TestLostWakeKilled(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	var s Signal
	got := ""
	g := l.NewGroup("g")
	g.Go("a", func(ctx context.Context) {
		if s.Wait(ctx) == nil {
			got += "a"
		}
	})
	l.Root().Go("b", func(ctx context.Context) {
		if s.Wait(ctx) == nil {
			got += "b"
		}
	})
	l.Root().After(time.Second, func() { s.Notify(); g.Kill() })
	_ = l.RunUntil(Epoch().Add(time.Minute))
	if got != "b" {
		t.Fatalf("got %q", got)
	}
}

// One waits for two queues, another for the second: both get an item at once.
func TestLostWakeAny(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	q1, q2 := NewQueue[int](0), NewQueue[int](0)
	got := ""
	l.Root().Go("a", func(ctx context.Context) {
		i, _ := WaitAny(ctx, q1, q2)
		got += string(rune('1' + i))
		_ = l.Sleep(ctx, time.Hour)
	})
	l.Root().Go("b", func(ctx context.Context) {
		if _, err := q2.Get(ctx); err == nil {
			got += "b"
		}
	})
	l.Root().After(time.Second, func() { q1.TryPut(1); q2.TryPut(2) })
	_ = l.RunUntil(Epoch().Add(time.Minute))
	if got != "1b" {
		t.Fatalf("got %q", got)
	}
}

// A new group made by OnKill during Close.
func TestCloseNewGroup(t *testing.T) {
	l := New(Options{})
	for range 4 {
		l.NewGroup("x").Kill()
	}
	l.NewGroup("b").OnKill(func() {
		if !l.NewGroup("again").Dead() {
			t.Error("a group that lives")
		}
	})
	l.Close()
}

// The passive clock between runs.
func TestClockBetweenRuns(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	c := l.Clock()
	_ = l.RunUntil(Epoch().Add(time.Minute))
	if !c.Now().Equal(l.Now()) {
		t.Fatalf("the clock shows %v, the loop %v", c.Now(), l.Now())
	}
}

// Another task must not change the order of the others.
func TestStreamsShift(t *testing.T) {
	order := func(extra int) string {
		l := New(Options{Seed: 7})
		defer l.Close()
		for range extra {
			l.Root().Go("extra", func(context.Context) {})
		}
		_ = l.RunUntil(Epoch().Add(time.Second))
		out := ""
		for _, n := range []string{"a", "b", "c", "d", "e"} {
			l.Root().NewTimer(n, func() { out += n }).Reset(time.Second)
		}
		_ = l.RunUntil(Epoch().Add(time.Minute))
		return out
	}
	if a, b := order(0), order(1); a != b {
		t.Fatalf("%s without, %s with another task before", a, b)
	}
}

// A killed group's timers keep what they hold, and the loop busy.
func TestDeadTimers(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	for range 100 {
		g := l.NewGroup("kubelet")
		g.After(24*time.Hour, func() {})
		g.Kill()
		_ = l.RunUntil(l.Now().Add(time.Second))
	}
	if n := l.heap.len(); n != 0 {
		t.Fatalf("%d timers of dead groups are still in the heap", n)
	}
}

// OnKill of a dead group.
func TestOnKillDead(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	g := l.NewGroup("g")
	g.Kill()
	called := false
	g.OnKill(func() { called = true })
	if !called {
		t.Fatal("never called")
	}
}

// Results must not depend on how a run is cut into RunUntil calls.
func TestCutting(t *testing.T) {
	run := func(cut time.Duration) string {
		e, _ := NewEngine(EngineOptions{Workers: 1, Watchdog: -1})
		defer e.Close()
		api := e.NewLoop("api")
		a, b := e.NewLoop("a"), e.NewLoop("b")
		out := ""
		at := Epoch().Add(12 * time.Millisecond)
		a.Root().After(4*time.Millisecond, func() { a.Send(api, at.Sub(a.Now()), 1, func() { out += "a" }) })
		b.Root().After(1*time.Millisecond, func() { b.Send(api, at.Sub(b.Now()), 2, func() { out += "b" }) })
		for d := cut; d < 40*time.Millisecond; d += cut {
			_ = e.RunUntil(Epoch().Add(d))
		}
		_ = e.RunUntil(Epoch().Add(40 * time.Millisecond))
		return out
	}
	if x, y := run(40*time.Millisecond), run(2*time.Millisecond); x != y {
		t.Fatalf("in one piece %s, cut %s", x, y)
	}
}

// Cutting a run at the time of a tick must not shift the tick.
func TestCutAtTick(t *testing.T) {
	run := func(cuts ...time.Duration) (out []time.Duration) {
		l := New(Options{})
		defer l.Close()
		l.Root().Every("t", time.Second, 0, func() { out = append(out, l.Since(Epoch())) })
		for _, c := range cuts {
			_ = l.RunUntil(Epoch().Add(c))
		}
		_ = l.RunUntil(Epoch().Add(3500 * time.Millisecond))
		return out
	}
	a, b := run(), run(2*time.Second)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("in one piece %v, cut %v", a, b)
		}
	}
}
