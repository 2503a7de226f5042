// Package clientio makes files of a simulation's loop of the connections of clients, which
// block: what a client sends is an Inlet, what it gets an Outlet. Each has a goroutine,
// which the loop never waits for.
package clientio

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	// chunkSize is how much is read from a client at a time.
	chunkSize = 32 << 10
	// waitingSize is how much can wait for a client, in bytes, before who
	// writes on the loop has to wait. A write is taken as long as there is less than this, so one
	// large write may go beyond.
	waitingSize = 256 << 10
)

// Inlet is a kernel.File for the loop that reads what a goroutine reads from a
// client, one chunk ahead. The chunk ahead bounds what a client can push into memory; it waits
// for the reader after that.
type Inlet struct {
	post func(func())
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

// NewInlet makes a file of the loop of what a client sends. post runs a function on the
// loop, from any goroutine.
func NewInlet(post func(func()), r io.Reader) *Inlet {
	return &Inlet{post: post, r: r, done: make(chan struct{}), next: make(chan struct{}, 1)}
}

// Run is the goroutine; it ends when the client's connection does, or when it
// has something that nobody will read. buf belongs to this goroutine, so what goes to the loop is
// a copy.
func (i *Inlet) Run() {
	buf := make([]byte, chunkSize)
	for {
		n, err := i.r.Read(buf)
		if n > 0 {
			chunk := slices.Clone(buf[:n])
			i.post(func() {
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
			i.post(func() {
				i.ended = true
				i.readable.Notify()
			})
			return
		}
	}
}

// Stop says that nobody reads any more.
func (i *Inlet) Stop() { i.once.Do(func() { close(i.done) }) }

// Read implements kernel.File, on the loop. Several tasks may read: whoever leaves something
// behind wakes the next.
func (i *Inlet) Read(ctx context.Context, b []byte) (int, error) {
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
func (*Inlet) Write(context.Context, []byte) (int, error) { return 0, linux.EBADF }

// Close implements kernel.File.
func (*Inlet) Close() error { return nil }

// Dup implements kernel.File.
func (i *Inlet) Dup() kernel.File { return i }

// Outlet is a kernel.File for the loop whose writes a goroutine hands to a
// client. What waits is bounded. mu is held for moments only, so the loop may take it.
type Outlet struct {
	post func(func())
	w    io.Writer
	// Patience is how long a client may take nothing of what waits for it before it is
	// given up; 0: for ever.
	Patience time.Duration
	// End is called when all was written, if it is not nil.
	End func()

	mu  sync.Mutex
	buf []byte
	// closed and broken never go back.
	closed   bool // nothing more comes
	broken   bool // nothing more is taken
	wake     chan struct{}
	finished chan struct{}

	room loop.Signal // on the loop
}

// NewOutlet makes a file of the loop that sends to a client; post as of NewInlet.
func NewOutlet(post func(func()), w io.Writer) *Outlet {
	return &Outlet{post: post, w: w, wake: make(chan struct{}, 1), finished: make(chan struct{})}
}

// Run is the goroutine. It takes all that waits at once, and lets the loop's writers go on while
// it writes.
func (o *Outlet) Run() {
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
			if o.End != nil {
				o.End()
			}
			return
		case len(b) == 0:
			<-o.wake
			continue
		}
		o.post(o.room.Notify)
		if !o.write(b) {
			o.Abandon()
			return
		}
	}
}

// write hands b to the client; false means that it takes nothing more. A client that takes
// nothing for longer than patience is given up, which ends the write as well.
func (o *Outlet) write(b []byte) bool {
	if o.Patience > 0 {
		t := time.AfterFunc(o.Patience, o.Abandon)
		defer t.Stop()
	}
	_, err := o.w.Write(b)
	return err == nil
}

// poke wakes the goroutine. One wake-up is enough, however often it is asked for.
func (o *Outlet) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Abandon has all writes fail from now on, those that wait too. Writers get EPIPE, as from a pipe
// that nobody reads.
func (o *Outlet) Abandon() {
	o.mu.Lock()
	o.broken, o.buf = true, nil
	o.mu.Unlock()
	o.poke()
	o.post(o.room.Notify)
}

// CloseWrite says that no more comes; what waits is still written.
func (o *Outlet) CloseWrite() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.poke()
}

// Finish waits until the client has taken everything, or has gone.
func (o *Outlet) Finish(ctx context.Context) {
	o.CloseWrite()
	select {
	case <-o.finished:
	case <-ctx.Done():
		o.Abandon()
	}
}

// Write implements kernel.File, on the loop. It waits for room before it takes anything, and then
// takes all of b.
func (o *Outlet) Write(ctx context.Context, b []byte) (int, error) {
	for {
		o.mu.Lock()
		broken, room := o.broken || o.closed, len(o.buf) < waitingSize
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
func (*Outlet) Read(context.Context, []byte) (int, error) { return 0, linux.EBADF }

// Close implements kernel.File.
func (*Outlet) Close() error { return nil }

// Dup implements kernel.File.
func (o *Outlet) Dup() kernel.File { return o }

// Duplex is a connection as a kernel.File. It is how a forwarded connection looks to the kernel.
type Duplex struct {
	In  *Inlet
	Out *Outlet
}

// Read implements kernel.File.
func (d *Duplex) Read(ctx context.Context, b []byte) (int, error) { return d.In.Read(ctx, b) }

// Write implements kernel.File.
func (d *Duplex) Write(ctx context.Context, b []byte) (int, error) { return d.Out.Write(ctx, b) }

// Close implements kernel.File.
func (*Duplex) Close() error { return nil }

// Dup implements kernel.File.
func (d *Duplex) Dup() kernel.File { return d }

// CloseWrite says that the other side gets no more.
func (d *Duplex) CloseWrite() error {
	d.Out.CloseWrite()
	return nil
}
