package facade

import (
	"context"
	"errors"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Door is how the facade gets to the API, whose state lives on a loop. Its methods are
// called from any goroutine.
type Door interface {
	// Do has fn run on the API's loop when the request of the context arrives there,
	// and returns when the answer is back. fn runs even if the context ends meanwhile,
	// as a request that was sent arrives. The error is the door's own:
	// an API status that came in the place of the answer, or that none came;
	// http.ErrAbortHandler ends the client's connection without one.
	Do(ctx context.Context, fn func()) error
	// Deliver is called on the API's loop: fn runs when a message that leaves the
	// API now, for the request of the context, has arrived at the client. What is
	// delivered to one client keeps its order. fn does not wait.
	Deliver(ctx context.Context, fn func())
}

// RealDoor is the way to an API whose loop follows the wall clock (loop.NewReal): a
// message takes no time but its own.
type RealDoor struct {
	loop *loop.Loop
	gone <-chan struct{}
}

// NewRealDoor returns the way to a loop; gone is closed when the loop has ended.
func NewRealDoor(l *loop.Loop, gone <-chan struct{}) *RealDoor { return &RealDoor{l, gone} }

// errGone is the answer of an API whose loop has ended.
var errGone = errors.New("the cluster is closed")

// Do implements Door.
func (d *RealDoor) Do(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	d.loop.Post(func() {
		fn()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.gone:
		return errGone
	}
}

// Deliver implements Door.
func (d *RealDoor) Deliver(_ context.Context, fn func()) { fn() }
