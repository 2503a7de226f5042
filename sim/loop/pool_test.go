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
		reused, again := lifeOfTasks(seed, false), lifeOfTasks(seed, true)
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

// lifeOfTasks returns what happens, to the nanosecond.
func lifeOfTasks(seed uint64, fresh bool) []string {
	var lines []string
	l := New(Options{Seed: seed})
	defer l.Close()
	r := rand.New(rand.NewPCG(seed, 1))
	note := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%d ", l.Since(Epoch()))+fmt.Sprintf(format, args...))
	}
	ms := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	callers, callees := l.NewGroup("callers"), l.NewGroup("callees")
	call := func(ctx context.Context, name string) {
		stage, last, wait, kind := 0, 1+r.IntN(3), ms(20), r.IntN(4)
		err := CallSteps(ctx, callees, name, func(err error) Next {
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
		})
		note("%s: %v", name, err)
	}
	body := func(name string) func(ctx context.Context) {
		return func(ctx context.Context) {
			defer note("%s ends", name)
			note("%s slept: %v", name, l.Sleep(ctx, ms(10)))
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
	for l.UnixNano() < Epoch().Add(time.Second).UnixNano() {
		if fresh {
			*l.pool = pool{coros: l.pool.coros}
		}
		l.step()
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
			_, _ = Within(ctx, time.Second, func(ctx context.Context) (int, error) { return 0, CallSteps(ctx, g, "call", step) })
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
