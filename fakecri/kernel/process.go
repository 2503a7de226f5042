package kernel

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// What it costs, in virtual time, to start a program and to fork.
const (
	// Orders of magnitude of execve(2) with a dynamic loader and of fork(2) on a common machine.
	// They make a loop of commands take time, and a start not be instantaneous.
	startCost = time.Millisecond
	forkCost  = 300 * time.Microsecond
)

// Memory that a program and a forked one take by themselves, in bytes.
const (
	// Small programs' resident memory. It is charged to the cgroup, so a limit that is too low
	// for a shell kills it, as on a node.
	programMemory = 512 << 10
	forkMemory    = 128 << 10
)

// Command is the body of a program: it runs as a task of the process's own
// group and returns the exit code.
//
// It runs until it returns or its process dies; every call that waits takes ctx, and after the
// death such a call does not return. So a Command needs no cleanup for the case of a kill: what
// it owned is closed by the kernel.
type Command func(ctx context.Context, p *Process) int

// Commands are programs by name.
type Commands map[string]Command

// Cred is whom a process acts as. Effective, real and saved numbers are one: programs here don't
// change them.
type Cred struct {
	UID, GID int
	// Groups are the supplementary groups.
	Groups []int
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code; 128+Signal of one that a signal killed.
	Code int
	// Signal is the signal that killed it, 0 if it exited by itself.
	Signal int
	// OOM says that the OOM killer did.
	OOM bool
}

// Spec says what to run.
type Spec struct {
	// Path is the program's file. Empty means Argv[0].
	Path string
	// Argv is the command line, Env the environment.
	Argv, Env []string
	// Dir is the working directory. Empty means the parent's, or / for the
	// first process.
	Dir string
	// Cred is whom it runs as. Spawn takes the parent's and ignores it.
	Cred Cred
	// FDs are its open files by number; nil entries are closed. It gets Dups.
	FDs []File
	// Tty says that it has a terminal.
	Tty bool
	// Setpgid puts it into a process group of its own (Spawn; what Start
	// starts always leads one).
	Setpgid bool
	// Done, if any, is called once when the process has ended. It must not
	// wait.
	Done func(Exit)
}

// Disposition is what a process does on a signal. There are no handlers: a program that catches a
// signal asks for it, by NextSignal, when a wait has returned ErrInterrupted.
type Disposition uint8

// The dispositions.
const (
	Default Disposition = iota
	Ignore
	Catch
)

// Process is a running program. Its methods are for its own task, except those
// that only ask.
//
// A process is first living, then dead but not reaped (in its parent's children), then gone.
// Numbers and namespaces never change; what can be changed by the program itself is exported.
type Process struct {
	// Argv is its command line, Env its environment, Dir the absolute working
	// directory (Chdir checks it), Cred whom it acts as, Umask what is taken
	// off the modes of files it creates.
	Argv, Env []string
	Dir       string
	Cred      Cred
	Umask     uint32

	c     *Container
	group *loop.Group
	ctx   context.Context // the body's own; it never ends
	view  View

	// pid is in its own namespace, hostPID on the node; pgid is a number of its own namespace.
	pid, hostPID, pgid int
	// ns is the container's, or the pod's if its containers share one.
	ns *PIDNamespace
	// An orphan's parent is the namespace's first process.
	parent   *Process // nil if it is outside
	children []*Process
	fds      []File
	// They are closed with the process, see Own.
	owned []io.Closer // listeners, connections, and what Own was told of
	// stated is of those that AddStated made: listed, without a task.
	tty, stated bool
	refused     bool  // made over a limit of processes
	startedAt   int64 // ns since the Unix epoch
	// burns is its part of the processor's rate, see Burn.
	mem, burns int64 // bytes; millicores

	// Bits by signal: see bit. pending keeps the order in which caught signals came, each at most
	// once, as ordinary signals on Linux are not queued.
	ignored, caught, pendingSet uint64
	pending                     []uint8
	// signalled wakes the process's own waits, childEnded a wait for any child.
	signalled, childEnded loop.Signal

	// dead is set before anything else of an end is done, so that whatever runs meanwhile sees
	// it.
	dead  bool
	exit  Exit
	ended loop.Event
	// done is Spec.Done, nil once it was called.
	done func(Exit)
}

type processKey struct{}

// processContext is the context of a process's body. Its own type spares a context.WithValue, and
// the search through it, in each read and write.
type processContext struct {
	context.Context
	p *Process
}

// Value finds the process itself.
func (c *processContext) Value(key any) any {
	if key == (processKey{}) {
		return c.p
	}
	return c.Context.Value(key)
}

// From returns the process whose context it is, or nil.
func From(ctx context.Context) *Process {
	if c, ok := ctx.(*processContext); ok {
		return c.p
	}
	p, _ := ctx.Value(processKey{}).(*Process)
	return p
}

// PID is the process's number in its own pid namespace.
func (p *Process) PID() int { return p.pid }

// PPID is its parent's number, 0 if that is outside the namespace.
func (p *Process) PPID() int {
	if p.parent == nil {
		return 0
	}
	return p.parent.PIDIn(p.ns)
}

// PGID is its process group.
func (p *Process) PGID() int { return p.pgid }

// Comm is the process's short name. Linux keeps 15 bytes of the program's name; nginx and others
// put a title in front of a colon.
func (p *Process) Comm() string {
	title, _, _ := strings.Cut(first(p.Argv), ": ") // of "nginx: master process ..."
	name := path.Base(strings.TrimPrefix(title, "-"))
	return name[:min(len(name), 15)]
}

// Container is the container it runs in.
func (p *Process) Container() *Container { return p.c }

// Loop is the node's loop.
func (p *Process) Loop() *loop.Loop { return p.group.Loop() }

// Group is the process's own group: to kill it is death without a trace, as by
// a power cut. For further tasks of the program. The task that runs the body is the first of the
// group; others are started by Go.
func (p *Process) Group() *loop.Group { return p.group }

// Go starts a further task of the program, whose context is the process's too.
// It dies with the process, which ends when its body returns.
func (p *Process) Go(name string, fn func(ctx context.Context)) {
	p.group.Go(name, func(ctx context.Context) { fn(&processContext{ctx, p}) })
}

// Now is the time on the loop's clock.
func (p *Process) Now() time.Time { return p.group.Loop().Now() }

// StartedAt is when it was started.
func (p *Process) StartedAt() time.Time { return time.Unix(0, p.startedAt).UTC() }

// Tty reports whether it has a terminal.
func (p *Process) Tty() bool { return p.tty }

// Dead reports whether it has ended; whatever it still does while it unwinds is
// without effect.
func (p *Process) Dead() bool { return p.dead }

// Ended reports whether a process has ended, and how.
func (p *Process) Ended() (Exit, bool) { return p.exit, p.dead }

// FD returns an open file, or nil. A dead process gets a file on which everything fails, so that
// code that still unwinds needs no test for nil.
func (p *Process) FD(n int) File {
	if p.dead {
		return closedFile{}
	}
	if n < 0 || n >= len(p.fds) {
		return nil
	}
	return p.fds[n]
}

// SetFD puts a file (its reference is taken over) at a number, closing what was
// there; nil closes.
func (p *Process) SetFD(n int, f File) {
	if p.dead || n < 0 {
		if f != nil {
			_ = f.Close()
		}
		return
	}
	for len(p.fds) <= n {
		p.fds = append(p.fds, nil)
	}
	// The new file is in place before the old one is closed: closing may wake others, who look.
	old := p.fds[n]
	p.fds[n] = f
	if old != nil {
		_ = old.Close()
	}
}

// Own has what a program keeps open beside its file descriptors closed when the
// process dies. A program that was killed can't close what it has; descriptors in its table need
// no Own.
func (p *Process) Own(x io.Closer) {
	if p.dead {
		_ = x.Close()
		return
	}
	p.owned = append(p.owned, x)
}

// Disown undoes one Own; false means that x was not owned, or is closed.
func (p *Process) Disown(x io.Closer) bool {
	i := slices.Index(p.owned, x)
	if i < 0 || p.dead { // when it dies, the list is being gone through
		return false
	}
	p.owned = slices.Delete(p.owned, i, i+1)
	return true
}

// FDs returns the open files by number, nil where there is none. The caller
// must not write to the slice.
func (p *Process) FDs() []File { return p.fds }

// View returns the files of the process's mount namespace, with its credentials
// and umask; relative names are resolved against Dir.
func (p *Process) View() *View { return &p.view }

// Chdir changes the working directory; ENOENT, ENOTDIR, EACCES. Dir has no symbolic links, as
// getcwd(2) returns it.
func (p *Process) Chdir(name string) error {
	at, errno := p.view.resolve(name, true)
	switch {
	case errno != 0:
	case !at.exists():
		errno = linux.ENOENT
	case !at.mode().IsDir():
		errno = linux.ENOTDIR
	case !p.view.may(&at, 1):
		errno = linux.EACCES
	}
	if errno != 0 {
		return pathError("chdir", name, errno)
	}
	p.Dir = at.path
	return nil
}

// Sleep waits for d; it returns ErrInterrupted when a caught signal arrives, or
// has arrived since the last wait that returned it. A process that catches nothing, as most are,
// waits for time alone, which is cheaper.
func (p *Process) Sleep(ctx context.Context, d time.Duration) error {
	if p.caught == 0 {
		return p.Loop().Sleep(ctx, d)
	}
	tctx, cancel := loop.WithTimeout(ctx, d)
	defer cancel()
	err := p.signalled.Wait(tctx)
	switch {
	case err == nil:
		return ErrInterrupted
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// A sleep of nothing gives way all the same, as others may run before it returns.
	if d <= 0 {
		return p.Loop().Yield(ctx)
	}
	return nil
}

// Step is virtual time that the program itself takes, computing; signals don't
// cut it short. Its time counts as processor time of the container, unlike Sleep's.
func (p *Process) Step(ctx context.Context, d time.Duration) error {
	if p.c != nil && d > 0 {
		p.c.cpu.done += int64(d)
		p.c.m.cpu.done += int64(d)
	}
	return p.Loop().Sleep(ctx, d)
}

// Refused tells of a forked process that it could not have been made: EAGAIN. A fork can't fail
// in the parent here, as it returns no error; so the child ends at once instead.
func (p *Process) Refused() bool { return p.refused }

// Disposition sets what a signal does. SIGKILL and SIGSTOP stay as they are. POSIX has a caught
// signal that becomes ignored dropped if it is pending; here it stays to be taken.
func (p *Process) Disposition(sig int, d Disposition) {
	if sig <= 0 || sig > maxSignal || sig == SIGKILL || sig == SIGSTOP {
		return
	}
	b := bit(sig)
	p.ignored &^= b
	p.caught &^= b
	switch d {
	case Ignore:
		p.ignored |= b
	case Catch:
		p.caught |= b
	}
}

// DispositionOf returns what a signal does.
func (p *Process) DispositionOf(sig int) Disposition {
	switch {
	case sig <= 0 || sig > maxSignal:
		return Default
	case p.ignored&bit(sig) != 0:
		return Ignore
	case p.caught&bit(sig) != 0:
		return Catch
	}
	return Default
}

// NextSignal takes the oldest caught signal that was not taken yet.
func (p *Process) NextSignal() (int, bool) {
	if len(p.pending) == 0 {
		return 0, false
	}
	sig := int(p.pending[0])
	p.pending = p.pending[1:]
	if len(p.pending) == 0 {
		p.pending = nil
		// Nothing is left to take, so the wake-up that is still there would be for nothing.
		if p.signalled.Ready() && p.ctx != nil {
			_ = p.signalled.Wait(p.ctx) // it is ready: this does not wait
		}
	}
	p.pendingSet &^= bit(sig)
	return sig, true
}

// Signalled is ready when a caught signal has arrived; being waited for uses it
// up. It is for loop.WaitAny beside other things.
func (p *Process) Signalled() loop.Waitable { return &p.signalled }

// Kill sends a signal as kill(2) does: pid > 0 one process, 0 the own group, -1
// all but the first and itself, < -1 a group; sig 0 only asks. ESRCH, EPERM,
// EINVAL. If it kills the caller it does not return. Root of the container may signal all that
// its pid namespace shows; others only their own user's.
func (p *Process) Kill(pid, sig int) error {
	if sig < 0 || sig > maxSignal {
		return linux.EINVAL
	}
	if p.dead {
		return linux.ESRCH
	}
	group := -pid
	if pid == 0 {
		group = p.PGIDIn(p.ns)
	}
	found, allowed := false, false
	// A copy, as deaths change the list.
	for _, o := range slices.Clone(p.ns.list) {
		n := o.PIDIn(p.ns)
		switch {
		case pid > 0 && n != pid,
			pid == -1 && (n == 1 || o == p),
			pid != -1 && pid <= 0 && o.PGIDIn(p.ns) != group:
			continue
		}
		found = true
		if !p.effective().has(capKill) && p.Cred.UID != o.Cred.UID {
			continue
		}
		allowed = true
		if sig != 0 && o != p {
			// From within its own namespace: process 1 is spared what it has no handler for.
			o.deliver(sig, o.ns == p.ns)
		}
		if sig != 0 && o == p {
			// The process itself comes last, as after its death nothing more is done: the defers
			// run in reverse, so first the delivery.
			defer p.checkAlive()
			defer p.deliver(sig, true)
		}
	}
	switch {
	case !found:
		return linux.ESRCH
	case !allowed:
		return linux.EPERM
	}
	return nil
}

// PGIDIn is the process group's number in a namespace. The group's number is that of its leader,
// who may have ended: then its own number stands in.
func (p *Process) PGIDIn(ns *PIDNamespace) int {
	if ns == p.ns {
		return p.pgid
	}
	for _, o := range p.ns.list {
		if o.pid == p.pgid {
			return o.PIDIn(ns)
		}
	}
	return p.PIDIn(ns)
}

// checkAlive does not return to a process that has died meanwhile. A task of a dead process is
// killed at its next wait. So this yields, and does not come back.
func (p *Process) checkAlive() {
	if p.dead && p.ctx != nil {
		_ = p.Loop().Yield(p.ctx)
	}
}
