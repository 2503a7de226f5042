package process

import (
	"context"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// standIn says what comes of commands that are run beside a program that is
// stated, and that nobody knows: they exit 0, as they do in a container without
// processes. It is nil where the image's commands are known. Exit code 0 keeps probes and hooks
// that nobody stated from failing; the warning says so once.
func (r *Runner) standIn(in *records.Interpreted) func(name string) kernel.Command {
	src := in.Container.Image.Source
	if in.Stated == nil || src.Commands != nil || src.Known != nil && src.Known.Closed {
		return nil
	}
	return func(name string) kernel.Command {
		return func(ctx context.Context, p *kernel.Process) int {
			// A client of a known server (redis-cli ping and its like) has a known answer.
			if out := r.Images.ClientAnswer(p.Argv); out != "" {
				_, _ = p.FD(1).Write(ctx, []byte(out))
				return 0
			}
			p.Container().Warn("the command " + name + " is not known here, and neither are the image's; it exits 0 (a stated program can say what comes of it)")
			return 0
		}
	}
}
