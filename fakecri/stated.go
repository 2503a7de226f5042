package fakecri

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
)

// This file makes a process of a program that is stated, of an image's server
// or of a command that nobody knows, where Options.Interpret asks for it: it
// does little, but others can be run beside it, and connected to it.

// statedProgram is the name of the program that such a process runs.
const statedProgram = "drydock-stated"

// statedArgv is the command line of a container whose program is stated.
func (c *container) statedArgv() []string {
	if argv := c.argv(); len(argv) > 0 {
		return argv
	}
	return []string{"/entrypoint"}
}

// installStated puts the program's file where the container's command line has
// it, if there is none.
func (r *runner) installStated(in *interpreted, argv []string) {
	file := argv[0]
	if !strings.Contains(file, "/") {
		file = "/usr/local/bin/" + file
		for _, e := range in.env {
			if dirs, ok := strings.CutPrefix(e, "PATH="); ok {
				dir, _, _ := strings.Cut(dirs, ":")
				file = path.Join("/", dir, argv[0])
			}
		}
	} else if !path.IsAbs(file) {
		file = path.Join(in.dir, file)
	}
	if !in.view.OnHost(path.Dir(file)) && in.view.MkdirAll(path.Dir(file), 0o755) == nil && in.view.WriteFile(file, kernel.ELF(statedProgram), 0o755) == nil {
		return
	}
	// The root is readonly; what is mounted is not asked.
	own := memfs.New(memfs.Options{Loop: in.group.Loop(), Tmpfs: []string{}})
	if own.WriteFile("/program", kernel.ELF(statedProgram), 0o755) == nil {
		_ = in.view.Namespace().Bind(file, own, "/program", true)
	}
}

// statedSignals are the signals that a stated program does something on.
var statedSignals = []int{kernel.SIGHUP, sigINT, sigQUIT, sigTERM, kernel.SIGUSR1, kernel.SIGUSR2, sigWINCH, kernel.SIGALRM}

// commandsFor are the programs of a container: its image's, and the stated one
// if it has one.
func (r *runner) commandsFor(in *interpreted) kernel.Commands {
	if in.stated == nil {
		return r.images.commandsOf(in.c.image.source)
	}
	own := kernel.Commands{}
	for name, cmd := range r.images.commandsOf(in.c.image.source) { //drydock:unordered copies a map
		own[name] = cmd
	}
	own[statedProgram] = func(ctx context.Context, p *kernel.Process) int {
		if p != in.kc.First() {
			return 0 // somebody runs the file once more
		}
		return r.runStated(in, ctx, p)
	}
	return own
}

// exitRequest is what ends a stated program from within.
type exitRequest struct {
	asked loop.Event
	code  int32
}

// runStated does what the container's behaviour says, and returns its exit code.
func (r *runner) runStated(in *interpreted, ctx context.Context, p *kernel.Process) int {
	b := in.stated
	for _, sig := range statedSignals {
		p.Disposition(sig, kernel.Catch)
	}
	started := p.StartedAt()
	for {
		r.follow(in, ctx, b, p)
		wait, cancel := r.untilNext(in, ctx, b, p.Now().Sub(started))
		i, err := loop.WaitAny(wait, &in.exit.asked, p.Signalled())
		cancel()
		switch {
		case ctx.Err() != nil:
			return 0
		case err != nil:
			if end := b.RunFor.Min; end > 0 && p.Now().Sub(started) >= end {
				r.statedLogs(in, ctx, b, p)
				return int(b.exitCode(in.c.config.Metadata.Attempt))
			}
			r.statedLogs(in, ctx, b, p)
		case i == 0:
			return int(in.exit.code)
		default:
			if sig, ok := p.NextSignal(); ok && !b.OnTerm.Ignore && sig == in.c.stopSignal() {
				_ = p.Loop().Sleep(ctx, b.OnTerm.After.Min)
				if b.OnTerm.Unhandled {
					return 128 + sig
				}
				return int(b.OnTerm.Exit)
			}
		}
	}
}

// untilNext is ctx until the next thing that the program does by itself.
func (r *runner) untilNext(in *interpreted, ctx context.Context, b *Behaviour, now time.Duration) (context.Context, func()) {
	next := time.Duration(-1)
	if end := b.RunFor.Min; end > 0 {
		next = max(end-now, 0)
	}
	if in.logged < len(b.Logs) {
		if at := max(b.Logs[in.logged].At-now, 0); next < 0 || at < next {
			next = at
		}
	}
	if at, ok := r.nextUse(in, b, now); ok && (next < 0 || at < next) {
		next = at
	}
	if next < 0 {
		return ctx, func() {}
	}
	return loop.WithTimeout(ctx, next)
}

// follow has the process use what its curves say.
func (r *runner) follow(in *interpreted, ctx context.Context, b *Behaviour, p *kernel.Process) {
	now, key := p.Now().Sub(p.StartedAt()), in.c.noiseKey(r.l)
	if b.CPU != nil {
		p.BurnAt(b.CPU.At(now, key))
	}
	if more := b.memory().At(now, key) - p.Memory(); more > 0 {
		_ = p.Alloc(ctx, more)
	} else {
		p.Free(-more)
	}
}

// followPeriod is how often a process looks at a curve that rises or falls.
const followPeriod = time.Second

// nextUse is after how long the process is to use something else.
func (r *runner) nextUse(in *interpreted, b *Behaviour, now time.Duration) (next time.Duration, ok bool) {
	key := in.c.noiseKey(r.l)
	for _, c := range [...]*usage.Curve{b.memory(), b.CPU} {
		at, more := c.Next(now, key)
		if !more {
			continue
		}
		if at -= now; c.At(now, key) != c.At(now+at-1, key) {
			at = min(at, followPeriod)
		}
		if !ok || at < next {
			next, ok = at, true
		}
	}
	if limit := in.c.linuxResources().GetMemoryLimitInBytes(); ok && limit > 0 {
		if at, over := b.memory().Over(limit, now, key); over && at > now {
			next = min(next, at-now)
		}
	}
	return next, ok
}

// statedLogs writes the lines that are due.
func (r *runner) statedLogs(in *interpreted, ctx context.Context, b *Behaviour, p *kernel.Process) {
	now := p.Now().Sub(p.StartedAt())
	for in.logged < len(b.Logs) && b.Logs[in.logged].At <= now {
		l := b.Logs[in.logged]
		in.logged++
		fd := 1
		if l.Stream == stderrName {
			fd = 2
		}
		if f := p.FD(fd); f != nil {
			_, _ = f.Write(ctx, []byte(l.Text+"\n"))
		}
	}
}

// exitSoon has a stated program end with a code, once it has answered.
func (r *runner) exitSoon(c *container, code int32) {
	p := c.process
	if p == nil {
		return
	}
	r.kern.powered.After(time.Millisecond, func() {
		switch {
		case c.process != p:
		case p.in != nil && p.in.stated != nil:
			p.in.exit.code = code
			p.in.exit.asked.Fire()
		case p.in == nil:
			r.exit(c, exitStatus{code: code})
		}
	})
}
