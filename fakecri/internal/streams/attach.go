package streams

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
)

// Attach is Client.AttachStream in a life of the daemon. It ends when the container's output
// does, or with d: an attachment does not outlive the daemon.
func (r *Execs) Attach(ctx context.Context, d *calls.Life, id string, s Streams) error {
	target, err := r.StreamTarget(id)
	if err != nil {
		return err
	}
	if s.Stdin == nil && s.Stdout == nil && s.Stderr == nil {
		return status.Error(codes.InvalidArgument, "one of stdin, stdout, and stderr must be set")
	}
	g := r.Loop.NewGroup("attach")
	// The taps and the feed go with the group, when the client or the container has.
	defer g.Kill()
	a := &output.Attachment{Out: output.NewTap(g, s.Stdout)}
	// A terminal has one stream for both.
	if !target.Config.Tty {
		a.Err = output.NewTap(g, s.Stderr)
	}
	r.Output.Attach(target, a)
	defer func() { r.Output.Detach(target, a) }()
	if in := target.Process.Interpreted; in != nil {
		s.Window.of(in.TTY)
		if s.Stdin != nil && in.Stdin != nil {
			g.Go("attach input", func(ctx context.Context) { r.feed(ctx, in, a, s.Stdin) })
		}
	}
	taps := 0
	for _, t := range []*output.Tap{a.Out, a.Err} {
		if t == nil {
			continue
		}
		taps++
		if err := calls.AwaitEvent(ctx, d, &t.Done); err != nil {
			return err
		}
	}
	// A client that only writes waits for the container's end.
	if taps == 0 {
		return calls.AwaitEvent(ctx, d, &a.Ended)
	}
	return nil
}
