package process

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
)

// This file makes a process of a program that is stated, of an image's server
// or of a command that nobody knows, where Options.Interpret asks for it: it
// does little, but others can be run beside it, and connected to it.

// statedProgram is the name of the program that such a process runs. It is in no image's list of
// commands, so that only this file runs it.
const statedProgram = "drydock-stated"

// installStated puts the program's file where the container's command line has
// it, if there is none. The name in PATH's first directory is where an image would have it.
func (r *Runner) installStated(in *records.Interpreted, argv []string) {
	file := argv[0]
	if !strings.Contains(file, "/") {
		file = "/usr/local/bin/" + file
		for _, e := range in.Env {
			if dirs, ok := strings.CutPrefix(e, "PATH="); ok {
				dir, _, _ := strings.Cut(dirs, ":")
				file = path.Join("/", dir, argv[0])
			}
		}
	} else if !path.IsAbs(file) {
		file = path.Join(in.Dir, file)
	}
	// Nothing is written to the machine's files.
	if !in.View.OnHost(path.Dir(file)) && in.View.MkdirAll(path.Dir(file), 0o755) == nil && in.View.WriteFile(file, kernel.ELF(statedProgram), 0o755) == nil {
		return
	}
	// The command line must find a file, or the kernel would not start it.
	// The root is readonly; what is mounted is not asked.
	own := memfs.New(memfs.Options{Loop: in.Group.Loop(), Tmpfs: []string{}})
	if own.WriteFile("/program", kernel.ELF(statedProgram), 0o755) == nil {
		_ = in.View.Namespace().Bind(file, own, "/program", true)
	}
}

// besideFile is the file of a program that is stated beside a container's command.
const besideFile = "/drydock-beside"

// startBeside starts the process that does what is stated beside a container's command. It ends
// with the command.
func (r *Runner) startBeside(in *records.Interpreted) error {
	fds := []kernel.File{r.Kernel.Kernel().Null(), in.Stdout.Dup(), in.Stderr.Dup()}
	_, err := in.Kernel.Start(kernel.Spec{Argv: []string{besideFile}, Env: in.Env, Dir: "/", Cred: in.Cred, FDs: fds})
	records.CloseAll(fds)
	if err != nil {
		return fmt.Errorf("what is stated beside the command: %w", err)
	}
	return nil
}

// statedSignals are the signals that a stated program does something on. Others kill it as they
// would any process. Those in the list are caught so that the loop below decides.
var statedSignals = []int{kernel.SIGHUP, records.SigINT, records.SigQUIT, records.SigTERM, kernel.SIGUSR1, kernel.SIGUSR2, records.SigWINCH, kernel.SIGALRM}

// commandsFor are the programs of a container: its image's, and the stated one
// if it has one. The map is the container's own, as the closure in it is.
func (r *Runner) commandsFor(in *records.Interpreted) kernel.Commands {
	src := in.Container.Image.Source
	all := r.Images.CommandsOf(src)
	if in.Stated == nil && src.Unknown() && src.Commands == nil {
		all = r.ofUnknown(src)
	}
	if in.Stated == nil && in.Beside == nil {
		return all
	}
	own := kernel.Commands{}
	maps.Copy(own, all)
	if in.Beside != nil {
		own[statedProgram] = func(ctx context.Context, p *kernel.Process) int { return r.runBeside(in, ctx, p) }
		return own
	}
	own[statedProgram] = func(ctx context.Context, p *kernel.Process) int {
		if p != in.Kernel.First() { // somebody runs the file once more
			if stands := r.standIn(in); stands != nil {
				return stands(path.Base(p.Argv[0]))(ctx, p)
			}
			return 0
		}
		return r.runStated(in, ctx, p, in.Stated)
	}
	return own
}

// runBeside does what is stated beside a container's command. A server that the command runs
// may answer already, with what is stated here (serve).
func (r *Runner) runBeside(in *records.Interpreted, ctx context.Context, p *kernel.Process) int {
	if in.Stated == nil {
		r.answerAs(in, in.Beside)
	}
	code := r.runStated(in, ctx, p, in.Beside)
	if in.Stated == in.Beside && ctx.Err() == nil {
		r.answerAs(in, nil)
	}
	return code
}

// runStated does what a behaviour says, and returns its exit code. It is a loop of
// waits: each time it does what is due by then, and computes when the next thing is. Draws are
// not made here: a process takes the least of a range.
func (r *Runner) runStated(in *records.Interpreted, ctx context.Context, p *kernel.Process, b *program.Behaviour) int {
	logged := make([]int, len(b.Logs)) // how often it has written each line
	for _, sig := range statedSignals {
		p.Disposition(sig, kernel.Catch)
	}
	started := p.StartedAt()
	for {
		r.follow(in, ctx, b, p)
		// It sleeps until the next thing that it does by itself, or is told to.
		wait, cancel := r.untilNext(in, ctx, b, logged, p.Now().Sub(started))
		i, err := loop.WaitAny(wait, &in.Exit.Asked, p.Signalled())
		cancel()
		switch {
		// The process is dead: what it returns is nobody's.
		case ctx.Err() != nil:
			return 0
		// The wait's own time is over: an end, a line of the log, or another use of memory or
		// processor.
		case err != nil:
			if end := b.RunFor.Min; end > 0 && p.Now().Sub(started) >= end {
				statedLogs(ctx, b, logged, p)
				return int(b.ExitCodeOf(in.Container.Config.Metadata.Attempt))
			}
			statedLogs(ctx, b, logged, p)
		case i == 0:
			return int(in.Exit.Code)
		default:
			// Signals other than the stop signal have no effect.
			if sig, ok := p.NextSignal(); ok && !b.OnTerm.Ignore && sig == in.Container.StopSignal() {
				_ = p.Loop().Sleep(ctx, b.OnTerm.After.Min)
				if b.OnTerm.Unhandled {
					return 128 + sig
				}
				return int(b.OnTerm.Exit)
			}
		}
	}
}

// untilNext is ctx until the next thing that the program does by itself. The function returned
// must be called, to free the timer.
func (r *Runner) untilNext(in *records.Interpreted, ctx context.Context, b *program.Behaviour, logged []int, now time.Duration) (context.Context, func()) {
	next := time.Duration(-1)
	if end := b.RunFor.Min; end > 0 {
		next = max(end-now, 0)
	}
	if _, at := nextLine(b, logged); at >= 0 && (next < 0 || max(at-now, 0) < next) {
		next = max(at-now, 0)
	}
	if at, ok := r.nextUse(in, b, now); ok && (next < 0 || at < next) {
		next = at
	}
	if next < 0 {
		return ctx, func() {}
	}
	return loop.WithTimeout(ctx, next)
}

// follow has the process use what its curves say. Memory is allocated for real, in the kernel's
// sums, so limits and the OOM killer act as for any process.
func (r *Runner) follow(in *records.Interpreted, ctx context.Context, b *program.Behaviour, p *kernel.Process) {
	now, key := p.Now().Sub(p.StartedAt()), in.Container.NoiseKey(r.Loop)
	if b.CPU != nil {
		p.BurnAt(b.CPU.At(now, key))
	}
	if more := b.MemoryCurve().At(now, key) - p.Memory(); more > 0 {
		_ = p.Alloc(ctx, more)
	} else {
		p.Free(-more)
	}
}

// followPeriod is how often a process looks at a curve that rises or falls.
const followPeriod = time.Second

// nextUse is after how long the process is to use something else. A curve that changes all along
// is looked at each followPeriod; one with steps, at its steps.
func (r *Runner) nextUse(in *records.Interpreted, b *program.Behaviour, now time.Duration) (next time.Duration, ok bool) {
	key := in.Container.NoiseKey(r.Loop)
	for _, c := range [...]*usage.Curve{b.MemoryCurve(), b.CPU} {
		at, more := c.Next(now, key)
		if !more {
			continue
		}
		// If the value moves before the next step the curve is sloped there.
		if at -= now; c.At(now, key) != c.At(now+at-1, key) {
			at = min(at, followPeriod)
		}
		if !ok || at < next {
			next, ok = at, true
		}
	}
	// It looks at the instant at which the limit is passed too, so that the kernel kills
	// it then and not at the next whole second.
	if limit := in.Container.LinuxResources().GetMemoryLimitInBytes(); ok && limit > 0 {
		if at, over := b.MemoryCurve().Over(limit, now, key); over && at > now {
			next = min(next, at-now)
		}
	}
	return next, ok
}

// nextLine is the line of the log that comes next, and when, after the start; a negative time:
// none does. Of lines at one time the first of the behaviour comes first.
func nextLine(b *program.Behaviour, logged []int) (line int, at time.Duration) {
	line, at = -1, -1
	for i := range b.Logs {
		l, written := &b.Logs[i], logged[i]
		if written > 0 && (l.Every == 0 || l.Count > 0 && written >= l.Count) {
			continue
		}
		if t := l.At + time.Duration(written)*l.Every; at < 0 || t < at {
			line, at = i, t
		}
	}
	return line, at
}

// statedLogs writes the lines that are due, and counts them.
func statedLogs(ctx context.Context, b *program.Behaviour, logged []int, p *kernel.Process) {
	now := p.Now().Sub(p.StartedAt())
	for {
		i, at := nextLine(b, logged)
		if i < 0 || at > now {
			return
		}
		logged[i]++
		l, fd := b.Logs[i], 1
		if l.Stream == program.StderrName {
			fd = 2
		}
		if f := p.FD(fd); f != nil {
			_, _ = f.Write(ctx, []byte(l.Text+"\n"))
		}
	}
}

// ExitSoon has a stated program end with a code, once it has answered. A millisecond later, so
// that the answer of the request that asks for it is sent first.
func (r *Runner) ExitSoon(c *records.Container, code int32) {
	p := c.Process
	if p == nil {
		return
	}
	r.Kernel.Powered.After(time.Millisecond, func() {
		switch {
		case c.Process != p:
		case p.Interpreted != nil && p.Interpreted.Stated != nil:
			p.Interpreted.Exit.Code = code
			p.Interpreted.Exit.Asked.Fire()
		case p.Interpreted == nil:
			r.Exit(c, records.ExitStatus{Code: code})
		}
	})
}
