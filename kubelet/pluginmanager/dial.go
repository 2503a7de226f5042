package pluginmanager

import (
	"context"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// dialTimeout is for how long a plugin may not listen yet, dialPause the time between
// tries (gRPC's first).
const (
	dialTimeout = 10 * time.Second
	dialPause   = time.Second
)

// Dial connects to a plugin that has just registered, or is about to: one that doesn't
// listen yet is waited for, for up to 10 s (upstream's dials that block). The error is that
// of the last try.
func Dial(ctx context.Context, s Sockets, socket string) (Conn, error) {
	ctx, cancel := loop.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		c, err := s.Dial(ctx, socket)
		if err == nil {
			return c, nil
		}
		if loop.From(ctx).Sleep(ctx, dialPause) != nil {
			return nil, err //nolint:wrapcheck // gRPC's, as it is
		}
	}
}
