//go:build linux

package plugins

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
)

// errEnded is what a caller is told whose kubelet has ended.
var errEnded = status.Error(codes.Unavailable, "the kubelet has ended")

// run runs a request as a task of a kubelet, and waits on the caller's goroutine: for its
// end, or that of the request. The task dies with the kubelet.
func run[T any](ctx context.Context, g *loop.Group, name string, do func(ctx context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	reply := make(chan result, 1)
	g.Loop().Post(func() {
		t := g.Go(name, func(ctx context.Context) {
			r := result{err: errEnded} // of a task that is killed
			defer func() { reply <- r }()
			r.v, r.err = do(ctx)
		})
		if t.Done() {
			reply <- result{err: errEnded}
		}
	})
	select {
	case r := <-reply:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, status.FromContextError(ctx.Err()).Err()
	}
}
