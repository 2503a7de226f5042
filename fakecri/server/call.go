//go:build linux

package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
)

var (
	// The codes are those that a client of containerd gets in the same case: a socket without a
	// server is Unavailable, which kubelets retry.
	errStopping = status.Error(codes.Unavailable, "the runtime is stopping")
	errDown     = status.Error(codes.Unavailable, "connection error: the runtime's daemon is down")
	errInside   = status.Error(codes.Internal, "internal error; the runtime's log says more")
)

// result is what a call came to. Exactly one is sent per call, unless the loop
// ends first.
type result[T any] struct {
	v   T
	err error
}

// onLoop runs fn, which may wait, as a task of the loop, and returns what it
// returns. The task's context ends with ctx, that is with the client's call;
// onLoop returns once the task has ended nevertheless, so that what a cancelled
// call frees is free. It is called from any goroutine but the loop's own, which it would wait
// for. The call's error has a gRPC code, or gets one from toStatus.
func onLoop[T any](ctx context.Context, s *Server, name string, fn func(ctx context.Context, c *fakecri.Client) (T, error)) (T, error) {
	// With room for one, so the loop never waits for a client that has gone.
	reply := make(chan result[T], 1)
	begun := &inFlight{}
	s.loop.Post(func() { startTask(s, name, begun, reply, fn) })
	stop := context.AfterFunc(ctx, func() {
		s.loop.Post(func() { begun.end(ctx.Err()) })
	})
	// If ctx has ended before the task began, end keeps it from beginning.
	defer stop()
	return await(s, reply)
}

// inFlight ends a call's task; its fields are for use on the loop. Both sides come by Post, so no
// lock is needed.
type inFlight struct {
	cancel func(error)
	err    error
}

// end cancels the task, or keeps it from beginning.
func (f *inFlight) end(err error) {
	f.err = err
	if f.cancel != nil {
		f.cancel(err)
	}
}

// startTask runs fn as a task and sends what it came to, once, also if the task
// panics or is killed.
func startTask[T any](s *Server, name string, f *inFlight, reply chan<- result[T], fn func(ctx context.Context, c *fakecri.Client) (T, error)) {
	t := s.group.Go(name, func(ctx context.Context) {
		// What the deferred function sends unless something better is put there.
		res := result[T]{err: errInside} // of a task that panics
		defer func() {
			if s.group.Dead() {
				res.err = errStopping
			}
			reply <- res
		}()
		// ctx of the client can't be used on the loop, so an end of it becomes an end of this
		// one.
		ctx, f.cancel = loop.WithEnd(ctx)
		if f.err != nil {
			f.cancel(f.err)
		}
		if err := ctx.Err(); err != nil {
			res.err = status.FromContextError(err).Err()
			return
		}
		// The runtime runs some calls as tasks of the daemon: one of those that panics looks like
		// a daemon that went away, but for the count.
		panics := s.panics.Load()
		res.v, res.err = fn(ctx, s.client)
		if s.panics.Load() != panics && status.Code(res.err) == codes.Unavailable {
			res.err = errInside // the daemon's task for this call is gone
		}
		if fakecri.IsDown(res.err) {
			res.err = errDown // without the address that containerd would have
		}
	})
	// The group was dead already: Go made no task, and nobody would reply.
	if t.Done() {
		reply <- result[T]{err: errStopping}
	}
}

// await waits for a reply, which never comes if the loop ends first. The reply may have been sent
// just before the end, so it is looked for once more.
func await[T any](s *Server, reply <-chan result[T]) (T, error) {
	select {
	case r := <-reply:
		return r.v, r.err
	case <-s.ended:
	}
	select {
	case r := <-reply:
		return r.v, r.err
	default:
		var zero T
		return zero, errStopping
	}
}

// reading is onLoop for a method that only reads. If the runtime can answer at
// once, it does so in a callback; fn may wait otherwise. prompt is a client that never waits.
// Answers says whether it can take the call, which faults and a daemon that is down prevent, as
// both may delay it.
func reading[T any](ctx context.Context, s *Server, name string, fn func(ctx context.Context, c *fakecri.Client) (T, error)) (T, error) {
	reply := make(chan result[T], 1)
	begun := &inFlight{}
	s.loop.Post(func() {
		if !s.prompt.Answers(name) {
			startTask(s, name, begun, reply, fn)
			return
		}
		res := result[T]{err: errInside}
		defer func() { reply <- res }()
		res.v, res.err = fn(s.background, s.prompt)
	})
	// Most calls are over before anybody could tell that they have been
	// cancelled.
	select {
	case r := <-reply:
		return r.v, r.err
	case <-s.ended:
		return await(s, reply)
	case <-ctx.Done():
		s.loop.Post(func() { begun.end(ctx.Err()) })
		return await(s, reply)
	}
}

// exitCode is the code of a command that ran and did not exit 0. The CRI has a code other than 0
// be no error, but Go's interface of it has.
func exitCode(err error) (int32, bool) {
	var e *fakecri.ExitError
	if errors.As(err, &e) {
		return int32(e.Code), true
	}
	return 0, false
}
