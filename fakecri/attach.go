package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// maxBehind is how much of a container's output a client that is attached can
// leave unread, in bytes, before who writes it is held up.
const maxBehind = 1 << 20

// attachment is a client that is attached to a container.
type attachment struct {
	out, err *tap // nil: not wanted
	// ended is fired when the container has ended, or the client detached.
	ended loop.Event
}

// tap is one stream of a container on its way to a client.
type tap struct {
	to         kernel.File
	buf        []byte
	closed     bool // nothing more comes
	gone       bool // the client takes nothing more
	more, room loop.Signal
	done       loop.Event // all was taken that will be
}

// AttachStream gives a client what a running container writes from now on, and
// has it feed the container's stdin if that was asked for. It returns when the
// container has ended or the client has gone; at the end of the client's input
// it detaches, unless the container's stdin is closed by that (stdin_once,
// without a terminal). A container with stdin_once has its input closed by the
// first client that ends. The terminal is the container's, whatever tty says.
func (c *Client) AttachStream(ctx context.Context, id string, tty bool, s Streams) error {
	d, err := c.by.streaming()
	if err != nil {
		return err
	}
	return c.r.exec.attach(ctx, d, id, s)
}

// attach is Client.AttachStream in a life of the daemon.
func (r *execs) attach(ctx context.Context, d *daemonLife, id string, s Streams) error {
	target, err := r.streamTarget(id)
	if err != nil {
		return err
	}
	if s.Stdin == nil && s.Stdout == nil && s.Stderr == nil {
		return status.Error(codes.InvalidArgument, "one of stdin, stdout, and stderr must be set")
	}
	g := r.l.NewGroup("attach")
	defer g.Kill()
	a := &attachment{out: newTap(g, s.Stdout)}
	if !target.config.Tty {
		a.err = newTap(g, s.Stderr)
	}
	r.out.attach(target, a)
	defer func() { r.out.detach(target, a) }()
	if in := target.process.in; in != nil {
		s.Window.of(in.tty)
		if s.Stdin != nil && in.stdin != nil {
			g.Go("attach input", func(ctx context.Context) { r.feed(ctx, in, a, s.Stdin) })
		}
	}
	taps := 0
	for _, t := range []*tap{a.out, a.err} {
		if t == nil {
			continue
		}
		taps++
		if err := awaitEvent(ctx, d, &t.done); err != nil {
			return err
		}
	}
	if taps == 0 {
		return awaitEvent(ctx, d, &a.ended)
	}
	return nil
}

// feed copies a client's input to a container.
func (r *execs) feed(ctx context.Context, in *interpreted, a *attachment, from kernel.File) {
	once := in.c.config.StdinOnce
	defer func() { // also when the client has gone
		if once && !in.c.config.Tty {
			in.closeStdin()
			return
		}
		a.close()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(ctx, buf)
		if n > 0 {
			if in.stdin == nil { // another client has closed it
				return
			}
			if _, werr := in.stdin.Write(ctx, buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// closeStdin ends a container's input.
func (in *interpreted) closeStdin() {
	if in.stdin != nil {
		_ = in.stdin.Close()
		in.stdin = nil
	}
}

// attach gives a client what the container writes from now on.
func (r *outputs) attach(c *container, a *attachment) {
	if r.attached == nil {
		r.attached = map[*container][]*attachment{}
	}
	r.attached[c] = append(r.attached[c], a)
}

// detach forgets a client.
func (r *outputs) detach(c *container, a *attachment) {
	a.close()
	list := r.attached[c]
	for i, o := range list {
		if o == a {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(r.attached, c)
		return
	}
	r.attached[c] = list
}

// detachAll ends what clients get of a container that has ended.
func (r *outputs) detachAll(c *container) {
	for _, a := range r.attached[c] {
		a.close()
	}
}

func (a *attachment) close() {
	a.out.close()
	a.err.close()
	a.ended.Fire()
}

// show gives what a container writes to who is attached. ctx is the writer's,
// or nil of one that can't wait.
func (r *outputs) show(ctx context.Context, c *container, stream string, b []byte) {
	for _, a := range r.attached[c] {
		if t := a.of(stream); t != nil {
			t.put(ctx, b)
		}
	}
}

func (a *attachment) of(stream string) *tap {
	if stream == stderrName {
		return a.err
	}
	return a.out
}

// newTap starts the task that hands a stream to a client; nil for a stream that
// nobody wants.
func newTap(g *loop.Group, to kernel.File) *tap {
	if to == nil {
		return nil
	}
	t := &tap{to: to}
	g.Go("attach output", t.run)
	return t
}

func (t *tap) run(ctx context.Context) {
	defer func() {
		t.gone, t.buf = true, nil
		t.room.Notify()
		t.done.Fire()
	}()
	for {
		for len(t.buf) == 0 {
			if t.closed {
				return
			}
			if t.more.Wait(ctx) != nil {
				return
			}
		}
		b := t.buf
		t.buf = nil
		t.room.Notify()
		if _, err := t.to.Write(ctx, b); err != nil {
			return
		}
	}
}

// put adds to what the client gets, and waits if it is far behind; one for whom
// nobody can wait is given up.
func (t *tap) put(ctx context.Context, b []byte) {
	for len(t.buf) > maxBehind && !t.gone {
		if ctx == nil {
			t.gone = true
			t.close()
			break
		}
		if t.room.Wait(ctx) != nil {
			return
		}
	}
	t.room.Notify() // for the next who waits, who looks again
	if t.gone || t.closed {
		return
	}
	t.buf = append(t.buf, b...)
	t.more.Notify()
}

func (t *tap) close() {
	if t != nil && !t.closed {
		t.closed = true
		t.more.Notify()
	}
}
