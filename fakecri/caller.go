package fakecri

import (
	"context"
	"errors"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// caller is one client's end of the connection to the daemon: every call comes
// in through it.
type caller struct {
	r *callDaemon
	g *loop.Group // whose tasks call; once it is dead every call is refused
	// prompt is for calls that are made in a callback, see Client.Prompt.
	prompt bool
}

// read runs a call that only reads, up to where its answer is made, in the
// caller's task. It gives way, unless the caller is a prompt one.
func (c *caller) read(ctx context.Context, m method, s subject) error {
	if c.prompt && c.r.prompt(m) {
		if c.g.Dead() {
			return errDead
		}
		return nil
	}
	err := c.wait(ctx, m, &s)
	c.r.record(m, &s, 0, err)
	return err
}

// wait passes what a call that only reads takes.
func (c *caller) wait(ctx context.Context, m method, s *subject) error {
	if c.g.Dead() {
		return errDead
	}
	r := c.r
	d := r.life
	var took time.Duration
	if d != nil {
		took = r.latencyOf(m, s)
	}
	if err := r.l.Sleep(ctx, took); err != nil {
		return ctxError(err)
	}
	if d == nil {
		d = r.life
	}
	switch {
	case d == nil:
		return errDown
	case d.down.Fired():
		return errLost
	}
	return r.gate(ctx, d, m, s)
}

// change runs a call that changes something as a task of the daemon's group.
// Faults act first, then do does what the call is for.
func change[T any](ctx context.Context, c *caller, m method, s *subject, do func(ctx context.Context) (T, error)) (T, error) {
	return checkedChange(ctx, c, m, s, func() error { return nil }, do)
}

// checkedChange is change of a call that is refused before faults act if check
// says so.
func checkedChange[T any](ctx context.Context, c *caller, m method, s *subject, check func() error, do func(ctx context.Context) (T, error)) (T, error) {
	r, d, start := c.r, c.r.life, c.r.l.UnixNano()
	var zero T
	switch {
	case c.g.Dead():
		return zero, errDead
	case d == nil:
		return zero, c.down(ctx, m, s)
	}
	v, err := loop.Call(ctx, d.g, methods[m].name, func(ctx context.Context) (v T, err error) {
		if err = check(); err == nil {
			err = r.gate(ctx, d, m, s)
		}
		if err == nil {
			v, err = do(ctx)
		}
		err = ctxError(err)
		r.record(m, s, start, err)
		return v, err
	})
	return v, c.answered(m, s, start, err)
}

// update is change of a call that has its effect once its latency has passed.
func (c *caller) update(ctx context.Context, m method, s *subject, do func() error) error {
	_, err := change(ctx, c, m, s, func(ctx context.Context) (struct{}, error) {
		if err := c.r.pause(ctx, m, s); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, do()
	})
	return err
}

// act makes a call of a, which says what it is about, on the daemon.
func (c *caller) act(ctx context.Context, m method, a act) (string, error) {
	r, x := c.r, a.call()
	x.r, x.a, x.m, x.d, x.start = r, a, m, r.life, r.l.UnixNano()
	switch {
	case c.g.Dead():
		return "", errDead
	case x.d == nil:
		return "", c.down(ctx, m, &x.sub)
	}
	if err := c.answered(m, &x.sub, x.start, loop.CallSteps(ctx, x.d.g, methods[m].name, x)); err != nil {
		return "", err
	}
	return x.answer, x.err
}

// answered is what a caller learns of a call that ended with err: the daemon
// that died in the middle of it records nothing itself.
func (c *caller) answered(m method, s *subject, start int64, err error) error {
	if errors.Is(err, loop.ErrGroupDead) {
		c.r.record(m, s, start, errLost)
		return errLost
	}
	return ctxError(err)
}

// streaming returns the daemon's life for a stream, which is no call of its own:
// the call that gave out its URL was.
func (c *caller) streaming() (*daemonLife, error) {
	switch {
	case c.g.Dead():
		return nil, errDead
	case c.r.life == nil:
		return nil, errDown
	}
	return c.r.life, nil
}

// down is a call that changes something while there is no daemon.
func (c *caller) down(ctx context.Context, m method, s *subject) error {
	start := c.r.l.UnixNano()
	if err := c.r.l.Yield(ctx); err != nil {
		return ctxError(err)
	}
	c.r.record(m, s, start, errDown)
	return errDown
}

// unimplemented is the answer to what this runtime doesn't do.
func (c *caller) unimplemented(ctx context.Context, name string) error {
	if c.g.Dead() {
		return errDead
	}
	if err := c.r.l.Yield(ctx); err != nil {
		return ctxError(err)
	}
	if c.r.life == nil {
		return errDown
	}
	return status.Errorf(codes.Unimplemented, "method %s not implemented", name)
}
