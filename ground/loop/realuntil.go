package loop

import (
	"context"
	"time"
)

// RunRealUntil is RunReal up to a time of the loop's clock, so that the caller
// may act on the loop there, while no driver runs it, and go on. It returns
// early, with nil, when ctx ends.
func (l *Loop) RunRealUntil(ctx context.Context, limit time.Time) error {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	defer l.root.At(limit, cancel).Stop()
	return l.RunReal(stop)
}
