package process

import (
	"context"
	"path"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// This file is what runs in the place of programs that nobody knows.

// unknown is what a container does of whose program nothing is known: one that is to end
// does so soon, any other serves until it is told to stop.
func (r *Runner) unknown(c *records.Container) *program.Behaviour {
	if r.Options.Ends != nil && r.Options.Ends(c.Sandbox.Metadata, c.Config.Metadata.Name) {
		return program.EndingBehaviour
	}
	return program.DefaultBehaviour
}

// isUnknown reports whether a behaviour is that of a container of whose program nothing is known.
func isUnknown(b *program.Behaviour) bool {
	return b == program.DefaultBehaviour || b == program.EndingBehaviour
}

// tellUnknown says once of each image that its program is not known, unless the
// catalogue has it: then somebody has thought of it.
func (r *Runner) tellUnknown(c *records.Container, b *program.Behaviour) {
	src := c.Image.Source
	if r.Options.Unknown == nil || src.Listed || src.Told || !isUnknown(b) {
		return
	}
	src.Told = true
	r.Options.Unknown(c.ImageName())
}

// standIn says what comes of commands that the image's files don't have, of an image
// that may have others; nil where the image's commands are known. The container's own
// process does what the image's server does, or an unknown program. Beside it a command
// exits 0, as it does in a container without processes, which keeps probes and hooks
// that nobody stated from failing; the warning says so once.
func (r *Runner) standIn(in *records.Interpreted) func(name string) kernel.Command {
	src := in.Container.Image.Source
	if src.Commands != nil || src.Known != nil && src.Known.Closed {
		return nil
	}
	return func(name string) kernel.Command {
		// What is built is run, whether or not the image's files have been thought of.
		if command := r.Images.CommandsOf(src)[name]; command != nil {
			return command
		}
		return func(ctx context.Context, p *kernel.Process) int {
			// A client of a known server (redis-cli ping and its like) has a known answer.
			if t, ok := r.Images.Tool(src, p.Argv, p.Env); ok {
				return r.runTool(ctx, in, p, t)
			}
			if b := r.serverOf(in, p); b != nil {
				return r.serve(in, ctx, p, b)
			}
			p.Container().Warn("the command " + name + " is not known here, and neither are the image's; it exits 0 (a stated program can say what comes of it)")
			return 0
		}
	}
}

// runTool asks the server that a tool is for, or stops it.
func (r *Runner) runTool(ctx context.Context, in *records.Interpreted, p *kernel.Process, t images.Tool) int {
	if p.Sleep(ctx, time.Duration(t.Takes)) != nil {
		return 0
	}
	if t.Stops {
		in.Kernel.First().Signal(in.Container.StopSignal())
		return 0
	}
	host, port := t.Target()
	if port != 0 {
		conn, err := p.Dial(ctx, host, port)
		if err != nil {
			_, _ = p.FD(2).Write(ctx, []byte(t.Text(t.Down, in.Net.IP(), host, port)))
			return max(t.Exit, 1)
		}
		_ = conn.Close()
	}
	if t.Says == "" && !t.Quiet {
		p.Container().Warn("what " + path.Base(p.Argv[0]) + " does with these arguments is not known here; it exits 0 (a stated program can say what comes of it)")
	}
	_, _ = p.FD(1).Write(ctx, []byte(t.Text(t.Says, in.Net.IP(), host, port)))
	return 0
}

// serverOf is what a process does that runs the image's server, or as the container's
// first one, or as an image's entrypoint, a program that nobody knows; nil of any other, and while something else serves.
func (r *Runner) serverOf(in *records.Interpreted, p *kernel.Process) *program.Behaviour {
	if in.Stated != in.Beside {
		return nil
	}
	c := in.Container
	if k := c.Image.Source.Known; k != nil && k.Daemon != nil {
		if b := k.Daemon(&images.Start{Config: c.Config, Argv: p.Argv, Env: func() []string { return p.Env }, Files: viewed{p.View()}}); b != nil {
			return b
		}
	}
	if p != in.Kernel.First() && !isEntrypoint(p.Argv[0]) {
		return nil
	}
	b := r.unknown(c)
	r.tellUnknown(c, b)
	return b
}

// isEntrypoint reports whether a command is by its name the script that an image's own program
// is started by: a container's script that ends with it goes on for as long as that.
func isEntrypoint(name string) bool {
	switch path.Base(name) {
	case "docker-entrypoint.sh", "entrypoint.sh", "docker-entrypoint", "entrypoint":
		return true
	}
	return false
}

// serve has a process do what a behaviour says, as a stated program. What is stated beside the
// container's command answers, too.
func (r *Runner) serve(in *records.Interpreted, ctx context.Context, p *kernel.Process, b *program.Behaviour) int {
	answers := b
	if in.Beside != nil {
		answers = b.With(in.Beside)
	}
	r.announce(in, p)
	r.answerAs(in, answers)
	code := r.runStated(in, ctx, p, b)
	if p != in.Kernel.First() && ctx.Err() == nil {
		r.answerAs(in, in.Beside)
	}
	return code
}

// answerAs has an interpreted container answer on the ports of a behaviour, besides those that its
// processes listen on; nil: on no others.
func (r *Runner) answerAs(in *records.Interpreted, b *program.Behaviour) {
	c := in.Container
	in.Stated = b
	if b == nil {
		r.Net.Unserve(c)
		return
	}
	if c.Process != nil {
		c.Process.Behaviour = b
	}
	r.Net.Serve(c)
}
