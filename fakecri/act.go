package fakecri

import (
	"context"
	"errors"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// act is a call that changes something at its begin and at its end, and only
// passes its latency between them.
type act interface {
	// begin checks the request and reserves what it needs.
	begin() error
	// admit follows once faults have acted.
	admit() error
	// end does what the call is for. It returns the call's answer and how long
	// after that the answer is given.
	end() (answer string, settle time.Duration, err error)
	// undo runs last, however the call ended, if begin ran at all.
	undo()
	// call is the call itself, a part of the act, so that a call is one object.
	call() *acting
}

// acting is a call of an act. It runs in steps; where a fault is about, which
// can make it wait for other things than time, as a task.
type acting struct {
	r      *callDaemon
	a      act
	sub    subject
	m      method
	stage  stage
	d      *daemonLife
	start  int64
	answer string
	err    error
}

func (x *acting) call() *acting { return x }

// stage is what the next step of an acting does.
type stage uint8

const (
	stageBegin stage = iota
	stageEnd
	stageSettled
)

// Step takes the call's next step.
func (x *acting) Step(err error) loop.Next {
	switch {
	case errors.Is(err, loop.ErrGroupDead):
		if x.stage != stageBegin {
			x.a.undo()
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

func (x *acting) begin() loop.Next {
	x.stage = stageEnd
	if err := x.a.begin(); err != nil {
		return x.finish(err)
	}
	if len(x.r.faults) > 0 {
		return loop.Continue(x.task)
	}
	if err := x.a.admit(); err != nil {
		return x.finish(err)
	}
	return loop.StepAfter(x.r.latencyOf(x.m, &x.sub))
}

func (x *acting) end() loop.Next {
	x.stage = stageSettled
	var settle time.Duration
	var err error
	if x.answer, settle, err = x.a.end(); err != nil || settle == 0 {
		return x.finish(err)
	}
	return loop.StepAfterAnyway(settle)
}

// task is the rest of a call once it has begun and a fault is about.
func (x *acting) task(ctx context.Context) {
	done := false
	defer func() {
		if !done { // the daemon dies
			x.a.undo()
		}
	}()
	err := x.r.gate(ctx, x.d, x.m, &x.sub)
	if err == nil {
		err = x.a.admit()
	}
	if err == nil {
		err = x.r.pause(ctx, x.m, &x.sub)
	}
	var settle time.Duration
	if err == nil {
		x.answer, settle, err = x.a.end()
	}
	if err == nil && settle > 0 {
		err = x.r.l.Sleep(x.d.g.Background(), settle)
	}
	done = true
	x.finish(err)
}

func (x *acting) finish(err error) loop.Next {
	x.a.undo()
	x.err = ctxError(err)
	x.r.record(x.m, &x.sub, x.start, x.err)
	return loop.Finish()
}
