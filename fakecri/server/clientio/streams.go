package clientio

import (
	"context"
	"io"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/drydock-sim/drydock/fakecri"
)

// Streams are the streams of a client's command, between its goroutines and the loop. Each
// direction has a goroutine, as the client's side blocks and the loop must not.
type Streams struct {
	// Streams are the command's side, for use on the loop. Without input Stdin is nil:
	// that is how a runtime knows that there is none.
	fakecri.Streams

	post func(func())
	in   *Inlet
	outs []*Outlet
	done chan struct{}
}

// Connect starts what copies between a client and the loop, to which post leads. What is nil
// isn't there. The goroutines count in work; patience is for a client that is slow to read.
func Connect(post func(func()), work *sync.WaitGroup, patience time.Duration, in io.Reader, out, errOut io.Writer, resize <-chan remotecommand.TerminalSize) *Streams {
	c := &Streams{post: post, done: make(chan struct{})}
	outlet := func(w io.Writer) *Outlet {
		o := NewOutlet(post, w)
		o.Patience = patience
		c.outs = append(c.outs, o)
		work.Go(o.Run)
		return o
	}
	if in != nil {
		c.in = NewInlet(post, in)
		c.Stdin = c.in
		work.Go(c.in.Run)
	}
	if out != nil {
		c.Stdout = outlet(out)
	}
	if errOut != nil {
		c.Stderr = outlet(errOut)
	}
	if resize != nil {
		w := &fakecri.Window{}
		c.Window = w
		work.Go(func() { c.resizes(w, resize) })
	}
	return c
}

// resizes hands on sizes of the client's window until it goes.
func (c *Streams) resizes(w *fakecri.Window, resize <-chan remotecommand.TerminalSize) {
	for {
		select {
		case size, ok := <-resize:
			if !ok {
				return
			}
			c.post(func() { w.Resize(size.Width, size.Height) })
		case <-c.done:
			return
		}
	}
}

// Flush waits until the client has taken what was written for it. If the client has gone it
// does not wait.
func (c *Streams) Flush(ctx context.Context) {
	for _, o := range c.outs {
		o.Finish(ctx)
	}
}

// Close ends what Connect started; the input's goroutine ends when the connection does, which
// the caller closes. The command may run on; its further output is dropped.
func (c *Streams) Close() {
	close(c.done)
	if c.in != nil {
		c.in.Stop()
	}
	for _, o := range c.outs {
		o.Abandon()
	}
}
