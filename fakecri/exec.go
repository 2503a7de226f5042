package fakecri

import (
	"context"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/streams"
)

// ExecSync runs a command in a container that runs and returns what it wrote.
// A command that exits other than 0 is an *ExitError; one that runs longer than timeout, if that is not 0, is
// killed, and the error has the code DeadlineExceeded. If the caller goes away
// the command is killed too. Processes that the command leaves behind and that
// hold its output keep the call waiting, as containerd's
// drain_exec_sync_io_timeout of 0 has it.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	sub := c.r.recs.ContainerSubject(id)
	out, err := calls.Change(ctx, &c.by, calls.ExecSync, &sub, func(ctx context.Context) (streams.ExecResult, error) {
		return c.r.exec.ExecSync(ctx, &sub, id, cmd, timeout)
	})
	if err != nil {
		return nil, nil, err
	}
	return out.Stdout, out.Stderr, out.Err(cmd)
}
