// Package wire is what is between who asks and the API: requests as faults and
// errors see them (request.go), faults (faults.go), and what client-go does about
// limits and refusals (limits.go). It knows neither objects nor who handles a
// request; a facade over HTTP would make its requests here.
package wire

import (
	"time"
)

// Request is what a node asks for, as faults and errors see it.
type Request struct {
	Verb, Resource string
	// Group is the resource's API group; "" is the one that has a resource of this name
	// among what the cluster itself asks for.
	Group           string
	Namespace, Name string
	Heartbeat       bool
	// Token tells that who asks shows a token, not a node's certificate.
	Token     bool
	Sent      int64 // ns since the Unix epoch, on the node's clock
	Throttled time.Duration
}
