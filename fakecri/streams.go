package fakecri

import (
	"bytes"
	"context"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// This file is Exec, Attach and PortForward up to where a streaming server
// takes over, and interactive exec.

// StreamingServer gives out URLs at which a client finds a stream. It checks
// requests, with the code InvalidArgument, and then calls the Client's
// ExecStream, AttachStream or PortForwardStream. Its methods must not wait.
type StreamingServer interface {
	GetExec(*runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error)
	GetAttach(*runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error)
	GetPortForward(*runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error)
}

// Streams are a client's ends of what runs in a container. A nil file is not
// wanted. They are not closed; at the end of Stdin the client has gone, or has
// nothing more to say, and a Write that fails means that it has gone.
type Streams struct {
	Stdin, Stdout, Stderr kernel.File
	// Window, if any, is the client's terminal.
	Window *Window
}

// Window is the size of a client's terminal.
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

func (w *Window) of(t *kernel.TTY) {
	if w == nil || t == nil {
		return
	}
	w.tty = t
	if w.width != 0 || w.height != 0 {
		t.Resize(w.width, w.height)
	}
}

// streamURL runs a call that answers with a URL.
func streamURL[T any](ctx context.Context, c *Client, m method, s subject, check func() error, get func(StreamingServer) (T, error)) (T, error) {
	var zero T
	if err := c.by.read(ctx, m, s); err != nil {
		return zero, err
	}
	server := c.r.opts.Streaming
	if server == nil {
		return zero, status.Errorf(codes.Unimplemented, "method %s not implemented", m.name())
	}
	if err := check(); err != nil {
		return zero, err
	}
	return get(server)
}

// Exec returns the URL of an interactive exec; Unimplemented without
// Options.Streaming.
func (c *Client) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	id := req.GetContainerId()
	return streamURL(ctx, c, mExec, c.r.recs.containerSubject(id), func() error {
		if id == "" {
			return nil // the server says what is missing
		}
		if len(req.GetCmd()) == 0 {
			return status.Error(codes.InvalidArgument, "exec command is empty")
		}
		_, err := c.r.exec.streamTarget(id)
		return err
	}, func(s StreamingServer) (*runtimeapi.ExecResponse, error) { return s.GetExec(req) })
}

// Attach returns the URL of a container's standard streams; Unimplemented
// without Options.Streaming.
func (c *Client) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	id := req.GetContainerId()
	return streamURL(ctx, c, mAttach, c.r.recs.containerSubject(id), func() error {
		if id == "" {
			return nil
		}
		_, err := c.r.exec.streamTarget(id)
		return err
	}, func(s StreamingServer) (*runtimeapi.AttachResponse, error) { return s.GetAttach(req) })
}

// PortForward returns the URL for connections to a sandbox's ports;
// Unimplemented without Options.Streaming.
func (c *Client) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	id := req.GetPodSandboxId()
	return streamURL(ctx, c, mPortForward, c.r.recs.sandboxSubject(id), func() error {
		if id == "" {
			return nil
		}
		_, err := c.r.net.forwardTarget(id)
		return err
	}, func(s StreamingServer) (*runtimeapi.PortForwardResponse, error) { return s.GetPortForward(req) })
}

// streamTarget returns the container to stream with.
func (r *execs) streamTarget(id string) (*container, error) {
	c := r.recs.containerFor(id)
	switch {
	case c == nil:
		return nil, status.Errorf(codes.NotFound, "failed to find container %q in store: not found", id)
	case c.state != stateRunning || c.process == nil:
		return nil, status.Errorf(codes.Unknown, "container is in %s state", c.state)
	}
	return c, nil
}

// ExecStream runs a command in a container with the client's streams, on a
// terminal if tty is set, and returns its exit code once it has ended and all
// that it wrote was taken. Without a Stdin it reads from /dev/null. If ctx ends
// the command runs on, as under containerd: it finds the end of its input, and
// nobody takes what it writes.
func (c *Client) ExecStream(ctx context.Context, id string, cmd []string, tty bool, s Streams) (exit int32, err error) {
	d, err := c.by.streaming()
	if err != nil {
		return 0, err
	}
	return c.r.exec.execOver(ctx, d, id, cmd, tty, s)
}

// execOver is Client.ExecStream in a life of the daemon.
func (r *execs) execOver(ctx context.Context, d *daemonLife, id string, cmd []string, tty bool, s Streams) (exit int32, err error) {
	if _, err := r.streamTarget(id); err != nil {
		return 0, err
	}
	if len(cmd) == 0 {
		return 0, status.Error(codes.InvalidArgument, "exec command is empty")
	}
	sub := r.recs.containerSubject(id)
	sub.attempt += uint32(r.l.UnixNano()) // each has a latency of its own
	if err := r.calls.pause(ctx, mExecSync, &sub); err != nil {
		return 0, ctxError(err)
	}
	target, err := r.streamTarget(id)
	if err != nil {
		return 0, err
	}
	if target.process.in == nil {
		return r.execStatedStream(ctx, target, cmd, tty, s)
	}
	return r.execStream(ctx, d, target.process.in, cmd, tty, s)
}

// execStatedStream is an exec in a container with a stated program.
func (r *execs) execStatedStream(ctx context.Context, c *container, cmd []string, tty bool, s Streams) (int32, error) {
	out, runs, err := r.statedExec(c, cmd)
	if err != nil {
		return 0, err
	}
	if err := r.passExec(ctx, c, runs, 0, &out); err != nil {
		return 0, ctxError(err)
	}
	if tty {
		out.stdout = bytes.ReplaceAll(out.stdout, []byte("\n"), []byte("\r\n"))
	}
	for _, o := range []struct {
		to   kernel.File
		data []byte
	}{{s.Stdout, out.stdout}, {s.Stderr, out.stderr}} {
		if o.to != nil && len(o.data) > 0 {
			if _, err := o.to.Write(ctx, o.data); err != nil {
				return 0, ctxError(err)
			}
		}
	}
	return out.code, nil
}

// execStream is an exec as a process of the container.
func (r *execs) execStream(ctx context.Context, d *daemonLife, in *interpreted, cmd []string, tty bool, s Streams) (int32, error) {
	var (
		ended loop.Event
		exit  kernel.Exit
	)
	x := r.newExecFiles(tty, s)
	env := in.env
	if tty {
		env = setEnv(env, "TERM", "xterm")
	}
	p, err := in.kc.Start(kernel.Spec{
		Argv: cmd, Env: env, Dir: in.dir, Cred: in.cred, FDs: x.fds, Tty: tty,
		Done: func(e kernel.Exit) {
			exit = e
			ended.Fire()
		},
	})
	closeAll(x.fds)
	// Who feeds the command goes with the client, or with the command; who
	// takes what it writes goes on until nobody holds that any more.
	feed := r.l.NewGroup("exec input")
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
				defer x.hangUp()
				_ = copyFile(ctx, x.input, s.Stdin)
			})
		}
		feed.OnKill(x.hangUp)
	}
	for _, e := range append(x.drained, &ended) {
		if err := awaitEvent(ctx, d, e); err != nil {
			return 0, err
		}
	}
	return int32(exit.Code), nil
}

// setEnv returns an environment with a variable set.
func setEnv(env []string, name, value string) []string {
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			out = append(out, e)
		}
	}
	return append(out, name+"="+value)
}

// awaitEvent waits until an event has happened, or the daemon is gone.
func awaitEvent(ctx context.Context, d *daemonLife, e *loop.Event) error {
	i, err := loop.WaitAny(ctx, e, &d.down)
	if err != nil {
		return ctxError(err)
	}
	if i == 1 {
		return errLost
	}
	return nil
}

// execFiles are the files of a command that is run with a client's streams.
type execFiles struct {
	fds     []kernel.File
	tty     *kernel.TTY
	input   kernel.File // what the client's input goes to; nil: no input
	drained []*loop.Event
}

// hangUp ends the command's input.
func (x *execFiles) hangUp() {
	if f := x.input; f != nil {
		x.input = nil
		_ = f.Close()
	}
}

func (r *execs) newExecFiles(tty bool, s Streams) *execFiles {
	m, x := r.kern.kernel(), &execFiles{}
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

// outlet returns what a command writes to so that the client gets it.
func (r *execs) outlet(x *execFiles, to kernel.File) kernel.File {
	if to == nil {
		return r.kern.kernel().Null()
	}
	from, w := r.kern.kernel().Pipe()
	done := &loop.Event{}
	x.drained = append(x.drained, done)
	r.kern.powered.Go("exec output", func(ctx context.Context) {
		defer done.Fire()
		defer func() { _ = from.Close() }()
		if copyFile(ctx, to, from) == nil {
			return
		}
		// The client has gone; the command must not be held up by that.
		done.Fire()
		_ = copyFile(ctx, discard{}, from)
	})
	return w
}

// discard takes what nobody wants.
type discard struct{}

func (discard) Read(context.Context, []byte) (int, error)      { return 0, io.EOF }
func (discard) Write(_ context.Context, b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                                   { return nil }
func (discard) Dup() kernel.File                               { return discard{} }

// copyFile copies until the end of from, which is no error.
func copyFile(ctx context.Context, to, from kernel.File) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(ctx, buf)
		if n > 0 {
			if _, werr := to.Write(ctx, buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
