package loop

import (
	"context"
	"slices"
	"time"
)

// Context is the loop's own kind of context: its deadline is on the loop's
// clock, its Done channel is made only when asked for, and it starts no
// goroutine, also not for children that the standard library makes of it.
type Context struct {
	parent   context.Context
	l        *Loop
	task     *Task
	err      error
	deadline time.Time
	done     chan struct{}
	timer    *Timer
	waiters  waiters
	after    []sequel
	// up is the context whose end ends this one, if it can end.
	up *Context
}

// sequel is what a context's end brings about: a call, or the end of a child.
type sequel struct {
	fn    *func()
	child *Context
}

// timed is a context with room for its timer.
type timed struct {
	Context
	t      Timer
	expire func()
}

// idle reports whether nobody waits for c's end or is told of it.
func (c *Context) idle() bool {
	return c.done == nil && len(c.after) == 0 && len(c.waiters.tasks) == 0
}

// reuse makes a context that is idle as good as new.
func (c *Context) reuse() {
	*c = Context{after: c.after, waiters: waiters{tasks: c.waiters.tasks}}
}

type ctxKey struct{}

// errNoLoop is the panic of a child of a context that no loop made.
const errNoLoop = "loop: the parent context belongs to no loop"

// From returns the loop that ctx belongs to, or nil.
func From(ctx context.Context) *Loop {
	if c := own(ctx); c != nil {
		return c.l
	}
	return nil
}

// own returns the nearest Context in ctx's chain.
func own(ctx context.Context) *Context {
	if c, ok := ctx.(*Context); ok {
		return c
	}
	c, _ := ctx.Value(ctxKey{}).(*Context)
	return c
}

// Deadline returns the earliest deadline of the chain.
func (c *Context) Deadline() (time.Time, bool) {
	if !c.deadline.IsZero() {
		return c.deadline, true
	}
	if c.parent != nil {
		return c.parent.Deadline()
	}
	return time.Time{}, false
}

// Done returns a channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err returns nil, context.Canceled or context.DeadlineExceeded.
func (c *Context) Err() error { return c.err }

// Value looks the key up in the chain.
func (c *Context) Value(key any) any {
	if key == (ctxKey{}) {
		return c
	}
	if c.parent != nil {
		return c.parent.Value(key)
	}
	return nil
}

// AfterFunc has f called, on the loop, when the context ends; the function
// returned takes that back. The standard library uses it for children.
func (c *Context) AfterFunc(f func()) func() bool {
	if c.err != nil {
		f()
		return func() bool { return false }
	}
	a := sequel{fn: &f}
	c.after = append(c.after, a)
	return func() bool { return c.unlink(a) }
}

func (c *Context) unlink(a sequel) bool {
	for i, o := range c.after {
		if o == a {
			c.after = slices.Delete(c.after, i, i+1)
			return true
		}
	}
	return false
}

func (c *Context) cancel(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.up != nil {
		c.up.unlink(sequel{child: c})
		c.up = nil
	}
	c.waiters.wakeAll()
	list := c.after
	c.after = nil // one that has just ended takes no more
	for _, a := range list {
		if a.child != nil {
			a.child.cancel(c.err)
		} else {
			(*a.fn)()
		}
	}
}

// WithCancel returns a context that ends with its parent or when cancelled.
// The parent must belong to a loop.
func WithCancel(parent context.Context) (context.Context, context.CancelFunc) {
	c := &Context{}
	c.descend(parent)
	return c, func() { c.cancel(context.Canceled) }
}

// WithTimeout is WithCancel with an end d from now on the loop's clock. A d of
// 0 or less ends it at once.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	r := &timed{}
	r.expire = func() { r.cancel(context.DeadlineExceeded) }
	r.begin(parent, d)
	return &r.Context, func() { r.cancel(context.Canceled) }
}

func (r *timed) begin(parent context.Context, d time.Duration) {
	c := &r.Context
	c.descend(parent)
	at := c.l.Now().Add(d)
	if cur, ok := parent.Deadline(); !ok || at.Before(cur) {
		c.deadline = at
		if d <= 0 {
			c.cancel(context.DeadlineExceeded)
		} else if c.err == nil {
			g := c.l.root
			if p := own(parent); p.task != nil {
				g = p.task.g
			}
			c.timer = &r.t
			*c.timer = Timer{g: g, do: callback(r.expire), idx: -1, stream: c.l.NewStream()}
			c.timer.Reset(d)
		}
	}
}

// Within calls fn with a context that ends with its parent, d from now on the
// loop's clock, or when fn returns. It is WithTimeout without garbage: the context
// must not be used from then on.
func Within[T any](parent context.Context, d time.Duration, fn func(ctx context.Context) (T, error)) (T, error) {
	l := From(parent)
	if l == nil {
		panic(errNoLoop)
	}
	r := l.pool.timeouts.take()
	if r == nil {
		r = &timed{}
		r.expire = func() { r.cancel(context.DeadlineExceeded) }
	}
	r.begin(parent, d)
	defer r.release()
	return fn(&r.Context)
}

// release ends a context of Within.
func (r *timed) release() {
	l := r.l
	r.cancel(context.Canceled)
	if r.idle() {
		r.reuse()
		l.pool.timeouts.put(r, maxPooled)
	}
}

// descend makes c a child of parent.
func (c *Context) descend(parent context.Context) {
	p := own(parent)
	if p == nil {
		panic(errNoLoop)
	}
	c.parent, c.l, c.task = parent, p.l, p.task
	if err := parent.Err(); err != nil {
		c.err = err
		return
	}
	if p.endless() {
		return
	}
	if p.err != nil { // parent hides it
		c.cancel(p.err)
		return
	}
	c.up = p
	p.after = append(p.after, sequel{child: c})
}

// endless reports whether c is a task's own context. That never ends: killing the
// task's group unwinds the task instead.
func (c *Context) endless() bool {
	return c.parent == nil && c.deadline.IsZero() && c.task != nil && c == &c.task.ctx
}

// Background returns a context of the group that never ends by itself.
func (g *Group) Background() context.Context { return &Context{l: g.l} }

// wait parks the current task until it is readied, or ctx ends; it returns
// ctx's error in the latter case.
func (l *Loop) wait(ctx context.Context, kind WaitKind, on string) error {
	c := own(ctx)
	if c == nil {
		l.park(kind, on)
		return ctx.Err()
	}
	// Only a context that can end needs to know who waits.
	if c.endless() {
		l.park(kind, on)
		return nil
	}
	if c.err != nil {
		return c.err
	}
	t := l.current
	if t == nil {
		panic(errPark)
	}
	c.waiters.add(t)
	defer c.waiters.remove(t)
	l.park(kind, on)
	return c.err
}
