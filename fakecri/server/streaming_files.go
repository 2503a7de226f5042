//go:build linux

package server

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	// inletSize is how much is read from a client at a time.
	inletSize = 32 << 10
	// outletSize is how much can wait for a client, in bytes, before who
	// writes on the loop has to wait. A write is taken as long as there is less than this, so one
	// large write may go beyond.
	outletSize = 256 << 10
	// attachPatience is how long a client that is attached may take nothing of
	// what waits for it before it is given up, since the container's writes
	// wait for it.
	attachPatience = 30 * time.Second
)

// inlet is a kernel.File for the loop that reads what a goroutine reads from a
// client, one chunk ahead. The chunk ahead bounds what a client can push into memory; it waits
// for the reader after that.
type inlet struct {
	l    *loop.Loop
	r    io.Reader
	done chan struct{}
	once sync.Once
	// The loop sends on it once the chunk is used up, and never waits for that.
	next chan struct{} // room for one chunk

	// On the loop.
	buf      []byte
	ended    bool
	readable loop.Signal
}

// newInlet makes a file of the loop of what a client sends.
func newInlet(l *loop.Loop, r io.Reader) *inlet {
	return &inlet{l: l, r: r, done: make(chan struct{}), next: make(chan struct{}, 1)}
}

// run is the goroutine; it ends when the client's connection does, or when it
// has something that nobody will read. buf belongs to this goroutine, so what goes to the loop is
// a copy.
func (i *inlet) run() {
	buf := make([]byte, inletSize)
	for {
		n, err := i.r.Read(buf)
		if n > 0 {
			chunk := slices.Clone(buf[:n])
			i.l.Post(func() {
				i.buf = chunk
				i.readable.Notify()
			})
			select {
			case <-i.next:
			case <-i.done:
				return
			}
		}
		if err != nil {
			i.l.Post(func() {
				i.ended = true
				i.readable.Notify()
			})
			return
		}
	}
}

// stop says that nobody reads any more.
func (i *inlet) stop() { i.once.Do(func() { close(i.done) }) }

// Read implements kernel.File, on the loop. Several tasks may read: whoever leaves something
// behind wakes the next.
func (i *inlet) Read(ctx context.Context, b []byte) (int, error) {
	for len(i.buf) == 0 {
		if i.ended {
			i.readable.Notify()
			return 0, io.EOF
		}
		if err := i.readable.Wait(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(b, i.buf)
	if i.buf = i.buf[n:]; len(i.buf) == 0 {
		i.buf = nil
		i.next <- struct{}{} // there is room: only one chunk is on its way
	} else {
		i.readable.Notify()
	}
	return n, nil
}

// Write implements kernel.File.
func (*inlet) Write(context.Context, []byte) (int, error) { return 0, linux.EBADF }

// Close implements kernel.File.
func (*inlet) Close() error { return nil }

// Dup implements kernel.File.
func (i *inlet) Dup() kernel.File { return i }

// outlet is a kernel.File for the loop whose writes a goroutine hands to a
// client. What waits is bounded. mu is held for moments only, so the loop may take it.
type outlet struct {
	l        *loop.Loop
	w        io.Writer
	patience time.Duration // 0: for ever
	end      func()        // called when all was written, if any

	mu  sync.Mutex
	buf []byte
	// closed and broken never go back.
	closed   bool // nothing more comes
	broken   bool // nothing more is taken
	wake     chan struct{}
	finished chan struct{}

	room loop.Signal // on the loop
}

// newOutlet makes a file of the loop that sends to a client.
func newOutlet(l *loop.Loop, w io.Writer) *outlet {
	return &outlet{l: l, w: w, wake: make(chan struct{}, 1), finished: make(chan struct{})}
}

// run is the goroutine. It takes all that waits at once, and lets the loop's writers go on while
// it writes.
func (o *outlet) run() {
	defer close(o.finished)
	for {
		o.mu.Lock()
		b, closed, broken := o.buf, o.closed, o.broken
		o.buf = nil
		o.mu.Unlock()
		switch {
		case broken:
			return
		case len(b) == 0 && closed:
			if o.end != nil {
				o.end()
			}
			return
		case len(b) == 0:
			<-o.wake
			continue
		}
		o.l.Post(o.room.Notify)
		if !o.write(b) {
			o.abandon()
			return
		}
	}
}

// write hands b to the client; false means that it takes nothing more. A client that takes
// nothing for longer than patience is given up, which ends the write as well.
func (o *outlet) write(b []byte) bool {
	if o.patience > 0 {
		t := time.AfterFunc(o.patience, o.abandon)
		defer t.Stop()
	}
	_, err := o.w.Write(b)
	return err == nil
}

// poke wakes the goroutine. One wake-up is enough, however often it is asked for.
func (o *outlet) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// abandon has all writes fail from now on, those that wait too. Writers get EPIPE, as from a pipe
// that nobody reads.
func (o *outlet) abandon() {
	o.mu.Lock()
	o.broken, o.buf = true, nil
	o.mu.Unlock()
	o.poke()
	o.l.Post(o.room.Notify)
}

// closeWrite says that no more comes; what waits is still written.
func (o *outlet) closeWrite() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.poke()
}

// finish waits until the client has taken everything, or has gone.
func (o *outlet) finish(ctx context.Context) {
	o.closeWrite()
	select {
	case <-o.finished:
	case <-ctx.Done():
		o.abandon()
	}
}

// Write implements kernel.File, on the loop. It waits for room before it takes anything, and then
// takes all of b.
func (o *outlet) Write(ctx context.Context, b []byte) (int, error) {
	for {
		o.mu.Lock()
		broken, room := o.broken || o.closed, len(o.buf) < outletSize
		if !broken && room {
			o.buf = append(o.buf, b...)
		}
		o.mu.Unlock()
		switch {
		case broken:
			o.room.Notify() // for the next who waits
			return 0, linux.EPIPE
		case room:
			o.poke()
			o.room.Notify()
			return len(b), nil
		}
		if err := o.room.Wait(ctx); err != nil {
			return 0, err
		}
	}
}

// Read implements kernel.File.
func (*outlet) Read(context.Context, []byte) (int, error) { return 0, linux.EBADF }

// Close implements kernel.File.
func (*outlet) Close() error { return nil }

// Dup implements kernel.File.
func (o *outlet) Dup() kernel.File { return o }

// duplex is a connection as a kernel.File. It is how a forwarded connection looks to the kernel.
type duplex struct {
	in  *inlet
	out *outlet
}

// Read implements kernel.File.
func (d *duplex) Read(ctx context.Context, b []byte) (int, error) { return d.in.Read(ctx, b) }

// Write implements kernel.File.
func (d *duplex) Write(ctx context.Context, b []byte) (int, error) { return d.out.Write(ctx, b) }

// Close implements kernel.File.
func (*duplex) Close() error { return nil }

// Dup implements kernel.File.
func (d *duplex) Dup() kernel.File { return d }

// CloseWrite says that the other side gets no more.
func (d *duplex) CloseWrite() error {
	d.out.closeWrite()
	return nil
}

// relay runs fn on the loop with a connection, which the caller closes
// afterwards. Its goroutines count in work. Its order of ends: fn returns when the pod's side is
// done; what waits for the client is written unless there was an error.
func (s *Server) relay(ctx context.Context, work *sync.WaitGroup, conn io.ReadWriter, fn func(context.Context, *fakecri.Client, *duplex) error) error {
	d := &duplex{in: newInlet(s.loop, conn), out: newOutlet(s.loop, conn)}
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		d.out.end = func() { _ = w.CloseWrite() }
	}
	work.Go(d.in.run)
	work.Go(d.out.run)
	_, err := onLoop(ctx, s, "PortForward", func(ctx context.Context, c *fakecri.Client) (struct{}, error) {
		return struct{}{}, fn(ctx, c, d)
	})
	d.in.stop()
	if err != nil {
		d.out.abandon()
		return err
	}
	d.out.finish(ctx)
	return nil
}
