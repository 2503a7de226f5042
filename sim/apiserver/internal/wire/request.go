package wire

import (
	"time"
)

// Request is what a node asks for, as faults and errors see it.
type Request struct {
	Verb, Resource  string
	Namespace, Name string
	Heartbeat       bool
	Sent            int64 // ns since the Unix epoch, on the node's clock
	Throttled       time.Duration
}
