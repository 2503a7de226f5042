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
func (in *interpreted) installStated(argv []string) {
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
func (r *Runtime) commandsFor(in *interpreted) kernel.Commands {
	if in.stated == nil {
		return r.commandsOf(in.c.image.source)
	}
	own := kernel.Commands{}
	for name, cmd := range r.commandsOf(in.c.image.source) { //drydock:unordered copies a map
		own[name] = cmd
	}
	own[statedProgram] = func(ctx context.Context, p *kernel.Process) int {
		if p != in.kc.First() {
			return 0 // somebody runs the file once more
		}
		return in.runStated(ctx, p)
	}
	return own
}

// exitRequest is what ends a stated program from within.
type exitRequest struct {
	asked loop.Event
	code  int32
}

// runStated does what the container's behaviour says, and returns its exit code.
func (in *interpreted) runStated(ctx context.Context, p *kernel.Process) int {
	b := in.stated
	for _, sig := range statedSignals {
		p.Disposition(sig, kernel.Catch)
	}
	started := p.StartedAt()
	for {
		in.follow(ctx, b, p)
		wait, cancel := in.untilNext(ctx, b, p.Now().Sub(started))
		i, err := loop.WaitAny(wait, &in.exit.asked, p.Signalled())
		cancel()
		switch {
		case ctx.Err() != nil:
			return 0
		case err != nil:
			if end := in.statedEnd(b); end > 0 && p.Now().Sub(started) >= end {
				in.statedLogs(ctx, b, p)
				return int(b.exitCode(in.c.config.Metadata.Attempt))
			}
			in.statedLogs(ctx, b, p)
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

// statedEnd is after how long the program ends by itself, 0 for never.
func (in *interpreted) statedEnd(b *Behaviour) time.Duration { return b.RunFor.Min }

// untilNext is ctx until the next thing that the program does by itself.
func (in *interpreted) untilNext(ctx context.Context, b *Behaviour, now time.Duration) (context.Context, func()) {
	next := time.Duration(-1)
	if end := in.statedEnd(b); end > 0 {
		next = max(end-now, 0)
	}
	if in.logged < len(b.Logs) {
		if at := max(b.Logs[in.logged].At-now, 0); next < 0 || at < next {
			next = at
		}
	}
	if at, ok := in.nextUse(b, now); ok && (next < 0 || at < next) {
		next = at
	}
	if next < 0 {
		return ctx, func() {}
	}
	return loop.WithTimeout(ctx, next)
}

// follow has the process use what its curves say.
func (in *interpreted) follow(ctx context.Context, b *Behaviour, p *kernel.Process) {
	now, key := p.Now().Sub(p.StartedAt()), in.r.noiseKey(in.c)
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
func (in *interpreted) nextUse(b *Behaviour, now time.Duration) (next time.Duration, ok bool) {
	key := in.r.noiseKey(in.c)
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
func (in *interpreted) statedLogs(ctx context.Context, b *Behaviour, p *kernel.Process) {
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
func (r *Runtime) exitSoon(c *container, code int32) {
	p := c.process
	if p == nil {
		return
	}
	r.processes.After(time.Millisecond, func() {
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
