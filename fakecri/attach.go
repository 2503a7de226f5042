package fakecri

import "context"

// AttachStream gives a client what a running container writes from now on, and
// has it feed the container's stdin if that was asked for. It returns when the
// container has ended or the client has gone; at the end of the client's input
// it detaches, unless the container's stdin is closed by that (stdin_once,
// without a terminal). A container with stdin_once has its input closed by the
// first client that ends. The terminal is the container's, whatever tty says.
func (c *Client) AttachStream(ctx context.Context, id string, tty bool, s Streams) error {
	d, err := c.by.Streaming()
	if err != nil {
		return err
	}
	return c.r.exec.Attach(ctx, d, id, s)
}
