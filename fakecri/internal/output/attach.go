package output

import (
	"context"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// maxBehind is how much of a container's output a client that is attached can
// leave unread, in bytes, before who writes it is held up.
const maxBehind = 1 << 20

// Attachment is a client that is attached to a container.
type Attachment struct {
	Out, Err *Tap // nil: not wanted
	// Ended is fired when the container has ended, or the client detached.
	Ended loop.Event
}

// Tap is one stream of a container on its way to a client.
type Tap struct {
	to         kernel.File
	buf        []byte
	closed     bool // nothing more comes
	gone       bool // the client takes nothing more
	more, room loop.Signal
	Done       loop.Event // all was taken that will be
}

// Attach gives a client what the container writes from now on.
func (r *Outputs) Attach(c *records.Container, a *Attachment) {
	if r.Attached == nil {
		r.Attached = map[*records.Container][]*Attachment{}
	}
	r.Attached[c] = append(r.Attached[c], a)
}

// Detach forgets a client.
func (r *Outputs) Detach(c *records.Container, a *Attachment) {
	a.Close()
	list := r.Attached[c]
	for i, o := range list {
		if o == a {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(r.Attached, c)
		return
	}
	r.Attached[c] = list
}

// DetachAll ends what clients get of a container that has ended.
func (r *Outputs) DetachAll(c *records.Container) {
	for _, a := range r.Attached[c] {
		a.Close()
	}
}

// Close ends what the client gets, after what it has yet to take.
func (a *Attachment) Close() {
	a.Out.close()
	a.Err.close()
	a.Ended.Fire()
}

// show gives what a container writes to who is attached. ctx is the writer's,
// or nil of one that can't wait.
func (r *Outputs) show(ctx context.Context, c *records.Container, stream string, b []byte) {
	for _, a := range r.Attached[c] {
		if t := a.of(stream); t != nil {
			t.put(ctx, b)
		}
	}
}

// of is the tap of a stream, nil if the client doesn't want it.
func (a *Attachment) of(stream string) *Tap {
	if stream == program.StderrName {
		return a.Err
	}
	return a.Out
}

// NewTap starts the task that hands a stream to a client; nil for a stream that
// nobody wants.
func NewTap(g *loop.Group, to kernel.File) *Tap {
	if to == nil {
		return nil
	}
	t := &Tap{to: to}
	g.Go("attach output", t.run)
	return t
}

// run hands on what was put, until the client goes or nothing more comes.
func (t *Tap) run(ctx context.Context) {
	defer func() {
		t.gone, t.buf = true, nil
		t.room.Notify()
		t.Done.Fire()
	}()
	for {
		for len(t.buf) == 0 {
			if t.closed || t.more.Wait(ctx) != nil {
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
func (t *Tap) put(ctx context.Context, b []byte) {
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

// close says that nothing more comes.
func (t *Tap) close() {
	if t != nil && !t.closed {
		t.closed = true
		t.more.Notify()
	}
}
