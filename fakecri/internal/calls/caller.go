package calls

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Caller is one client's end of the connection to the daemon: every call comes
// in through it.
type Caller struct {
	Daemon *Daemon
	Group  *loop.Group // whose tasks call; once it is dead every call is refused
	// Quick is for calls that are made in a callback, see Client.Prompt.
	Quick bool
}

// Read runs a call that only reads, up to where its answer is made, in the
// caller's task. It gives way, unless the caller is a prompt one.
func (c *Caller) Read(ctx context.Context, m Method, s Subject) error {
	if c.Quick && c.Daemon.Prompt(m) {
		if c.Group.Dead() {
			return errDead
		}
		return nil
	}
	err := c.wait(ctx, m, &s)
	c.Daemon.record(m, &s, 0, err)
	return err
}

// wait passes what a call that only reads takes.
func (c *Caller) wait(ctx context.Context, m Method, s *Subject) error {
	if c.Group.Dead() {
		return errDead
	}
	r := c.Daemon
	d := r.Life
	var took time.Duration
	if d != nil {
		took = r.latencyOf(m, s)
	}
	if err := r.Loop.Sleep(ctx, took); err != nil {
		return CtxError(err)
	}
	d = cmp.Or(d, r.Life)
	switch {
	case d == nil:
		return errDown
	case d.Down.Fired():
		return errLost
	}
	return r.gate(ctx, d, m, s)
}

// Change runs a call that changes something as a task of the daemon's group.
// Faults act first, then do does what the call is for.
func Change[T any](ctx context.Context, c *Caller, m Method, s *Subject, do func(ctx context.Context) (T, error)) (T, error) {
	return CheckedChange(ctx, c, m, s, func() error { return nil }, do)
}

// CheckedChange is change of a call that is refused before faults act if check
// says so.
func CheckedChange[T any](ctx context.Context, c *Caller, m Method, s *Subject, check func() error, do func(ctx context.Context) (T, error)) (T, error) {
	r, d, start := c.Daemon, c.Daemon.Life, c.Daemon.Loop.UnixNano()
	var zero T
	switch {
	case c.Group.Dead():
		return zero, errDead
	case d == nil:
		return zero, c.down(ctx, m, s)
	}
	v, err := loop.Call(ctx, d.Group, methods[m].name, func(ctx context.Context) (v T, err error) {
		if err = check(); err == nil {
			err = r.gate(ctx, d, m, s)
		}
		if err == nil {
			v, err = do(ctx)
		}
		err = CtxError(err)
		r.record(m, s, start, err)
		return v, err
	})
	return v, c.answered(m, s, start, err)
}

// Update is change of a call that has its effect once its latency has passed.
func (c *Caller) Update(ctx context.Context, m Method, s *Subject, do func() error) error {
	_, err := Change(ctx, c, m, s, func(ctx context.Context) (struct{}, error) {
		if err := c.Daemon.Pause(ctx, m, s); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, do()
	})
	return err
}

// Act makes a call of a, which says what it is about, on the daemon.
func (c *Caller) Act(ctx context.Context, m Method, a Act) (string, error) {
	r, x := c.Daemon, a.Call()
	x.r, x.a, x.m, x.d, x.start = r, a, m, r.Life, r.Loop.UnixNano()
	switch {
	case c.Group.Dead():
		return "", errDead
	case x.d == nil:
		return "", c.down(ctx, m, &x.Subject)
	}
	if err := c.answered(m, &x.Subject, x.start, loop.CallSteps(ctx, x.d.Group, methods[m].name, x)); err != nil {
		return "", err
	}
	return x.answer, x.err
}

// answered is what a caller learns of a call that ended with err: the daemon
// that died in the middle of it records nothing itself.
func (c *Caller) answered(m Method, s *Subject, start int64, err error) error {
	if errors.Is(err, loop.ErrGroupDead) {
		c.Daemon.record(m, s, start, errLost)
		return errLost
	}
	return CtxError(err)
}

// Streaming returns the daemon's life for a stream, which is no call of its own:
// the call that gave out its URL was.
func (c *Caller) Streaming() (*Life, error) {
	switch {
	case c.Group.Dead():
		return nil, errDead
	case c.Daemon.Life == nil:
		return nil, errDown
	}
	return c.Daemon.Life, nil
}

// down is a call that changes something while there is no daemon.
func (c *Caller) down(ctx context.Context, m Method, s *Subject) error {
	start := c.Daemon.Loop.UnixNano()
	if err := c.Daemon.Loop.Yield(ctx); err != nil {
		return CtxError(err)
	}
	c.Daemon.record(m, s, start, errDown)
	return errDown
}

// Unimplemented is the answer to what this runtime doesn't do.
func (c *Caller) Unimplemented(ctx context.Context, name string) error {
	if c.Group.Dead() {
		return errDead
	}
	if err := c.Daemon.Loop.Yield(ctx); err != nil {
		return CtxError(err)
	}
	if c.Daemon.Life == nil {
		return errDown
	}
	return status.Errorf(codes.Unimplemented, "method %s not implemented", name)
}
