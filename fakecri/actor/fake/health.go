package fake

import (
	"context"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// outside is a connection that no process owns.
type outside struct{ *kernel.Conn }

func (c outside) Remote() string { return c.RemoteIP() }

// AskHealth is actor.AskHealth over a connection within the machine.
func AskHealth(ctx context.Context, c *kernel.Conn, authority, service string) (string, error) {
	return actor.AskHealth(ctx, outside{c}, authority, service)
}
