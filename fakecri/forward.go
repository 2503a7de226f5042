package fakecri

import (
	"context"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// PortForwardStream connects to a port within a sandbox's network and copies
// both ways until one end closes. conn is not closed. A program that states no
// ports answers on each.
func (c *Client) PortForwardStream(ctx context.Context, podSandboxID string, port int32, conn kernel.File) error {
	if _, err := c.by.Streaming(); err != nil {
		return err
	}
	return c.r.net.Forward(ctx, podSandboxID, port, conn)
}
