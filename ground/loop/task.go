package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// WaitKind says what a parked task waits for.
type WaitKind uint8

// What a task can wait for.
const (
	WaitNone    WaitKind = iota
	WaitTime             // the clock
	WaitTask             // another task: a signal, an event, a queue, a semaphore, a call
	WaitOutside          // an Await off the loop
)

func (k WaitKind) String() string {
	return [...]string{"nothing", "time", "task", "outside"}[k]
}

// errKilled is what a killed task panics with at each of its waits.
var errKilled = errors.New("loop: task killed")

// errPark is the error of a wait outside any task.
const errPark = "loop: a callback must not wait; start a task with Group.Go"

// Task is a piece of blocking code on a loop.
type Task struct {
	name   string
	g      *Group
	fn     func(ctx context.Context)
	co     *coro
	steps  *stepped // of a call in steps, which has no coroutine
	wake   Timer
	ctx    Context
	onExit func()

	prev, next *Task // the group's list
	done       bool
	killed     bool
	pooled     bool // of Start: serves another task once it has ended
	waitKind   WaitKind
	waitOn     string
	waitSince  int64
}

// Name returns the name given to Go.
func (t *Task) Name() string { return t.name }

// Done reports whether the task has ended.
func (t *Task) Done() bool { return t.done }

// coro is a coroutine that runs one task after another, so that starting a
// task needs no new stack.
type coro struct {
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	task   *Task
}

func (l *Loop) newCoro() *coro {
	if c := l.pool.coros.take(); c != nil {
		return c
	}
	c := &coro{}
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		roomy(0)
		for {
			c.run()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// roomy has the coroutine's stack grow from 2 to 8 KB while it is empty. A stack
// grows by being copied, frame by frame: a task that grows it on its way, twice,
// pays for all that is on it by then, which was 5 % of a pod's start.
//
//go:noinline
func roomy(at int) byte {
	var room [4 << 10]byte
	room[at]++
	return room[at/2]
}

// run runs the coroutine's task to its end; its root saves a panic's stack.
func (c *coro) run() {
	t := c.task
	normal := false
	defer func() {
		v := recover()
		switch {
		case normal:
		case v == nil:
			t.g.l.fail(fmt.Errorf("loop %s: task %s called runtime.Goexit", t.g.l.name, t.name))
		case v == any(errKilled):
		default:
			t.g.l.panicked(newPanicError("task "+t.name, v))
		}
		t.done = true
	}()
	if !t.killed {
		t.fn(&t.ctx)
	}
	normal = true
}

// fire implements doer.
func (t *Task) fire() { t.g.l.resume(t) }

// resume lets a task run until its next wait or its end.
func (l *Loop) resume(t *Task) {
	if t.done {
		return
	}
	t.waitKind = WaitNone
	if t.steps != nil && !t.steps.run() {
		if t.done {
			l.finish(t)
		}
		return
	}
	if t.co == nil {
		t.co = l.newCoro()
		t.co.task = t
	}
	l.current = t
	t.co.resume()
	l.current = nil
	if t.done {
		l.finish(t)
	}
}

// left cleans up after a Goexit, which goes on from a task through its
// coroutine into the driver: the task has no coroutine any more. It is deferred
// once a run, not once a step.
func (l *Loop) left() {
	if t := l.current; t != nil {
		l.current = nil
		t.co = nil
		l.finish(t)
	}
}

func (l *Loop) finish(t *Task) {
	c := t.co
	t.co = nil
	t.fn = nil
	if t.wake.idx >= 0 {
		t.wake.Stop()
	}
	t.g.unlink(t)
	if c != nil {
		c.task = nil
		if l.closed {
			c.stop()
		} else {
			l.pool.putCoro(c)
		}
	}
	if t.onExit != nil {
		t.onExit()
	}
	if t.pooled && t.ctx.idle() {
		l.pool.tasks.put(t, maxPooled)
	}
}

// park gives way until something wakes the task.
func (l *Loop) park(kind WaitKind, on string) {
	t := l.current
	if t == nil {
		panic(errPark)
	}
	if t.killed {
		panic(errKilled)
	}
	t.waitKind, t.waitOn, t.waitSince = kind, on, l.now
	if !t.co.yield(struct{}{}) || t.killed {
		t.killed = true
		panic(errKilled)
	}
}

// ready makes a parked task run at the present instant.
func (t *Task) ready() {
	if t.done || t.killed {
		return
	}
	if t.wake.idx >= 0 && t.g.l.heap.items[t.wake.idx].at <= t.g.l.now {
		return
	}
	t.g.l.schedule(&t.wake, t.g.l.now)
}

// Group is a set of tasks and timers that die together.
type Group struct {
	l          *Loop
	name       string
	dead       bool
	first, end *Task
	onKill     []func()
}

// NewGroup returns a living group.
func (l *Loop) NewGroup(name string) *Group {
	g := &Group{l: l, name: name, dead: l.closed}
	// forget dead groups, so that a thousand restarts leave no trace
	live := l.groups[:0]
	for _, o := range l.groups {
		if !o.dead || o.first != nil {
			live = append(live, o)
		}
	}
	l.groups = append(live, g)
	return g
}

// Loop returns the group's loop.
func (g *Group) Loop() *Loop { return g.l }

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Dead reports whether the group was killed. Boundaries to the outside (a CRI
// call, an API request) refuse a dead group.
func (g *Group) Dead() bool { return g.dead }

// OnKill has fn called when the group is killed, before its tasks unwind. It
// must not wait.
func (g *Group) OnKill(fn func()) {
	if g.dead {
		fn()
		return
	}
	g.onKill = append(g.onKill, fn)
}

// Go starts a task. The name appears in panics and reports. In a dead group
// nothing is started, and the task returned is done.
func (g *Group) Go(name string, fn func(ctx context.Context)) *Task {
	t := &Task{name: name, g: g, fn: fn}
	t.ctx.l, t.ctx.task = g.l, t
	if g.dead {
		t.done = true
		return t
	}
	g.add(t)
	return t
}

// Start is Go for a task that nobody asks about. What it is made of serves other
// tasks once it has ended: its context must not be used from then on.
func (g *Group) Start(name string, fn func(ctx context.Context)) {
	if g.dead {
		return
	}
	t := g.l.pool.tasks.take()
	if t == nil {
		t = &Task{pooled: true}
		t.ctx.task = t
	}
	t.name, t.g, t.fn, t.ctx.l = name, g, fn, g.l
	t.done, t.killed, t.waitKind = false, false, WaitNone
	g.add(t)
}

// add makes t a task of a living group; it runs at once.
func (g *Group) add(t *Task) {
	t.wake = Timer{g: g, do: t, idx: -1, stream: g.l.NewStream()}
	t.prev = g.end
	if g.end != nil {
		g.end.next = t
	} else {
		g.first = t
	}
	g.end = t
	g.l.schedule(&t.wake, g.l.now)
}

func (g *Group) unlink(t *Task) {
	if t.prev != nil {
		t.prev.next = t.next
	} else if g.first == t {
		g.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else if g.end == t {
		g.end = t.prev
	}
	t.prev, t.next = nil, nil
}

// Kill marks the group dead: its timers never fire, its tasks unwind (their
// defers run) right after the present step, before anything else happens.
func (g *Group) Kill() {
	if g.dead {
		return
	}
	g.dead = true
	for _, fn := range g.onKill {
		fn()
	}
	g.onKill = nil
	g.l.dying = append(g.l.dying, g)
}

func (l *Loop) unwindDying() {
	g := l.dying[0]
	l.dying = l.dying[1:]
	for g.first != nil {
		t := g.first
		t.killed = true
		if t.co == nil { // never ran, or runs in steps
			if t.steps != nil {
				t.steps.work.Step(ErrGroupDead)
			}
			t.done = true
			l.finish(t)
			continue
		}
		l.resume(t)
		if !t.done {
			panic("loop: killed task " + t.name + " did not end")
		}
	}
	l.heap.drop(g)
}

// TaskInfo describes a task that waits.
type TaskInfo struct {
	Name, Group, On string
	Kind            WaitKind
	// For is how long it has waited, on the loop's clock.
	For time.Duration
}

// Waiting lists the tasks that wait, by group and age. One that waits for
// another task, for long, while nothing else does anything, will never go on.
func (l *Loop) Waiting() []TaskInfo {
	var out []TaskInfo
	for _, g := range l.groups {
		for t := g.first; t != nil; t = t.next {
			out = append(out, TaskInfo{Name: t.name, Group: g.name, Kind: t.waitKind, On: t.waitOn, For: time.Duration(l.now - t.waitSince)})
		}
	}
	return out
}

// PanicError is a panic of a task or callback.
type PanicError struct {
	// Where names the task or callback.
	Where string
	// Value is what it panicked with.
	Value any
	// Stack is the stack at the panic.
	Stack []byte
}

func newPanicError(where string, v any) *PanicError {
	return &PanicError{Where: where, Value: v, Stack: debug.Stack()}
}

// Error names the task and the value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Where, e.Value) }
