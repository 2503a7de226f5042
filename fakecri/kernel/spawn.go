package kernel

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// defaultPath is what runc searches when the environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// program is a command that was found in a file. argv may differ from what was asked: an
// interpreter stands in front, or "busybox" is gone.
type program struct {
	run  Command
	argv []string
}

// StandaloneApplet is what LookPath finds for an applet of a standalone busybox. No such file
// needs to exist: program is asked for it under the applet's name.
const StandaloneApplet = "/bin/busybox"

// LookPath finds a program as execvp does: a name with a slash is itself, else
// the first executable file in the directories of pathEnv. The error is
// linux.ENOENT, or EACCES if only files without permission were found. The shell and applets call it
// before each start. A standalone busybox never looks at PATH for its applets.
func (p *Process) LookPath(name, pathEnv string) (string, error) {
	if c := p.c; c != nil && c.opts.Standalone != nil && c.opts.Standalone(name) {
		return StandaloneApplet, nil
	}
	file, err := p.view.lookPath(name, pathEnv)
	if err != nil && p.view.standIn(name, err) != nil {
		return standInDir + name, nil
	}
	return file, err
}

// standInDir is where a program without a file is taken to be. The program sees it as its own path.
const standInDir = "/usr/local/bin/"

// standIn is what runs in place of a program whose file could not be found
// because of err, or nil. What is missing on a mount of the machine's files is
// missing. Stand-ins let pods run whose image lacks the program that the pod names: images are mostly
// made up, and hold busybox alone.
func (v *View) standIn(name string, err error) Command {
	if err != linux.ENOENT && err != linux.ENOTDIR || name == "" || v.p == nil || v.p.c == nil || v.p.c.opts.StandIn == nil {
		return nil
	}
	if strings.Contains(name, "/") && v.OnHost(name) {
		return nil
	}
	return v.p.c.opts.StandIn(strings.TrimPrefix(name, standInDir))
}

// lookPath is the search itself, without applets and stand-ins. An empty element of PATH is the
// working directory, and leaves the name as it is.
func (v *View) lookPath(name, pathEnv string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	err := linux.ENOENT
	for _, dir := range strings.Split(pathEnv, ":") {
		if name == "" {
			break
		}
		file := path.Join(dir, name)
		if dir == "." {
			file = "./" + name
		}
		switch v.executable(file) {
		case 0:
			return file, nil
		// Remembered, while the search goes on: execvp(3) says EACCES only if nothing better is
		// found.
		case linux.EACCES:
			err = linux.EACCES
		}
	}
	return "", err
}

// executable reports whether a path leads to a file that may be executed.
func (v *View) executable(name string) linux.Errno {
	at, errno := v.resolve(name, true)
	switch {
	case errno != 0:
		return errno
	case !at.exists():
		return linux.ENOENT
	case !at.mode().IsRegular() || !v.may(&at, 1):
		return linux.EACCES
	}
	return 0
}

// program reads what a file is as a program. depth counts interpreters, of which Linux allows
// five in a row. A script's interpreter is not searched in PATH, and has one argument at most:
// what follows its name, as one word.
func (v *View) program(c *Container, name string, argv []string, depth int) (program, *ExecError) {
	fail := func(errno linux.Errno) (program, *ExecError) {
		return program{}, &ExecError{Path: name, Errno: errno}
	}
	if errno := v.executable(name); errno != 0 {
		// Only what was asked for itself can have a stand-in, not an interpreter.
		if run := v.standIn(name, errno); run != nil && depth == 0 {
			return program{run, argv}, nil
		}
		return fail(errno)
	}
	at, _ := v.resolve(name, true)
	// Linux reads 256 bytes for it as well (BINPRM_BUF_SIZE), so a longer first line is cut.
	head := string(at.head(256))
	if rest, ok := strings.CutPrefix(head, elfHeader); ok {
		prog, _, ok := strings.Cut(rest, "\n")
		if !ok || prog == "" {
			return fail(linux.ENOEXEC)
		}
		return c.command(prog, argv), nil
	}
	rest, ok := strings.CutPrefix(head, "#!")
	if !ok {
		return fail(linux.ENOEXEC)
	}
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.Trim(line, " \t")
	interp, arg, hasArg := strings.Cut(line, " ")
	if interp == "" || depth > 4 {
		return fail(linux.ENOEXEC)
	}
	args := []string{interp}
	if hasArg {
		args = append(args, strings.Trim(arg, " \t"))
	}
	args = append(args, name)
	if len(argv) > 1 {
		args = append(args, argv[1:]...)
	}
	prog, err := v.program(c, interp, args, depth+1)
	if err != nil {
		// The error names the script, as the kernel's ENOENT for a missing interpreter is about
		// that.
		return program{}, &ExecError{Path: name, Errno: err.Errno, Interpreter: interp}
	}
	return prog, nil
}

// command looks a program up in the container's commands. 127 and the message are what a busybox
// without that applet gives; the container's log shows it.
func (c *Container) command(name string, argv []string) program {
	applet := name
	if name == "busybox" {
		applet = strings.TrimPrefix(path.Base(first(argv)), "-")
		// "busybox NAME ..." runs NAME.
		if applet == "busybox" && len(argv) > 1 {
			applet, argv = argv[1], argv[1:]
		}
	}
	if run := c.opts.Commands[applet]; run != nil {
		return program{run, argv}
	}
	if c.opts.UnknownCommand != nil {
		c.opts.UnknownCommand(applet)
	}
	return program{func(ctx context.Context, p *Process) int {
		if w := p.FD(2); w != nil {
			_, _ = w.Write(ctx, []byte(applet+": applet not found\n"))
		}
		return 127
	}, argv}
}

// first is argv[0], empty if there is none.
func first(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return argv[0]
}

// newProcess makes a process's record and numbers it. It has no task yet. Grown is called after
// the process is in the lists: the limits of pids and memory above look at those.
func (c *Container) newProcess(name string, parent *Process) *Process {
	l := c.m.l
	p := &Process{c: c, parent: parent, ns: c.pids, Umask: 0o022, Dir: "/", startedAt: l.UnixNano()}
	// Only forks can be refused here; Spawn has asked before.
	p.refused = parent != nil && !c.mayFork()
	p.view = View{ns: c.opts.Root.ns, p: p}
	p.group = l.NewGroup(name)
	// Also by die, for which vanish then does nothing.
	p.group.OnKill(p.vanish)
	c.pids.add(p)
	p.pgid = p.pid
	c.procs = append(c.procs, p)
	c.m.processes++
	if c.m.opts.Grown != nil {
		c.m.opts.Grown()
	}
	return p
}

// launch starts the body of a process. A body that returns ends its process, and with it all
// tasks that Go has started.
func (p *Process) launch(name string, forked bool, body Command) {
	p.group.Go(name, func(ctx context.Context) {
		p.ctx = &processContext{ctx, p}
		cost, mem := startCost, int64(programMemory)
		if forked {
			cost, mem = forkCost, forkMemory
		}
		_ = p.Step(ctx, cost)
		_ = p.Alloc(p.ctx, mem)
		code := body(p.ctx, p)
		p.die(Exit{Code: code & 0xff})
	})
}

// dup returns references of one's own to files. Closed entries stay nil, so numbers are kept.
func dup(fds []File) []File {
	out := make([]File, len(fds))
	for i, f := range fds {
		if f != nil {
			out[i] = f.Dup()
		}
	}
	return out
}

// child makes a child with what a fork hands down.
func (p *Process) child(name string, fds []File) *Process {
	c := p.c.newProcess(name, p)
	c.Argv, c.Env, c.Dir, c.Cred, c.Umask = p.Argv, p.Env, p.Dir, p.Cred, p.Umask
	// Caught signals are back to their default, which is what exec does; a forked body sets its
	// own.
	c.ignored, c.tty, c.pgid = p.ignored, p.tty, p.pgid
	if fds == nil {
		fds = p.fds
	}
	c.fds = dup(fds)
	p.children = append(p.children, c)
	return c
}

// Spawn forks and runs a program by its path (Spec.Path or Argv[0], without a
// search: see LookPath). The error is a *ExecError with ENOENT, EACCES, ENOEXEC
// and the like, and then there is no child. The child takes over the caller's
// credentials, umask, ignored signals, and, where the spec has none, its
// directory, environment and FDs. It is posix_spawn(3): fork and exec in one, so that the errors
// of exec are the caller's to see without a child that tells of them.
func (p *Process) Spawn(ctx context.Context, spec Spec) (*Process, error) {
	// The container is ending: others are being killed, and nothing new may begin.
	if p.dead || p.c.ended {
		p.checkAlive()
		return nil, &ExecError{Path: first(spec.Argv), Errno: linux.EAGAIN}
	}
	file := spec.Path
	if file == "" {
		file = first(spec.Argv)
	}
	prog, eerr := p.view.program(p.c, file, spec.Argv, 0)
	if eerr != nil {
		return nil, eerr
	}
	if !p.c.mayFork() {
		return nil, &ExecError{Path: file, Errno: linux.EAGAIN}
	}
	c := p.child(first(spec.Argv), spec.FDs)
	c.Argv = slices.Clone(prog.argv)
	if spec.Env != nil {
		c.Env = spec.Env
	}
	if spec.Dir != "" {
		c.Dir = spec.Dir
	}
	if spec.Setpgid {
		c.pgid = c.pid
	}
	c.done = spec.Done
	c.launch(first(c.Argv), false, prog.run)
	return c, nil
}

// Fork makes a child that runs body: a subshell. name is for reports. The child
// has the parent's command line, environment, directory, credentials, umask and
// ignored signals; nil fds means the parent's. If there can't be another process
// the child is Refused: its body says so and ends. It has no error, since a shell's subshell
// reports in the child, see Refused.
func (p *Process) Fork(name string, fds []File, body Command) *Process {
	c := p.child(name, fds)
	// A process that unwinds forks nothing: the child vanishes at once.
	if p.dead {
		c.vanish()
		return c
	}
	c.launch(name, true, body)
	return c
}

// Setpgid puts a child (or the process itself) into a process group; 0 means
// one of its own.
func (p *Process) Setpgid(child *Process, pgid int) {
	pgid = cmp.Or(pgid, child.pid)
	child.pgid = pgid
}

// Exec replaces the program in this process, runs it and returns its exit code,
// which the caller must return at once. An error (*ExecError) means that
// nothing has happened. path "" means argv[0]; env nil the present one.
//
// It calls the new program as a function, since a task can't be given another body. Descriptors
// and ignored signals stay, caught ones become default, memory is the new program's: execve(2).
func (p *Process) Exec(ctx context.Context, file string, argv, env []string) (int, error) {
	if file == "" {
		file = first(argv)
	}
	prog, eerr := p.view.program(p.c, file, argv, 0)
	if eerr != nil {
		return 0, eerr
	}
	p.Argv = slices.Clone(prog.argv)
	if env != nil {
		p.Env = env
	}
	p.caught, p.pending, p.pendingSet = 0, nil, 0
	p.Free(p.mem)
	if err := p.Step(p.ctx, startCost); err != nil {
		return 0, err
	}
	_ = p.Alloc(ctx, programMemory)
	return prog.run(p.ctx, p), nil
}

// Children lists the children that were not reaped, oldest first.
func (p *Process) Children() []*Process { return slices.Clone(p.children) }

// Wait waits for a child of the caller to end and reaps it. ErrInterrupted says
// that a caught signal has arrived since the last wait that said so (take it
// with NextSignal, or wait again); ECHILD that it is no child or was reaped. It is waitpid(2) for
// one child. An end that was there before the call is returned at once, before any signal is
// looked at.
func (p *Process) Wait(ctx context.Context, child *Process) (Exit, error) {
	for {
		if !slices.Contains(p.children, child) {
			return Exit{}, linux.ECHILD
		}
		if child.dead {
			p.reap(child)
			return child.exit, nil
		}
		i, err := loop.WaitAny(ctx, &child.ended, &p.signalled)
		switch {
		case err != nil:
			return Exit{}, err
		case i == 1:
			return Exit{}, ErrInterrupted
		}
	}
}

// WaitAny is Wait for whichever child ends first. Of several that have ended the oldest comes
// first, so that the order does not depend on timing within one step.
func (p *Process) WaitAny(ctx context.Context) (*Process, Exit, error) {
	for {
		if len(p.children) == 0 {
			return nil, Exit{}, linux.ECHILD
		}
		for _, c := range p.children {
			if c.dead {
				p.reap(c)
				return c, c.exit, nil
			}
		}
		i, err := loop.WaitAny(ctx, &p.childEnded, &p.signalled)
		switch {
		case err != nil:
			return nil, Exit{}, err
		case i == 1:
			return nil, Exit{}, ErrInterrupted
		}
	}
}

// reap takes a child off the list: its end has been seen.
func (p *Process) reap(child *Process) {
	p.children = slices.DeleteFunc(p.children, func(o *Process) bool { return o == child })
}

// execError is an error of the kernel as it appears in a *fs.PathError. Files of memfs and of the
// machine return errors of os; only the number in them is for a process.
func execError(err error) linux.Errno {
	if pe, ok := err.(*fs.PathError); ok {
		err = pe.Err
	}
	if errno, ok := err.(linux.Errno); ok {
		return errno
	}
	var errno linux.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return linux.EIO
}
