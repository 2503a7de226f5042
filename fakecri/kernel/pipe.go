package kernel

import (
	"context"
	"io"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	errBadFD = linux.EBADF
	// pipeSize is what a pipe holds, as on Linux.
	pipeSize = 64 << 10
)

// pipe is a buffer between writers and readers. It is one direction: a connection has two of
// them. Signals are edge-triggered and wake one waiter each, so whoever leaves something behind
// for another must notify again.
type pipe struct {
	buf []byte
	// readers and writers count open ends; at 0 the other side sees an end, or a broken pipe.
	readers, writers int
	readable, room   loop.Signal
	// reset says that the reader of a connection went away with data unread.
	reset bool
}

// wait waits on a signal of the pipe, or for a caught signal of the process
// whose context it is. Without a handler there is nothing to interrupt a wait: other signals kill
// the task or do nothing.
func wait(ctx context.Context, s *loop.Signal) error {
	p := From(ctx)
	if p == nil || p.caught == 0 {
		return s.Wait(ctx)
	}
	i, err := loop.WaitAny(ctx, s, &p.signalled)
	if err == nil && i == 1 {
		return ErrInterrupted
	}
	return err
}

// read takes what is there, or waits for some. Whoever leaves some behind wakes
// the next reader.
func (q *pipe) read(ctx context.Context, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for len(q.buf) == 0 {
		// Data that is left is read before the end is seen.
		if q.writers == 0 {
			q.readable.Notify() // for the next who waits
			if q.reset {
				return 0, linux.ECONNRESET
			}
			return 0, io.EOF
		}
		if err := wait(ctx, &q.readable); err != nil {
			return 0, err
		}
	}
	n := copy(b, q.buf)
	// The array is not reused from its start: an empty buffer is dropped, and most are empty
	// soon.
	q.buf = q.buf[n:]
	if len(q.buf) == 0 {
		q.buf = nil
	} else {
		q.readable.Notify()
	}
	// A waiting writer looks by itself whether the room is enough.
	q.room.Notify()
	return n, nil
}

// write waits for room as often as it takes. What was written before an error
// counts. A program sees one write: the parts in between can mix with other writers', as on Linux
// for more than PIPE_BUF.
func (q *pipe) write(ctx context.Context, b []byte) (int, error) {
	done := 0
	for done < len(b) {
		if q.readers == 0 {
			q.room.Notify()
			return done, brokenPipe(ctx)
		}
		free := pipeSize - len(q.buf)
		// Up to a page a write is whole or not yet. PIPE_BUF is 4096.
		if free <= 0 || free < len(b)-done && len(b) <= 4096 {
			if err := wait(ctx, &q.room); err != nil {
				// An interrupted write reports what it wrote, without an error, as write(2) does.
				if done > 0 {
					return done, nil
				}
				return 0, err
			}
			continue
		}
		n := min(free, len(b)-done)
		q.buf = append(q.buf, b[done:done+n]...)
		done += n
		q.readable.Notify()
		if len(q.buf) < pipeSize {
			q.room.Notify()
		}
	}
	return done, nil
}

// brokenPipe gives SIGPIPE to whose context it is, which may not return. SIGPIPE kills a process
// that does nothing about it: "yes | head" ends that way.
func brokenPipe(ctx context.Context) error {
	if p := From(ctx); p != nil {
		p.deliver(SIGPIPE, true)
		p.checkAlive()
	}
	return linux.EPIPE
}

// closeReader wakes writers when nobody is left to read; what was written is lost.
func (q *pipe) closeReader() {
	q.readers--
	if q.readers == 0 {
		q.buf = nil
		q.room.Notify()
	}
}

// closeWriter wakes readers, who see the end after the data.
func (q *pipe) closeWriter() {
	q.writers--
	if q.writers == 0 {
		q.readable.Notify()
	}
}

// pipeReader and pipeWriter are the ends of a pipe. They count themselves, so
// that the other side sees when the last of them is closed.
type pipeReader struct{ q *pipe }

func (r pipeReader) Read(ctx context.Context, b []byte) (int, error) { return r.q.read(ctx, b) }
func (r pipeReader) Write(context.Context, []byte) (int, error)      { return 0, errBadFD }
func (r pipeReader) Close() error                                    { r.q.closeReader(); return nil }
func (r pipeReader) Dup() File                                       { r.q.readers++; return r }
func (r pipeReader) Path() string                                    { return "pipe:[1]" }

// The two are values without state of their own: a Dup only counts.
type pipeWriter struct{ q *pipe }

func (w pipeWriter) Read(context.Context, []byte) (int, error)        { return 0, errBadFD }
func (w pipeWriter) Write(ctx context.Context, b []byte) (int, error) { return w.q.write(ctx, b) }
func (w pipeWriter) Close() error                                     { w.q.closeWriter(); return nil }
func (w pipeWriter) Dup() File                                        { w.q.writers++; return w }
func (w pipeWriter) Path() string                                     { return "pipe:[1]" }

// Pipe returns the two ends of a pipe of 64 KiB.
func (m *Machine) Pipe() (r, w File) {
	q := &pipe{readers: 1, writers: 1}
	return pipeReader{q}, pipeWriter{q}
}
