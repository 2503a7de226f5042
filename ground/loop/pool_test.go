package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestReuseChangesNothing runs random tasks, calls and timeouts among groups that
// die, once with what ended before and once with everything new.
func TestReuseChangesNothing(t *testing.T) {
	for seed := range uint64(40) {
		reused, again := lifeOfTasks(seed, func(l *Loop) { l.step() }), lifeOfTasks(seed, func(l *Loop) {
			*l.pool = pool{coros: l.pool.coros}
			l.step()
		})
		if !slices.Equal(reused, again) {
			for i := range reused {
				if i >= len(again) || reused[i] != again[i] {
					t.Fatalf("seed %d, line %d of %d: with reuse %q, without %q", seed, i, len(reused), reused[i:min(i+3, len(reused))], again[i:min(i+3, len(again))])
				}
			}
			t.Fatalf("seed %d: %d lines with reuse, %d without", seed, len(reused), len(again))
		}
		if len(reused) < 500 {
			t.Fatalf("seed %d: only %d lines", seed, len(reused))
		}
	}
}

// TestGoingOnChangesNothing runs them once with each step taken by the driver, so
// that every sleep gives way, and once as they run always.
func TestGoingOnChangesNothing(t *testing.T) {
	for seed := range uint64(40) {
		apart := lifeOfTasks(seed, func(l *Loop) { l.step() })
		wentOn := false
		whole := lifeOfTasks(seed, func(l *Loop) {
			before, driven := l.Steps(), uint64(0)
			limit := min(l.heap.items[0].at+int64(5*time.Millisecond), endOfLife)
			l.limit = limit
			for len(l.heap.items) > 0 && l.heap.items[0].at < limit {
				l.step()
				driven++
			}
			wentOn = wentOn || l.Steps()-before > driven
		})
		for i := range min(len(apart), len(whole)) {
			if apart[i] != whole[i] {
				t.Fatalf("seed %d, line %d: step by step %q, at once %q", seed, i, apart[i:min(i+3, len(apart))], whole[i:min(i+3, len(whole))])
			}
		}
		if len(apart) != len(whole) || !wentOn {
			t.Fatalf("seed %d: %d lines step by step, %d at once; went on: %v", seed, len(apart), len(whole), wentOn)
		}
	}
}

var endOfLife = Epoch().Add(time.Second).UnixNano()

// lifeOfTasks returns what happens, to the nanosecond, while drive takes the
// steps that are due.
func lifeOfTasks(seed uint64, drive func(l *Loop)) []string {
	var lines []string
	l := New(Options{Seed: seed})
	defer l.Close()
	r := rand.New(rand.NewPCG(seed, 1))
	note := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%d step %d stream %x ", l.Since(Epoch()), l.Steps(), l.NewStream())+fmt.Sprintf(format, args...))
	}
	ms := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	callers, callees := l.NewGroup("callers"), l.NewGroup("callees")
	call := func(ctx context.Context, name string) {
		stage, last, wait, kind := 0, 1+r.IntN(3), ms(20), r.IntN(4)
		err := CallSteps(ctx, callees, name, StepsFunc(func(err error) Next {
			note("%s step %d: %v", name, stage, err)
			stage++
			switch {
			case err != nil || stage > last:
				return Finish()
			case kind == 0:
				return Continue(func(ctx context.Context) {
					ctx.(*Context).AfterFunc(func() { note("%s: its context ends", name) })
					note("%s slept: %v", name, l.Sleep(ctx, wait))
				})
			case kind == 1:
				return StepAfterAnyway(wait)
			}
			return StepAfter(wait)
		}))
		note("%s: %v", name, err)
	}
	body := func(name string) func(ctx context.Context) {
		return func(ctx context.Context) {
			defer note("%s ends", name)
			note("%s slept: %v", name, l.Sleep(ctx, ms(10)))
			for range r.IntN(4) {
				note("%s gave way: %v", name, l.Sleep(ctx, ms(2)))
			}
			v, err := Within(ctx, ms(30), func(ctx context.Context) (int, error) {
				inner, cancel := WithCancel(ctx)
				if r.IntN(2) == 0 {
					defer cancel()
				}
				call(inner, name+" calls")
				_, err := Within(ctx, ms(60), func(ctx context.Context) (int, error) {
					at, _ := ctx.Deadline()
					note("%s has until %v", name, at)
					return 0, l.Sleep(ctx, ms(20))
				})
				return 7, err
			})
			note("%s within: %d %v", name, v, err)
		}
	}
	n := 0
	l.Root().Every("work", 2*time.Millisecond, 0, func() {
		switch n++; {
		case n%40 == 0:
			callees.Kill()
			callees = l.NewGroup("callees")
		case n%55 == 0:
			callers.Kill()
			callers = l.NewGroup("callers")
		default:
			callers.Start(fmt.Sprint("t", n), body(fmt.Sprint("t", n)))
		}
	})
	for l.heap.items[0].at < endOfLife {
		drive(l)
	}
	return lines
}

// TestNoGarbage holds what pods start with to allocating nothing.
func TestNoGarbage(t *testing.T) {
	l := New(Options{Seed: 1})
	defer l.Close()
	g := l.NewGroup("callee")
	var first bool
	step := func(error) Next {
		if first = !first; first {
			return StepAfter(time.Millisecond)
		}
		return Finish()
	}
	q := NewQueue[int](0)
	for name, body := range map[string]func(ctx context.Context){
		"task":  func(context.Context) {},
		"sleep": func(ctx context.Context) { _ = l.Sleep(ctx, time.Millisecond) },
		"timeout": func(ctx context.Context) {
			_, _ = Within(ctx, time.Second, func(ctx context.Context) (int, error) { return 0, l.Sleep(ctx, time.Millisecond) })
		},
		"call": func(ctx context.Context) {
			_, _ = Within(ctx, time.Second, func(ctx context.Context) (int, error) { return 0, CallSteps(ctx, g, "call", StepsFunc(step)) })
		},
		"queue": func(ctx context.Context) {
			q.TryPut(1)
			q.TryPut(2)
			_, _ = q.Get(ctx)
			_, _ = q.Get(ctx)
		},
	} {
		run := func() {
			l.Root().Start(name, body)
			_ = l.RunUntil(l.Now().Add(10 * time.Millisecond))
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestWithin tells of a context's end to who outlives it.
func TestWithin(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	var child context.Context
	var helper error
	ended := 0
	l.Root().Start("t", func(ctx context.Context) {
		_, err := Within(ctx, time.Second, func(ctx context.Context) (int, error) {
			child, _ = WithCancel(ctx)
			ctx.(*Context).AfterFunc(func() { ended++ })
			l.Root().Start("helper", func(context.Context) { helper = l.Sleep(ctx, time.Minute) })
			_ = l.Yield(ctx)
			return 0, errors.New("answer")
		})
		if err == nil || err.Error() != "answer" {
			t.Errorf("the error is %v", err)
		}
	})
	_ = l.RunUntil(l.Now().Add(time.Millisecond))
	if child.Err() != context.Canceled {
		t.Errorf("the child's error is %v", child.Err())
	}
	if helper != context.Canceled {
		t.Errorf("who waits besides is told %v", helper)
	}
	if ended != 1 {
		t.Errorf("told %d times of the end", ended)
	}
	if len(l.heap.items) != 0 {
		t.Error("the deadline's timer is still set")
	}
}

// TestCalendar compares a calendar with a plain list of what is due when.
func TestCalendar(t *testing.T) {
	const loops = 50
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		var c calendar
		want := make([]int64, loops)
		for i := range want {
			c.add(nil)
			want[i] = none
		}
		for range 5000 {
			for range r.IntN(6) {
				i, w := r.IntN(loops), c.base+1+int64(r.IntN(10))
				switch r.IntN(8) {
				case 0:
					w = none
				case 1:
					w = c.base + slots - 2 + int64(r.IntN(4))
				case 2: // the same far window several times
					w = (c.base/slots + 2 + int64(r.IntN(2))) * slots
				case 4:
					w = c.base + int64(r.IntN(5*slots))
				case 3:
					w = want[i] // again
				}
				want[i] = w
				c.enter(int32(i), w)
			}
			due := slices.Min(want)
			w := c.next()
			if w != due {
				t.Fatalf("seed %d: the next window is %d, not %d", seed, w, due)
			}
			if w == none {
				continue
			}
			var expected []int32
			for i := range want {
				if want[i] == w {
					expected, want[i] = append(expected, int32(i)), none
				}
			}
			c.advance(w)
			if got := c.take(w, nil); !slices.Equal(got, expected) {
				t.Fatalf("seed %d: in window %d %v are due, not %v", seed, w, got, expected)
			}
		}
	}
}

// TestManyYieldsAreNoLivelock has one task alone give way more often than the loop
// may step at one instant, but at two of them.
func TestManyYieldsAreNoLivelock(t *testing.T) {
	l := New(Options{})
	defer l.Close()
	n := 0
	l.Root().Go("yielder", func(ctx context.Context) {
		for range 2 {
			_ = l.Sleep(ctx, time.Millisecond)
			for range maxStepsPerInstant * 2 / 3 {
				_ = l.Yield(ctx)
				n++
			}
		}
	})
	if err := l.RunUntil(Epoch().Add(time.Minute)); err != nil {
		t.Errorf("after %d times %v", n, err)
	}
}

// TestRoomIsGivenBack has bursts of timers and messages keep their room for a
// while, but not for ever.
func TestRoomIsGivenBack(t *testing.T) {
	e, err := NewEngine(EngineOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	from, to := e.NewLoop("from"), e.NewLoop("to")
	burst := func(n int) {
		from.Root().After(0, func() {
			for range n {
				from.Send(to, e.Lookahead(), 0, func() {})
			}
		})
		if err := e.RunUntil(e.Now().Add(4 * e.Lookahead())); err != nil {
			t.Fatal(err)
		}
	}
	room := func() [3]int {
		return [3]int{cap(from.outbox), cap(e.calendar.seats[to.index].inbox), cap(to.heap.items)}
	}
	burst(1000)
	if full := room(); min(full[0], full[1], full[2]) < 500 {
		t.Errorf("after a burst room for %v", full)
	}
	for range 20 * calmEnough {
		burst(1)
	}
	if r := room(); r[0] > keptMessages || r[1] > keptMessages || r[2] > keptTimers {
		t.Errorf("long after it room for %v", r)
	}
	burst(100)
	kept := room()
	for range calmMessages / 2 {
		burst(1)
	}
	if again := room(); again != kept {
		t.Errorf("soon after it room for %v, then %v", kept, again)
	}
}
