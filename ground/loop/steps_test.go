package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// diary notes what happens when, to the nanosecond.
type diary struct {
	l     *loop.Loop
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf("%d ", d.l.Since(loop.Epoch()))+fmt.Sprintf(format, args...))
}

// service is a callee with a first and a second wait, in both forms.
type service struct {
	*diary
	g        *loop.Group
	asTask   bool
	anyway   bool // the second wait is for its full length
	promoted bool // after the first wait it goes on as a task
}

func (s *service) call(ctx context.Context, name string) error {
	if s.asTask {
		_, err := loop.Call(ctx, s.g, name, func(ctx context.Context) (int, error) {
			s.note("%s begins", name)
			if err := s.g.Loop().Sleep(ctx, 10*time.Millisecond); err != nil {
				s.note("%s: %v", name, err)
				return 0, nil
			}
			return 0, s.second(ctx, name)
		})
		return err
	}
	stage := 0
	return loop.CallSteps(ctx, s.g, name, loop.StepsFunc(func(err error) loop.Next {
		stage++
		switch {
		case errors.Is(err, loop.ErrGroupDead):
			return loop.Finish()
		case err != nil:
			s.note("%s: %v", name, err)
			return loop.Finish()
		case stage == 1:
			s.note("%s begins", name)
			return loop.StepAfter(10 * time.Millisecond)
		case stage == 2 && s.promoted:
			return loop.Continue(func(ctx context.Context) { _ = s.second(ctx, name) })
		case stage == 2 && s.anyway:
			s.note("%s goes on", name)
			return loop.StepAfterAnyway(10 * time.Millisecond)
		case stage == 2:
			s.note("%s goes on", name)
			return loop.StepAfter(10 * time.Millisecond)
		}
		s.note("%s ends", name)
		return loop.Finish()
	}))
}

func (s *service) second(ctx context.Context, name string) error {
	s.note("%s goes on", name)
	if s.anyway {
		ctx = s.g.Background()
	}
	if err := s.g.Loop().Sleep(ctx, 10*time.Millisecond); err != nil {
		s.note("%s: %v", name, err)
		return nil
	}
	s.note("%s ends", name)
	return nil
}

// TestCallStepsIsCall has the same calls made in both forms, with a timeout, a
// caller that dies and a callee that dies at different times: everything takes
// place at the same nanosecond, in the same order.
func TestCallStepsIsCall(t *testing.T) {
	run := func(seed uint64, asTask, anyway, promoted bool, kill time.Duration, callee bool, timeout time.Duration) []string {
		l := loop.New(loop.Options{Name: "test", Seed: seed})
		defer l.Close()
		d := &diary{l: l}
		s := &service{diary: d, g: l.NewGroup("callee"), asTask: asTask, anyway: anyway, promoted: promoted}
		callers := l.NewGroup("callers")
		for i := range 3 {
			name := fmt.Sprintf("call %d", i)
			callers.Go(name, func(ctx context.Context) {
				ctx, cancel := loop.WithTimeout(ctx, timeout)
				defer cancel()
				d.note("%s answered: %v", name, s.call(ctx, name))
			})
		}
		victim := callers
		if callee {
			victim = s.g
		}
		l.Root().After(kill, func() { d.note("kill"); victim.Kill() })
		if err := l.RunUntil(loop.Epoch().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		return append(d.lines, fmt.Sprint(l.Steps(), " steps ", len(l.Waiting()), " wait"))
	}
	for _, kill := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond, time.Minute} {
		for _, timeout := range []time.Duration{5 * time.Millisecond, 12 * time.Millisecond, 20 * time.Millisecond, time.Minute} {
			for _, form := range []struct{ anyway, promoted bool }{{}, {anyway: true}, {promoted: true}, {true, true}} {
				for _, callee := range []bool{false, true} {
					for seed := range uint64(4) {
						want := run(seed, true, form.anyway, form.promoted, kill, callee, timeout)
						got := run(seed, false, form.anyway, form.promoted, kill, callee, timeout)
						if !slices.Equal(got, want) {
							t.Fatalf("seed %d, %+v, kill (callee: %v) after %v, timeout %v:\nsteps %q\ntask  %q", seed, form, callee, kill, timeout, got, want)
						}
					}
				}
			}
		}
	}
}

// TestCallStepsCleansUp: a callee that dies has its step called once more.
func TestCallStepsCleansUp(t *testing.T) {
	l := loop.New(loop.Options{Name: "test"})
	defer l.Close()
	g := l.NewGroup("callee")
	var got []error
	var answer error
	l.Root().Go("caller", func(ctx context.Context) {
		answer = loop.CallSteps(ctx, g, "call", loop.StepsFunc(func(err error) loop.Next {
			got = append(got, err)
			return loop.StepAfter(time.Hour)
		}))
	})
	l.Root().After(time.Second, g.Kill)
	if err := l.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []error{nil, loop.ErrGroupDead}) || !errors.Is(answer, loop.ErrGroupDead) {
		t.Errorf("steps were told %v, the caller %v", got, answer)
	}
}
