package facade

import (
	"sync/atomic"
	"time"
)

// clock remembers the cluster's time, for handlers off the API's loop: as of the
// last crossing, which is that of their own request unless another came in between.
type clock struct{ nanos atomic.Int64 }

// set is called on the API's loop.
func (c *clock) set(t time.Time) { c.nanos.Store(t.UnixNano()) }

func (c *clock) now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }
