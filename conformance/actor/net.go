//go:build linux

package main

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// listener and conn give their turn up while the kernel makes them wait. One task of the actor
// runs at a time, as on a loop, so its code needs no locks. A call that does not wait, such as
// Close, keeps the turn.
type listener struct {
	w *world
	l net.Listener
}

// Listen implements actor.World: on all addresses, as a server in a pod does.
func (w *world) Listen(ctx context.Context, port int) (actor.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	return &listener{w, l}, nil
}

// Accept waits without the lock. The context is not looked at: nothing ends the actor's tasks but
// its end.
func (l *listener) Accept(context.Context) (actor.Conn, error) {
	var c net.Conn
	var err error
	l.w.wait(func() { c, err = l.l.Accept() })
	if err != nil {
		return nil, err
	}
	return &conn{l.w, c.(*net.TCPConn)}, nil
}

// Dial gives up after timeout. A name is looked up by Go's own resolver, which a static program
// has.
func (w *world) Dial(ctx context.Context, host string, port int, timeout time.Duration) (actor.Conn, error) {
	var c net.Conn
	var err error
	w.wait(func() {
		d := net.Dialer{Timeout: timeout}
		c, err = d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	})
	if err != nil {
		return nil, err
	}
	return &conn{w, c.(*net.TCPConn)}, nil
}

// conn is a connection. Read and Write wait without the lock, like all that may take time. TCP
// alone has CloseWrite, which the actor's echo needs to say that all was said.
type conn struct {
	w *world
	c *net.TCPConn
}

func (c *conn) Read(_ context.Context, b []byte) (n int, err error) {
	c.w.wait(func() { n, err = c.c.Read(b) })
	return n, err
}

func (c *conn) Write(_ context.Context, b []byte) (n int, err error) {
	c.w.wait(func() { n, err = c.c.Write(b) })
	return n, err
}

func (c *conn) Close() error      { return c.c.Close() }
func (c *conn) CloseWrite() error { return c.c.CloseWrite() }

// Remote is the other side's address, without its port.
func (c *conn) Remote() string {
	host, _, _ := net.SplitHostPort(c.c.RemoteAddr().String())
	return host
}
