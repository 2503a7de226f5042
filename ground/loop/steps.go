package loop

import (
	"context"
	"time"
)

// Next is what a call of CallSteps does after a step.
type Next struct {
	kind nextKind
	wait time.Duration
	task func(ctx context.Context)
}

type nextKind uint8

const (
	nextDone nextKind = iota
	nextWait
	nextWaitAnyway
	nextTask
)

// Finish ends the call: it is answered.
func Finish() Next { return Next{} }

// StepAfter has the next step follow after d, or when the caller gives up.
func StepAfter(d time.Duration) Next { return Next{kind: nextWait, wait: d} }

// StepAfterAnyway has the next step follow after d, whether or not the caller
// gives up.
func StepAfterAnyway(d time.Duration) Next { return Next{kind: nextWaitAnyway, wait: d} }

// Continue has the rest of the call run as a task, at once: what is to come may
// have to wait for something.
func Continue(task func(ctx context.Context)) Next { return Next{kind: nextTask, task: task} }

// Steps is the work of a call of CallSteps.
type Steps interface {
	// Step runs a step and says what comes next. It must not wait. err is nil, or
	// tells that the wait before was cut short since the caller gave up, or, if it
	// is ErrGroupDead, that the group was killed: what Step then returns is
	// ignored, it only cleans up.
	Step(err error) Next
}

// StepsFunc is a function as Steps.
type StepsFunc func(err error) Next

// Step calls f.
func (f StepsFunc) Step(err error) Next { return f(err) }

// CallSteps is Call for work that waits for time only. It runs as steps, which
// need no coroutine: a coroutine costs 3 to 4 KB and there may be one for each of
// 150,000 pods that start. The steps take place when, and in the order in which,
// those of a Call would.
func CallSteps(ctx context.Context, g *Group, name string, work Steps) error {
	if From(ctx) != g.l {
		panic("loop: CallSteps into a group of another loop; use Send")
	}
	if g.dead {
		return ErrGroupDead
	}
	c := g.l.pool.calls.take()
	if c == nil {
		c = &stepped{}
		c.task.onExit = c.exit
	}
	c.work = work
	c.cctx.l, c.cctx.task = g.l, &c.task
	t := &c.task
	t.name, t.g, t.steps, t.done = name, g, c, false
	g.add(t)
	defer c.leave()
	if err := c.e.Wait(ctx); err != nil {
		return err
	}
	return c.err
}

// stepped is a call in steps.
type stepped struct {
	task Task
	cctx Context // of the call, once it runs as a task; ends when the caller gives up
	work Steps
	e    Event
	err  error
	// cut tells that the present wait ends when the caller gives up.
	cut, answered bool
	left          bool // the caller has
}

// leave is what the caller does last. One that has no answer gives up, which it
// tells the call.
func (c *stepped) leave() {
	if c.e.fired {
		c.release()
		return
	}
	c.left = true
	c.cctx.cancel(context.Canceled)
	if c.cut {
		c.task.ready()
	}
}

// release lets another call have what this one was made of, once it has ended
// and its caller left.
func (c *stepped) release() {
	l := c.task.g.l
	if !c.cctx.idle() || l.closed {
		return
	}
	c.cctx.reuse()
	*c = stepped{cctx: c.cctx, task: Task{onExit: c.task.onExit, done: true}, e: Event{w: waiters{tasks: c.e.w.tasks}}}
	l.pool.calls.put(c, maxPooled)
}

// run takes a step, and reports whether the call goes on as a task.
func (c *stepped) run() (asTask bool) {
	t := &c.task
	defer func() {
		if v := recover(); v != nil {
			t.done = true
			t.g.l.panicked(newPanicError("task "+t.name, v))
		}
	}()
	var err error
	if c.cut {
		err = c.cctx.err
	}
	c.cut = false
	next := c.work.Step(err)
	if next.kind == nextWait && c.cctx.err != nil { // as a Sleep of a context that has ended
		next = c.work.Step(c.cctx.err)
	}
	switch next.kind {
	case nextDone:
		c.answered, t.done = true, true
	case nextTask:
		t.steps = nil
		t.fn = func(context.Context) {
			next.task(&c.cctx)
			c.answered = true
		}
		return true
	default:
		c.cut = next.kind == nextWait
		t.waitKind, t.waitOn, t.waitSince = WaitTime, "sleep", t.g.l.now
		t.g.l.schedule(&t.wake, t.g.l.now+int64(max(next.wait, 0)))
	}
	return false
}

// exit answers the caller.
func (c *stepped) exit() {
	if !c.answered {
		c.err = ErrGroupDead
	}
	c.e.Fire()
	if c.left {
		c.release()
	}
}
