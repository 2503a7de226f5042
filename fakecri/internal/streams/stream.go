package streams

import (
	"bytes"
	"context"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
	"github.com/drydock-sim/drydock/fakecri/internal/podnet"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
)

// feed copies a client's input to a container. The end of a client's input closes the container's
// only with stdinOnce, as kubectl run -i sets it: otherwise others may attach later.
func (r *Execs) feed(ctx context.Context, in *records.Interpreted, a *output.Attachment, from kernel.File) {
	once := in.Container.Config.StdinOnce
	defer func() { // also when the client has gone
		if once && !in.Container.Config.Tty {
			in.CloseStdin()
			return
		}
		a.Close()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(ctx, buf)
		if n > 0 {
			if in.Stdin == nil { // another client has closed it
				return
			}
			if _, werr := in.Stdin.Write(ctx, buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Streams are a client's ends of what runs in a container. A nil file is not
// wanted. They are not closed; at the end of Stdin the client has gone, or has
// nothing more to say, and a Write that fails means that it has gone. Reads and writes wait on
// the loop.
type Streams struct {
	Stdin, Stdout, Stderr kernel.File
	// Window, if any, is the client's terminal.
	Window *Window
}

// Window is the size of a client's terminal. The size may be told before the terminal is there,
// and after it has gone.
type Window struct {
	width, height uint16
	tty           *kernel.TTY
}

// Resize tells of the size, in characters.
func (w *Window) Resize(width, height uint16) {
	w.width, w.height = width, height
	if w.tty != nil {
		w.tty.Resize(width, height)
	}
}

// of has the window be that of t, with the size that was told before.
func (w *Window) of(t *kernel.TTY) {
	if w == nil || t == nil {
		return
	}
	w.tty = t
	if w.width != 0 || w.height != 0 {
		t.Resize(w.width, w.height)
	}
}

// StreamTarget returns the container to stream with. Unlike ExecSync's errors these have no text
// before them.
func (r *Execs) StreamTarget(id string) (*records.Container, error) {
	c := r.Records.ContainerFor(id)
	switch {
	case c == nil:
		return nil, status.Errorf(codes.NotFound, "failed to find container %q in store: not found", id)
	case c.State != records.StateRunning || c.Process == nil:
		return nil, status.Errorf(codes.Unknown, "container is in %s state", c.State)
	}
	return c, nil
}

// ExecOver is Client.ExecStream in a life of the daemon. Its latency is ExecSync's: both start a
// process.
func (r *Execs) ExecOver(ctx context.Context, d *calls.Life, id string, cmd []string, tty bool, s Streams) (exit int32, err error) {
	if _, err := r.StreamTarget(id); err != nil {
		return 0, err
	}
	if len(cmd) == 0 {
		return 0, status.Error(codes.InvalidArgument, "exec command is empty")
	}
	sub := r.Records.ContainerSubject(id)
	// The time gives each exec a latency of its own.
	sub.Attempt += uint32(r.Loop.UnixNano())
	if err := r.Calls.Pause(ctx, calls.ExecSync, &sub); err != nil {
		return 0, calls.CtxError(err)
	}
	target, err := r.StreamTarget(id)
	if err != nil {
		return 0, err
	}
	if target.Process.Interpreted == nil {
		return r.execStatedStream(ctx, target, cmd, tty, s)
	}
	return r.execStream(ctx, d, target.Process.Interpreted, cmd, tty, s)
}

// execStatedStream is an exec in a container with a stated program. It knows no terminal, and no
// input is read.
func (r *Execs) execStatedStream(ctx context.Context, c *records.Container, cmd []string, tty bool, s Streams) (int32, error) {
	out, runs, err := r.statedExec(c, cmd)
	if err != nil {
		return 0, err
	}
	if err := r.passExec(ctx, c, runs, 0, &out); err != nil {
		return 0, calls.CtxError(err)
	}
	// A terminal writes a newline as CR LF.
	if tty {
		out.Stdout = bytes.ReplaceAll(out.Stdout, []byte("\n"), []byte("\r\n"))
	}
	for _, o := range []struct {
		to   kernel.File
		data []byte
	}{{s.Stdout, out.Stdout}, {s.Stderr, out.Stderr}} {
		if o.to != nil && len(o.data) > 0 {
			if _, err := o.to.Write(ctx, o.data); err != nil {
				return 0, calls.CtxError(err)
			}
		}
	}
	return out.code, nil
}

// execStream is an exec as a process of the container. The exit code counts when output has been
// taken as well, so that the client has all of it.
func (r *Execs) execStream(ctx context.Context, d *calls.Life, in *records.Interpreted, cmd []string, tty bool, s Streams) (int32, error) {
	var (
		ended loop.Event
		exit  kernel.Exit
	)
	x := r.newExecFiles(tty, s)
	env := in.Env
	if tty {
		// As runc does for a terminal.
		env = setEnv(env, "TERM", "xterm")
	}
	p, err := in.Kernel.Start(kernel.Spec{
		Argv: cmd, Env: env, Dir: in.Dir, Cred: in.Cred, FDs: x.fds, Tty: tty,
		Done: func(e kernel.Exit) {
			exit = e
			ended.Fire()
		},
	})
	// The process has its own holds on the files.
	records.CloseAll(x.fds)
	// Who feeds the command goes with the client, or with the command; who
	// takes what it writes goes on until nobody holds that any more.
	feed := r.Loop.NewGroup("exec input")
	defer feed.Kill()
	if err != nil {
		x.hangUp()
		return 0, r.execFailed(err)
	}
	if x.tty != nil {
		x.tty.SetLeader(p)
		s.Window.of(x.tty)
	}
	if x.input != nil {
		if s.Stdin != nil {
			feed.Go("exec input", func(ctx context.Context) {
				// The command sees the end of its input when the client's is over.
				defer x.hangUp()
				_ = podnet.CopyFile(ctx, x.input, s.Stdin)
			})
		}
		feed.OnKill(x.hangUp)
	}
	// First the outputs, then the end: order does not matter, all must have come.
	for _, e := range append(x.drained, &ended) {
		if err := calls.AwaitEvent(ctx, d, e); err != nil {
			return 0, err
		}
	}
	return int32(exit.Code), nil
}

// setEnv returns an environment with a variable set.
func setEnv(env []string, name, value string) []string {
	out := lists.Filter(env, func(e string) bool { return !strings.HasPrefix(e, name+"=") })
	return append(out, name+"="+value)
}

// execFiles are the files of a command that is run with a client's streams. drained has an event
// for each output that the client wants.
type execFiles struct {
	fds     []kernel.File
	tty     *kernel.TTY
	input   kernel.File // what the client's input goes to; nil: no input
	drained []*loop.Event
}

// hangUp ends the command's input. Called twice it does nothing.
func (x *execFiles) hangUp() {
	if f := x.input; f != nil {
		x.input = nil
		_ = f.Close()
	}
}

// newExecFiles makes the files of a command: a terminal for all three, or pipes to
// the client for those that it wants.
func (r *Execs) newExecFiles(tty bool, s Streams) *execFiles {
	m, x := r.Kernel.Kernel(), &execFiles{}
	if tty {
		x.tty = m.NewTTY(r.outlet(x, s.Stdout))
		x.input = x.tty.Keyboard()
		slave := x.tty.Slave()
		x.fds = []kernel.File{slave, slave.Dup(), slave.Dup()}
		return x
	}
	stdin := m.Null()
	if s.Stdin != nil {
		stdin, x.input = m.Pipe()
	}
	x.fds = []kernel.File{stdin, r.outlet(x, s.Stdout), r.outlet(x, s.Stderr)}
	return x
}

// outlet returns what a command writes to so that the client gets it. The pipe in between lets
// the command end before a slow client has taken everything.
func (r *Execs) outlet(x *execFiles, to kernel.File) kernel.File {
	if to == nil {
		return r.Kernel.Kernel().Null()
	}
	from, w := r.Kernel.Kernel().Pipe()
	done := &loop.Event{}
	x.drained = append(x.drained, done)
	// The group is the machine's and not the call's: the copying goes on when the client has
	// gone.
	r.Kernel.Powered.Go("exec output", func(ctx context.Context) {
		defer done.Fire()
		defer func() { _ = from.Close() }()
		if podnet.CopyFile(ctx, to, from) == nil {
			return
		}
		// The client has gone; the command must not be held up by that.
		done.Fire()
		_ = podnet.CopyFile(ctx, discard{}, from)
	})
	return w
}

// discard takes what nobody wants.
type discard struct{}

func (discard) Read(context.Context, []byte) (int, error) { return 0, io.EOF }

func (discard) Write(_ context.Context, b []byte) (int, error) { return len(b), nil }

func (discard) Close() error { return nil }

func (discard) Dup() kernel.File { return discard{} }
