package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTestLoop(t testing.TB, seed uint64) *Loop {
	l := New(Options{Name: "test", Seed: seed})
	t.Cleanup(l.Close)
	return l
}

func run(t testing.TB, l *Loop, d time.Duration) {
	t.Helper()
	if err := l.RunUntil(l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

func TestSleepTakesVirtualTime(t *testing.T) {
	l := newTestLoop(t, 0)
	var got time.Duration
	l.Root().Go("sleeper", func(ctx context.Context) {
		start := l.Now()
		if err := l.Sleep(ctx, time.Hour); err != nil {
			t.Error(err)
		}
		got = l.Since(start)
	})
	run(t, l, 2*time.Hour)
	if got < time.Hour || got > time.Hour+time.Microsecond {
		t.Errorf("slept %v", got)
	}
}

func TestNoTwoStepsShareATime(t *testing.T) {
	l := newTestLoop(t, 3)
	seen := map[int64]bool{}
	note := func() {
		if seen[l.UnixNano()] {
			t.Errorf("time %d twice", l.UnixNano())
		}
		seen[l.UnixNano()] = true
	}
	for i := range 50 {
		l.Root().After(time.Second, note)
		l.Root().Go(fmt.Sprint(i), func(ctx context.Context) {
			note()
			_ = l.Sleep(ctx, time.Second)
			note()
		})
	}
	run(t, l, time.Minute)
	if len(seen) != 150 {
		t.Errorf("%d steps, want 150", len(seen))
	}
}

func TestOrderOfTheSimultaneous(t *testing.T) {
	order := func(seed uint64) []int {
		l := newTestLoop(t, seed)
		var got []int
		for i := range 20 {
			l.Root().After(time.Second, func() { got = append(got, i) })
		}
		run(t, l, time.Minute)
		return got
	}
	zero := order(0)
	for i, v := range zero {
		if i != v {
			t.Fatalf("seed 0: %v, want the order of scheduling", zero)
		}
	}
	if !reflect.DeepEqual(order(7), order(7)) {
		t.Error("seed 7 gave two orders")
	}
	if reflect.DeepEqual(order(7), zero) || reflect.DeepEqual(order(7), order(8)) {
		t.Error("seeds do not shuffle")
	}
}

func TestAStreamStaysInOrder(t *testing.T) {
	for seed := range uint64(30) {
		l := newTestLoop(t, seed)
		s := l.NewStream()
		var got []int
		for i := range 20 {
			l.Root().AfterInStream(s, time.Second, func() { got = append(got, i) })
		}
		run(t, l, time.Minute)
		for i, v := range got {
			if i != v {
				t.Fatalf("seed %d: %v", seed, got)
			}
		}
	}
}

func TestUntilSlides(t *testing.T) {
	l := newTestLoop(t, 0)
	var at []time.Duration
	start := l.Now()
	l.Root().Until("u", 10*time.Second, 0, func(ctx context.Context) {
		at = append(at, l.Since(start).Truncate(time.Millisecond))
		_ = l.Sleep(ctx, 5*time.Second)
	})
	run(t, l, 31*time.Second)
	want := []time.Duration{0, 15 * time.Second, 30 * time.Second}
	if !reflect.DeepEqual(at, want) {
		t.Errorf("runs at %v, want %v", at, want)
	}
}

func TestJitterLengthens(t *testing.T) {
	l := newTestLoop(t, 1)
	last, n := l.Now(), 0
	l.Root().Every("j", 10*time.Second, 0.04, func() {
		if d := l.Since(last); d < 10*time.Second || d > 10400*time.Millisecond {
			t.Errorf("tick after %v", d)
		}
		last = l.Now()
		n++
	})
	run(t, l, 10*time.Minute)
	if n < 57 || n > 59 {
		t.Errorf("%d ticks", n)
	}
}

func TestSignalsCountOnce(t *testing.T) {
	l := newTestLoop(t, 0)
	var s Signal
	woken := 0
	l.Root().Go("w", func(ctx context.Context) {
		for {
			if s.Wait(ctx) != nil {
				return
			}
			woken++
			_ = l.Sleep(ctx, time.Second)
		}
	})
	l.Root().After(time.Second, func() { s.Notify(); s.Notify(); s.Notify() })
	l.Root().After(1500*time.Millisecond, func() { s.Notify(); s.Notify() })
	run(t, l, time.Minute)
	if woken != 2 {
		t.Errorf("woken %d times, want 2", woken)
	}
}

func TestQueueBoundsAndOrder(t *testing.T) {
	l := newTestLoop(t, 5)
	q := NewQueue[int](2)
	var got []int
	var putAt []time.Duration
	start := l.Now()
	l.Root().Go("put", func(ctx context.Context) {
		for i := range 5 {
			if err := q.Put(ctx, i); err != nil {
				t.Error(err)
			}
			putAt = append(putAt, l.Since(start).Truncate(time.Second))
		}
	})
	l.Root().Go("get", func(ctx context.Context) {
		for range 5 {
			_ = l.Sleep(ctx, time.Second)
			v, err := q.Get(ctx)
			if err != nil {
				t.Error(err)
			}
			got = append(got, v)
		}
	})
	run(t, l, time.Minute)
	if !reflect.DeepEqual(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("got %v", got)
	}
	want := []time.Duration{0, 0, time.Second, 2 * time.Second, 3 * time.Second}
	if !reflect.DeepEqual(putAt, want) {
		t.Errorf("put at %v, want %v", putAt, want)
	}
}

func TestWaitAnyPrefersTheFirst(t *testing.T) {
	l := newTestLoop(t, 2)
	var a, b Signal
	var got []int
	l.Root().Go("w", func(ctx context.Context) {
		for range 2 {
			i, err := WaitAny(ctx, &a, &b)
			if err != nil {
				t.Error(err)
			}
			got = append(got, i)
		}
	})
	l.Root().After(time.Second, func() { b.Notify(); a.Notify() })
	run(t, l, time.Minute)
	if !reflect.DeepEqual(got, []int{0, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestSemaphoreIsFairAndSurvivesTheDead(t *testing.T) {
	l := newTestLoop(t, 0)
	s := NewSemaphore(1)
	var got []string
	use := func(g *Group, name string) {
		g.Go(name, func(ctx context.Context) {
			if s.Acquire(ctx) != nil {
				return
			}
			got = append(got, name)
			defer s.Release()
			_ = l.Sleep(ctx, 10*time.Second)
		})
	}
	mortal := l.NewGroup("mortal")
	use(l.Root(), "a")
	use(mortal, "b")
	use(l.Root(), "c")
	l.Root().After(5*time.Second, mortal.Kill)
	run(t, l, time.Minute)
	if !reflect.DeepEqual(got, []string{"a", "c"}) || s.free != 1 {
		t.Errorf("got %v, %d free", got, s.free)
	}
}

func TestContextsEndOnTheLoopsClock(t *testing.T) {
	l := newTestLoop(t, 0)
	var err, childErr error
	var took time.Duration
	l.Root().Go("t", func(ctx context.Context) {
		start := l.Now()
		ctx, cancel := WithTimeout(ctx, 3*time.Second)
		defer cancel()
		std, stdCancel := context.WithCancel(ctx) // a child of the standard library
		defer stdCancel()
		err = l.Sleep(ctx, time.Minute)
		took = l.Since(start)
		childErr = std.Err()
		select {
		case <-ctx.Done():
		default:
			t.Error("Done is open")
		}
	})
	run(t, l, time.Hour)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(childErr, context.DeadlineExceeded) {
		t.Errorf("errors %v, %v", err, childErr)
	}
	if took.Truncate(time.Millisecond) != 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestKillUnwinds(t *testing.T) {
	l := newTestLoop(t, 0)
	g := l.NewGroup("victim")
	var log []string
	var s Signal
	for _, name := range []string{"a", "b"} {
		g.Go(name, func(ctx context.Context) {
			defer func() { log = append(log, name+" deferred") }()
			defer func() {
				defer func() {
					log = append(log, name+" waits while unwinding")
				}()
				_ = l.Sleep(ctx, time.Second) // panics again: takes no time
				log = append(log, "never")
			}()
			_ = s.Wait(ctx)
			log = append(log, "never")
		})
	}
	g.Go("self", func(ctx context.Context) {
		_ = l.Sleep(ctx, time.Second)
		g.Kill()
		log = append(log, "self goes on to its next wait")
		_ = l.Sleep(ctx, time.Second)
		log = append(log, "never")
	})
	g.Go("late", func(ctx context.Context) {})
	g.After(5*time.Second, func() { log = append(log, "never") })
	run(t, l, time.Minute)
	want := "self goes on to its next wait|a waits while unwinding|a deferred|b waits while unwinding|b deferred"
	if got := strings.Join(log, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := len(l.Waiting()); n != 0 {
		t.Errorf("%d tasks left", n)
	}
	if !g.Go("x", func(context.Context) { t.Error("ran in a dead group") }).Done() {
		t.Error("a dead group starts tasks")
	}
	run(t, l, time.Minute)
}

func TestASwallowedKillComesAgain(t *testing.T) {
	l := newTestLoop(t, 0)
	g := l.NewGroup("victim")
	tries := 0
	g.Go("stubborn", func(ctx context.Context) {
		for range 3 {
			func() {
				defer func() { _ = recover() }()
				tries++
				_ = l.Sleep(ctx, time.Second)
			}()
		}
	})
	l.Root().After(500*time.Millisecond, g.Kill)
	run(t, l, 600*time.Millisecond)
	if tries != 3 {
		t.Errorf("%d tries, want 3 in no time", tries)
	}
}

func TestCall(t *testing.T) {
	type outcome struct {
		v   int
		err string
		at  time.Duration
	}
	try := func(prepare func(l *Loop, caller, callee *Group)) (out outcome, calleeErr error) {
		l := newTestLoop(t, 0)
		caller, callee := l.NewGroup("caller"), l.NewGroup("callee")
		start := l.Now()
		caller.Go("caller", func(ctx context.Context) {
			ctx, cancel := WithTimeout(ctx, 20*time.Second)
			defer cancel()
			v, err := Call(ctx, callee, "rpc", func(ctx context.Context) (int, error) {
				if err := l.Sleep(ctx, 10*time.Second); err != nil {
					calleeErr = err
					return 0, err
				}
				if err := l.Sleep(ctx, 15*time.Second); err != nil {
					calleeErr = err
					return 0, err
				}
				return 42, nil
			})
			out = outcome{v: v, at: l.Since(start).Truncate(time.Second)}
			if err != nil {
				out.err = err.Error()
			}
		})
		prepare(l, caller, callee)
		run(t, l, time.Minute)
		return out, calleeErr
	}
	got, calleeErr := try(func(*Loop, *Group, *Group) {})
	if want := (outcome{0, context.DeadlineExceeded.Error(), 20 * time.Second}); got != want || !errors.Is(calleeErr, context.Canceled) {
		t.Errorf("deadline: %v, callee %v", got, calleeErr)
	}
	got, _ = try(func(l *Loop, _, callee *Group) { l.Root().After(5*time.Second, callee.Kill) })
	if want := (outcome{0, ErrGroupDead.Error(), 5 * time.Second}); got != want {
		t.Errorf("callee killed: %v", got)
	}
	_, calleeErr = try(func(l *Loop, caller, _ *Group) { l.Root().After(5*time.Second, caller.Kill) })
	if !errors.Is(calleeErr, context.Canceled) {
		t.Errorf("caller killed: callee saw %v", calleeErr)
	}
}

func TestPanicsNameTheTask(t *testing.T) {
	for _, c := range []struct {
		start func(l *Loop)
		want  string
	}{
		{func(l *Loop) { l.Root().Go("sync/default/web-0", func(context.Context) { panic("boom") }) }, "task sync/default/web-0 panicked: boom"},
		{func(l *Loop) { l.Root().Every("relist", time.Second, 0, func() { panic("bang") }) }, "callback relist panicked: bang"},
		{func(l *Loop) {
			l.Root().Every("waits", time.Second, 0, func() { _ = l.Sleep(context.Background(), 1) })
		}, errPark},
		{func(l *Loop) {
			l.Root().Go("spins", func(ctx context.Context) {
				for {
					_ = l.Yield(ctx)
				}
			})
		}, "steps at one instant"},
	} {
		l := New(Options{})
		c.start(l)
		err := l.RunUntil(l.Now().Add(time.Minute))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		var p *PanicError
		if errors.As(err, &p) && len(p.Stack) == 0 {
			t.Error("no stack")
		}
		l.Close()
	}
}

func TestDrawsAreIndependent(t *testing.T) {
	l := New(Options{Name: "n", Seed: 9})
	a := l.Uint64("jitter", "x", 1)
	_ = l.Uint64("other", "y", 7)
	if a != l.Uint64("jitter", "x", 1) {
		t.Error("a draw depends on others")
	}
	var sum float64
	for i := range uint64(10000) {
		sum += l.Float64("p", "o", i)
	}
	if sum < 4900 || sum > 5100 {
		t.Errorf("mean %v", sum/10000)
	}
	for i := range uint64(1000) {
		if d := l.Between(2*time.Second, 4*time.Second, "p", "o", i); d < 2*time.Second || d > 4*time.Second {
			t.Fatal(d)
		}
	}
}

func TestClockViewFollows(t *testing.T) {
	l := newTestLoop(t, 0)
	c := l.Clock()
	var got time.Time
	l.Root().After(time.Hour, func() { got = c.Now() })
	run(t, l, 2*time.Hour)
	if !got.Equal(Epoch().Add(time.Hour)) {
		t.Errorf("clock shows %v", got)
	}
}

func TestRealLoop(t *testing.T) {
	l := NewReal(Options{Name: "real"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var v int
	var werr error
	slow := make(chan struct{})
	posted := false
	l.Root().Go("caller", func(ctx context.Context) {
		v, _ = Await(ctx, func(context.Context) (int, error) { return 7, nil })
		tctx, done := WithTimeout(ctx, 20*time.Millisecond)
		defer done()
		_, werr = Await(tctx, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			close(slow)
			return 0, ctx.Err()
		})
		for !posted {
			_ = l.Sleep(ctx, time.Millisecond)
		}
		cancel()
	})
	go l.Post(func() { posted = true })
	if err := l.RunReal(ctx); err != nil {
		t.Fatal(err)
	}
	l.Close()
	<-slow
	l.Post(func() { t.Error("ran after Close") })
	if v != 7 || !errors.Is(werr, context.DeadlineExceeded) {
		t.Errorf("v %d, err %v", v, werr)
	}
}

func TestKilledBetweenRuns(t *testing.T) {
	l := newTestLoop(t, 0)
	g := l.NewGroup("victim")
	var log []string
	g.Go("t", func(ctx context.Context) {
		defer func() { log = append(log, "unwound") }()
		_ = l.Sleep(ctx, time.Hour)
	})
	l.Root().After(5*time.Second, func() { log = append(log, "later") })
	run(t, l, time.Second)
	g.Kill()
	run(t, l, time.Minute)
	if got := strings.Join(log, " "); got != "unwound later" {
		t.Errorf("got %q", got)
	}
}

// Goexit is forbidden, but a test's Fatal within a task is one: it must end the
// test, not hang it.
func TestGoexitDoesNotHang(t *testing.T) {
	l := New(Options{})
	l.Root().Go("fatal", func(context.Context) { runtime.Goexit() })
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer l.Close()
		_ = l.RunUntil(l.Now().Add(time.Minute))
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("hangs")
	}
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "runtime.Goexit") {
		t.Errorf("error %v", err)
	}
}
