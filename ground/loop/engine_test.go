package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// gossip runs nodes that tick, sleep and send each other messages, and returns
// one hash per loop over all that they saw.
func gossip(t testing.TB, seed uint64, workers, nodes int, span time.Duration) string {
	e, err := NewEngine(EngineOptions{Seed: seed, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	loops := make([]*Loop, nodes)
	seen := make([]uint64, nodes)
	for i := range loops {
		loops[i] = e.NewLoop(fmt.Sprint("n", i))
	}
	for i, l := range loops {
		s := l.NewStream()
		note := func(what uint64) { seen[i] = mix(seen[i] ^ mix(uint64(l.UnixNano())) ^ what) }
		l.Root().Every("tick", 7*time.Millisecond, 0.5, func() {
			note(1)
			to := loops[l.Uint64("to", "", uint64(l.UnixNano()))%uint64(nodes)]
			for k := range uint64(3) {
				l.Send(to, 5*time.Millisecond+time.Duration(k%2), s, func() {
					seen[to.index] = mix(seen[to.index] ^ mix(uint64(to.UnixNano())) ^ uint64(i)<<8 ^ k)
				})
			}
		})
		l.Root().Go("walk", func(ctx context.Context) {
			for n := uint64(0); ; n++ {
				if l.Sleep(ctx, l.Between(0, 10*time.Millisecond, "walk", "", n)) != nil {
					return
				}
				note(2)
			}
		})
	}
	if err := e.RunUntil(Epoch().Add(span / 2)); err != nil {
		t.Fatal(err)
	}
	if err := e.RunUntil(Epoch().Add(span)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", seen)
}

func TestTheNumberOfWorkersChangesNothing(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2} {
		want := gossip(t, seed, 1, 40, time.Second)
		for _, w := range []int{1, 2, 3, 8} {
			if got := gossip(t, seed, w, 40, time.Second); got != want {
				t.Errorf("seed %d, %d workers: another outcome", seed, w)
			}
		}
	}
	if gossip(t, 1, 2, 40, time.Second) == gossip(t, 2, 2, 40, time.Second) {
		t.Error("two seeds, one outcome")
	}
}

func TestMessagesKeepTheirTime(t *testing.T) {
	e, _ := NewEngine(EngineOptions{Workers: 1})
	defer e.Close()
	a, b := e.NewLoop("a"), e.NewLoop("b")
	var at time.Duration
	a.Root().After(3*time.Millisecond, func() {
		a.Send(b, 9*time.Millisecond, 1, func() { at = b.Now().Sub(Epoch()) })
	})
	if err := e.RunUntil(Epoch().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if at != 12*time.Millisecond {
		t.Errorf("arrived at %v", at)
	}
	if !e.Now().Equal(Epoch().Add(time.Second)) || !b.Now().Equal(e.Now()) {
		t.Errorf("clocks stand at %v, %v", e.Now(), b.Now())
	}
}

// A limit within a window ends the run, and the next run goes on from there.
func TestALimitWithinAWindow(t *testing.T) {
	e, _ := NewEngine(EngineOptions{Workers: 1, Lookahead: 7 * time.Millisecond})
	defer e.Close()
	l := e.NewLoop("a")
	var at []time.Duration
	l.Root().Every("t", time.Millisecond, 0, func() { at = append(at, l.Now().Sub(Epoch())) })
	for ms := range 50 {
		limit := time.Duration(ms+1)*time.Millisecond + time.Microsecond
		if err := e.RunUntil(Epoch().Add(limit)); err != nil {
			t.Fatal(err)
		}
		if len(at) != ms+1 || at[ms] > limit {
			t.Fatalf("after %v: %v", limit, at)
		}
	}
}

// TestNextDue: what is due next may be a timer, or a message that nobody has taken in.
func TestNextDue(t *testing.T) {
	e, _ := NewEngine(EngineOptions{Workers: 1})
	defer e.Close()
	if at, ok := e.NextDue(); ok {
		t.Errorf("nothing is due, but at %v", at)
	}
	a, b := e.NewLoop("a"), e.NewLoop("b")
	a.Root().After(time.Minute, func() { a.Send(b, 9*time.Millisecond, 1, func() {}) })
	for i, want := range []time.Duration{time.Minute, time.Minute + 9*time.Millisecond} {
		at, ok := e.NextDue()
		if !ok || at.Sub(Epoch()) != want {
			t.Errorf("%d: due at %v, %v, want %v", i, at, ok, want)
		}
		if err := e.RunUntil(at.Add(time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
	if at, ok := e.NextDue(); ok {
		t.Errorf("all is done, but something is due at %v", at)
	}
}

func TestTooShortALookahead(t *testing.T) {
	if _, err := NewEngine(EngineOptions{Lookahead: time.Microsecond}); err == nil {
		t.Error("taken")
	}
	e, _ := NewEngine(EngineOptions{Workers: 1})
	defer e.Close()
	a, b := e.NewLoop("a"), e.NewLoop("b")
	a.Root().After(0, func() { a.Send(b, time.Millisecond, 1, func() {}) })
	err := e.RunUntil(Epoch().Add(time.Second))
	if err == nil || !strings.Contains(err.Error(), "under the lookahead") {
		t.Errorf("got %v", err)
	}
}

func TestStopEndsTheRun(t *testing.T) {
	e, _ := NewEngine(EngineOptions{Workers: 2})
	defer e.Close()
	l := e.NewLoop("a")
	l.Root().Every("t", time.Second, 0, func() {
		if l.Now().Sub(Epoch()) > time.Minute {
			e.Stop()
		}
	})
	if err := e.RunUntil(Epoch().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if d := e.Now().Sub(Epoch()); d > 2*time.Minute {
		t.Errorf("ran to %v", d)
	}
}

// A Goexit in a task takes the goroutine that runs its loop with it; the run
// must end with an error all the same, not wait for it.
func TestGoexitInAWorker(t *testing.T) {
	e, _ := NewEngine(EngineOptions{Workers: 2})
	for i := range 100 {
		l := e.NewLoop(fmt.Sprint("n", i))
		l.Root().Every("t", time.Millisecond, 0, func() {})
		if i == 99 { // the range of the second worker
			l.Root().Go("fatal", func(ctx context.Context) {
				_ = l.Sleep(ctx, 20*time.Millisecond)
				runtime.Goexit()
			})
		}
	}
	got := make(chan error, 1)
	go func() {
		defer func() { got <- errors.New("the engine's own goroutine exited") }()
		got <- e.RunUntil(Epoch().Add(time.Second))
	}()
	select {
	case err := <-got:
		// Which goroutine takes the loop is chance.
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("hangs")
	}
	e.Close()
}

func TestTheWatchdogBarks(t *testing.T) {
	var out bytes.Buffer
	e, _ := NewEngine(EngineOptions{Workers: 1, Watchdog: 5 * time.Millisecond, Stderr: &out})
	defer e.Close()
	l := e.NewLoop("a")
	l.Root().After(time.Second, func() { time.Sleep(50 * time.Millisecond) })
	if err := e.RunUntil(Epoch().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "does not give way") {
		t.Errorf("silent: %q", out.String())
	}
}

// A message runs at the time that its sender gave it, however its window is run.
func TestMessagesArriveOnTime(t *testing.T) {
	for _, workers := range []int{1, 2} {
		e, err := NewEngine(EngineOptions{Seed: 3, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var loops []*Loop
		late := make([]time.Duration, 20)
		for i := range late {
			loops = append(loops, e.NewLoop(fmt.Sprint("l", i)))
		}
		for i, l := range loops {
			to := loops[(i+1)%len(loops)]
			l.Root().Every("send", 7*time.Millisecond, 0, func() {
				for _, d := range []time.Duration{5 * time.Millisecond, 9 * time.Millisecond, 40 * time.Millisecond} {
					due := l.Now().Add(d)
					l.Send(to, d, uint64(d), func() { late[to.index] = max(late[to.index], to.Now().Sub(due)) })
				}
			})
		}
		if err := e.RunUntil(Epoch().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		for i, d := range late {
			if d <= 0 || d > time.Microsecond {
				t.Errorf("workers=%d: to loop %d a message was up to %v late", workers, i, d)
			}
		}
	}
}
