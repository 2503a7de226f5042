//go:build linux

package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// watchedListener hands out connections that tell when the other side has gone
// and that can be closed together: net/http forgets those that are upgraded. A stream's client
// that vanishes must end the stream: the loop's task waits for ctx, and ctx ends here.
type watchedListener struct {
	net.Listener
	mu     sync.Mutex
	conns  map[*watchedConn]struct{}
	closed bool
}

// newWatchedListener returns a listener without connections yet.
func newWatchedListener(l net.Listener) *watchedListener {
	return &watchedListener{Listener: l, conns: map[*watchedConn]struct{}{}}
}

// Accept implements net.Listener.
func (l *watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w := &watchedConn{Conn: c, l: l, gone: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The connection is returned all the same, closed, so that Serve goes on to its own end.
	if l.closed {
		_ = c.Close()
		return w, nil
	}
	l.conns[w] = struct{}{}
	return w, nil
}

// closeAll closes every connection, and those that come yet. Closing happens outside the lock, as
// Close takes it.
func (l *watchedListener) closeAll() {
	l.mu.Lock()
	l.closed = true
	conns := make([]*watchedConn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// context is http.Server's ConnContext: a request's context ends with its
// connection, also after an upgrade. net/http cancels a request's context at its end, but not for
// connections that it gave away.
func (l *watchedListener) context(ctx context.Context, c net.Conn) context.Context {
	w, ok := c.(*watchedConn)
	if !ok {
		return ctx
	}
	return &connContext{Context: ctx, w: w}
}

// connContext is a context that ends when the connection does.
type connContext struct {
	context.Context
	w *watchedConn
}

// Done is closed when the client has gone. The parent, a server's base context,
// never ends.
func (c *connContext) Done() <-chan struct{} { return c.w.gone }

// Err returns context.Canceled once Done is closed.
func (c *connContext) Err() error {
	select {
	case <-c.w.gone:
		return context.Canceled
	default:
		return nil
	}
}

// watchedConn notices the end of its connection. It learns of the end by reading; somebody always
// reads a stream's connection.
type watchedConn struct {
	net.Conn
	l    *watchedListener
	once sync.Once
	gone chan struct{}

	closing  sync.Once
	closeErr error
}

// end says once that the client has gone.
func (c *watchedConn) end() { c.once.Do(func() { close(c.gone) }) }

// Read implements net.Conn. A deadline is no end: the streaming library sets some to interrupt
// reads.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.end()
	}
	return n, err
}

// Close implements net.Conn. It may be called again: a SPDY connection that
// gets an error from it lingers for a second.
func (c *watchedConn) Close() error {
	c.end()
	c.closing.Do(func() {
		c.l.mu.Lock()
		delete(c.l.conns, c)
		c.l.mu.Unlock()
		c.closeErr = c.Conn.Close()
	})
	return c.closeErr
}

// streamConn is a forwarded stream as a net.Conn; it has no deadlines. It is for sniff, which
// wants a net.Conn.
type streamConn struct{ io.ReadWriteCloser }

// CloseWrite says that nothing more is sent.
func (c *streamConn) CloseWrite() error { return c.ReadWriteCloser.Close() }

// LocalAddr and RemoteAddr are made up.
func (*streamConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (*streamConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// SetDeadline, SetReadDeadline and SetWriteDeadline do nothing.
func (*streamConn) SetDeadline(time.Time) error      { return nil }
func (*streamConn) SetReadDeadline(time.Time) error  { return nil }
func (*streamConn) SetWriteDeadline(time.Time) error { return nil }
