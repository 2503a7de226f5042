package loop

import (
	"context"
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
	waiters  []*Task
	after    []*afterFunc
	unlink   func() bool
}

type afterFunc struct{ fn func() }

type ctxKey struct{}

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
	a := &afterFunc{f}
	c.after = append(c.after, a)
	return func() bool {
		for i, o := range c.after {
			if o == a {
				c.after = append(c.after[:i], c.after[i+1:]...)
				return true
			}
		}
		return false
	}
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
	if c.unlink != nil {
		c.unlink()
	}
	ws := c.waiters
	c.waiters = nil
	for _, t := range ws {
		t.ready()
	}
	fns := c.after
	c.after = nil
	for _, a := range fns {
		a.fn()
	}
}

// WithCancel returns a context that ends with its parent or when cancelled.
// The parent must belong to a loop.
func WithCancel(parent context.Context) (context.Context, context.CancelFunc) {
	c := child(parent)
	return c, func() { c.cancel(context.Canceled) }
}

// WithTimeout is WithCancel with an end d from now on the loop's clock. A d of
// 0 or less ends it at once.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := child(parent)
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
			c.timer = g.After(d, func() { c.cancel(context.DeadlineExceeded) })
		}
	}
	return c, func() { c.cancel(context.Canceled) }
}

func child(parent context.Context) *Context {
	p := own(parent)
	if p == nil {
		panic("loop: the parent context belongs to no loop")
	}
	c := &Context{parent: parent, l: p.l, task: p.task}
	if err := parent.Err(); err != nil {
		c.err = err
		return c
	}
	c.unlink = p.AfterFunc(func() { c.cancel(p.err) })
	return c
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
	// Only a context that can end needs to know who waits. The task's own
	// context never ends: killing its group unwinds the task instead.
	if c.parent == nil && c.deadline.IsZero() && c.task != nil && c == &c.task.ctx {
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
	c.waiters = append(c.waiters, t)
	defer c.forget(t)
	l.park(kind, on)
	return c.err
}

func (c *Context) forget(t *Task) {
	for i, o := range c.waiters {
		if o == t {
			c.waiters = append(c.waiters[:i], c.waiters[i+1:]...)
			return
		}
	}
}
