package facade

import "context"

// Door is how the facade gets to the API, whose state lives on a loop. Its methods are
// called from any goroutine.
type Door interface {
	// Do has fn run on the API's loop when the request of the context arrives there,
	// and returns when the answer is back. fn runs even if the context ends meanwhile,
	// as a request that was sent arrives. The error is the door's own:
	// an API status that came in the place of the answer, or that none came.
	Do(ctx context.Context, fn func()) error
	// Deliver is called on the API's loop: fn runs when a message that leaves the
	// API now, for the request of the context, has arrived at the client. What is
	// delivered to one client keeps its order. fn does not wait.
	Deliver(ctx context.Context, fn func())
}
