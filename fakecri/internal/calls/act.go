package calls

import (
	"context"
	"errors"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Act is a call that changes something at its begin and at its end, and only
// passes its latency between them.
type Act interface {
	// Begin checks the request and reserves what it needs.
	Begin() error
	// Admit follows once faults have acted.
	Admit() error
	// End does what the call is for. It returns the call's answer and how long
	// after that the answer is given.
	End() (answer string, settle time.Duration, err error)
	// Undo runs last, however the call ended, if Begin ran at all.
	Undo()
	// Call is the call itself, a part of the act, so that a call is one object.
	Call() *Acting
}

// Acting is a call of an act. It runs in steps; where a fault is about, which
// can make it wait for other things than time, as a task.
type Acting struct {
	r       *Daemon
	a       Act
	Subject Subject
	m       Method
	stage   stage
	d       *Life
	start   int64
	answer  string
	err     error
}

// Call makes every act that embeds an Acting give out its own.
func (x *Acting) Call() *Acting { return x }

// stage is what the next step of an acting does.
type stage uint8

const (
	stageBegin stage = iota
	stageEnd
	stageSettled
)

// Step takes the call's next step.
func (x *Acting) Step(err error) loop.Next {
	switch {
	case errors.Is(err, loop.ErrGroupDead):
		if x.stage != stageBegin {
			x.a.Undo()
		}
		return loop.Finish()
	case err != nil:
		return x.finish(err)
	case x.stage == stageBegin:
		return x.begin()
	case x.stage == stageEnd:
		return x.end()
	}
	return x.finish(nil)
}

// begin is the first step. While any fault is there the rest runs as a task.
func (x *Acting) begin() loop.Next {
	x.stage = stageEnd
	if err := x.a.Begin(); err != nil {
		return x.finish(err)
	}
	if len(x.r.faults) > 0 {
		return loop.Continue(x.task)
	}
	if err := x.a.Admit(); err != nil {
		return x.finish(err)
	}
	return loop.StepAfter(x.r.latencyOf(x.m, &x.Subject))
}

// end is the second step, after the latency.
func (x *Acting) end() loop.Next {
	x.stage = stageSettled
	var settle time.Duration
	var err error
	if x.answer, settle, err = x.a.End(); err != nil || settle == 0 {
		return x.finish(err)
	}
	return loop.StepAfterAnyway(settle)
}

// task is the rest of a call once it has begun and a fault is about.
func (x *Acting) task(ctx context.Context) {
	done := false
	defer func() {
		if !done { // the daemon dies
			x.a.Undo()
		}
	}()
	err := x.r.gate(ctx, x.d, x.m, &x.Subject)
	if err == nil {
		err = x.a.Admit()
	}
	if err == nil {
		err = x.r.Pause(ctx, x.m, &x.Subject)
	}
	var settle time.Duration
	if err == nil {
		x.answer, settle, err = x.a.End()
	}
	if err == nil && settle > 0 {
		err = x.r.Loop.Sleep(x.d.Group.Background(), settle)
	}
	done = true
	x.finish(err)
}

// finish is the last step of every call, whatever came before.
func (x *Acting) finish(err error) loop.Next {
	x.a.Undo()
	x.err = CtxError(err)
	x.r.record(x.m, &x.Subject, x.start, x.err)
	return loop.Finish()
}
