package loop

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"
)

// elision is an Elider for tests that keeps what it is told.
type elision struct {
	reads []*Version
	until func(now int64) int64
	n     int64
	last  int64
}

func (e *elision) Reads() []*Version     { return e.reads }
func (e *elision) Until(now int64) int64 { return e.until(now) }
func (e *elision) LeftOut(n, last int64) { e.n, e.last = e.n+n, last }

// TestElidedGrid wakes a parked grid at odd times: passes stay on its instants,
// and those left out are counted with the time of the last.
func TestElidedGrid(t *testing.T) {
	l := newTestLoop(t, 0)
	start := l.Now()
	var at []time.Duration
	var v, other Version
	seen := uint64(0)
	e := &elision{reads: []*Version{&v, &other}, until: func(now int64) int64 {
		if v.Count() != seen {
			return now
		}
		return Forever
	}}
	k := l.Root().Every("tick", 10*time.Second, 0, func() {
		seen = v.Count()
		at = append(at, l.Since(start))
	})
	k.Elide(e)
	run(t, l, 25*time.Second)
	if !k.Parked() || e.n != 1 || len(l.heap.items) != 0 {
		t.Fatalf("parked %t, %d left out, %d timers", k.Parked(), e.n, len(l.heap.items))
	}
	k.CatchUp()
	if e.n != 2 || e.last != start.Add(20*time.Second).UnixNano() {
		t.Errorf("caught up: %d left out, the last at %v", e.n, time.Unix(0, e.last).Sub(start))
	}
	run(t, l, 30*time.Second) // to 55 s
	v.Grow()                  // the next is at 60 s
	if e.n != 5 || e.last != start.Add(50*time.Second).UnixNano() || len(v.parked) != 0 {
		t.Errorf("woken: %d left out, the last at %v; %d still parked", e.n, time.Unix(0, e.last).Sub(start), len(v.parked))
	}
	run(t, l, 20*time.Second) // to 75 s: parked again at 70 s
	other.Grow()              // a look at 80 s finds nothing
	run(t, l, 10*time.Second)
	if want := []time.Duration{60 * time.Second}; !reflect.DeepEqual(at, want) {
		t.Errorf("passes at %v, want %v", at, want)
	}
	if len(other.parked) != 1 || len(v.parked) != 1 {
		t.Errorf("registered %d and %d times, want once each", len(v.parked), len(other.parked))
	}
}

// TestElidedUntil parks up to a time that is known ahead.
func TestElidedUntil(t *testing.T) {
	for _, fraction := range []float64{0, 0.04} {
		l := newTestLoop(t, 7)
		start := l.Now()
		due := start.Add(95 * time.Second).UnixNano()
		plain, elided := []time.Duration{}, []time.Duration{}
		body := func(at *[]time.Duration) func(context.Context) {
			return func(context.Context) {
				if l.UnixNano() >= due {
					*at = append(*at, l.Since(start).Truncate(time.Microsecond))
				}
			}
		}
		p := l.Root().Sliding("p", 10*time.Second, nil)
		p.fn = func() { body(&plain)(nil); p.Again() }
		p.Jitter(fraction, "test", "x")
		q := l.Root().Sliding("q", 10*time.Second, nil)
		q.fn = func() { body(&elided)(nil); q.Again() }
		q.Jitter(fraction, "test", "x")
		e := &elision{until: func(int64) int64 { return due }}
		q.Elide(e)
		p.Begin()
		q.Begin()
		run(t, l, 150*time.Second)
		if len(plain) == 0 || !reflect.DeepEqual(plain, elided) {
			t.Errorf("jitter %v: passes at %v, want %v", fraction, elided, plain)
		}
		if e.n < 9 {
			t.Errorf("jitter %v: %d left out", fraction, e.n)
		}
	}
}

// TestTicks are for who waits: a busy task gets each, also one that elision would
// leave out.
func TestTicks(t *testing.T) {
	for _, mode := range []ElisionMode{Elide, NoElide} {
		l := New(Options{Elision: mode})
		t.Cleanup(l.Close)
		start := l.Now()
		ticks := l.Root().Ticks("tick", time.Second)
		ticks.Elide(&elision{until: func(int64) int64 { return Forever }})
		var work Signal
		var at []time.Duration
		l.Root().Go("loop", func(ctx context.Context) {
			for {
				i, err := WaitAny(ctx, &work, ticks)
				if err != nil {
					return
				}
				if i == 0 {
					_ = l.Sleep(ctx, 1500*time.Millisecond)
					continue
				}
				at = append(at, l.Since(start).Truncate(time.Millisecond))
			}
		})
		run(t, l, 2300*time.Millisecond)
		work.Notify()
		run(t, l, 3*time.Second) // busy until 3.8 s
		want := []time.Duration{3800 * time.Millisecond}
		if mode == NoElide {
			want = []time.Duration{time.Second, 2 * time.Second, 3800 * time.Millisecond, 4 * time.Second, 5 * time.Second}
		}
		if !reflect.DeepEqual(at, want) {
			t.Errorf("mode %d: ticks at %v, want %v", mode, at, want)
		}
	}
}

// TestCheckElision finds a change of which no version tells, and says where.
func TestCheckElision(t *testing.T) {
	for _, tc := range []struct {
		name   string
		mode   ElisionMode
		change func(state *int, v *Version)
		want   string
	}{
		{"told", CheckElision, func(state *int, v *Version) { *state++; v.Grow() }, ""},
		{"told", CheckEachStep, func(state *int, v *Version) { *state++; v.Grow() }, ""},
		{"not told", CheckElision, func(state *int, _ *Version) { *state++ }, `tick was left out, but what version "state" stands for changed and the version did not grow`},
		{"not told", CheckEachStep, func(state *int, _ *Version) { *state++ }, `changed what version "state" stands for, and the version did not grow`},
	} {
		l := New(Options{Elision: tc.mode})
		t.Cleanup(l.Close)
		state, done := 0, 0
		var v Version
		l.Root().Describe(&v, "state", func() uint64 { return uint64(state) })
		k := l.Root().Every("tick", time.Second, 0, func() { done = state })
		k.Elide(&elision{reads: []*Version{&v}, until: func(now int64) int64 {
			if done != state {
				return now
			}
			return Forever
		}})
		l.Root().After(2500*time.Millisecond, func() { tc.change(&state, &v) })
		err := l.RunUntil(l.Now().Add(5 * time.Second))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
