package fake

import (
	"context"
	"errors"
	"time"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

type listener struct {
	w *world
	l *kernel.Listener
}

func (w *world) Listen(ctx context.Context, port int) (actor.Listener, error) {
	l, err := w.p.Listen(ctx, port)
	if err != nil {
		return nil, err
	}
	return &listener{w, l}, nil
}

func (l *listener) Accept(ctx context.Context) (actor.Conn, error) {
	c, err := l.l.Accept(ctx)
	if err != nil {
		return nil, err
	}
	l.w.p.Own(c)
	return &conn{l.w.p, c}, nil
}

func (w *world) Dial(ctx context.Context, host string, port int, timeout time.Duration) (actor.Conn, error) {
	wait, cancel := loop.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := w.p.Dial(wait, host, port)
	switch {
	case err == nil:
		return &conn{w.p, c}, nil
	case errors.Is(err, linux.ENOENT):
		return nil, errors.New("lookup " + host + ": no such host")
	}
	return nil, err
}

// conn is a connection that the process owns.
type conn struct {
	p *kernel.Process
	*kernel.Conn
}

func (c *conn) Close() error {
	c.p.Disown(c.Conn)
	return c.Conn.Close()
}

func (c *conn) Remote() string { return c.RemoteIP() }
