package applets

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Nc is nc, for TCP. -u, -n, -i, -f, -s and -q are read and do nothing, so
// datagrams and serial lines are not built. -l takes its port from -p or from
// the last operand; -ll or -k go on after the first connection, one connection
// at a time unless each runs a program (-e).
//
// -w bounds the connecting, and here not the time without data.
func Nc() applet.Applet {
	return applet.New(runNc, "nc", "[-lzvk] [-w N] [-p PORT] [-e PROG] [HOST PORT]")
}

// runNc is nc, which takes options of both the small and the common netcat.
func runNc(c *applet.Call) int {
	o := c.Getopt("+lp:w:i:f:e:zvnus:q:k")
	port := 0
	parsePort := func(s string) int {
		n, ok := applet.ParseUint(s)
		if !ok || n > 65535 {
			c.Die("bad port '%s'", s)
		}
		return n
	}
	// ctx is the applet's, with the time limit of -w while it connects.
	ctx := c.Ctx
	var limit time.Duration
	if o.Has('w') {
		limit = time.Duration(c.Number(o.Str('w'))) * time.Second
	}
	args := o.Args
	if o.Has('l') {
		if o.Has('p') {
			port = parsePort(o.Str('p'))
		} else if len(args) > 0 {
			port = parsePort(args[len(args)-1])
		}
		if port == 0 {
			c.Usage()
		}
		return ncListen(c, o, port, limit)
	}
	if len(args) != 2 {
		c.Usage()
	}
	ip, ok := c.Address(args[0])
	if !ok {
		c.Die("bad address '%s'", args[0])
	}
	port = parsePort(args[1])
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = loop.WithTimeout(c.Ctx, limit)
		defer cancel()
	}
	conn, err := c.P.Dial(ctx, ip, port)
	if err != nil {
		// It was the limit that ended it, not the process's own end.
		if ctx.Err() != nil && c.Ctx.Err() == nil {
			c.Die("timed out")
		}
		c.Die("can't connect to remote host (%s): %s", ip, applet.Strerror(err))
	}
	if o.Has('v') {
		c.Stderr(args[0] + " (" + ip + ":" + applet.Itoa(port) + ") open\n")
	}
	if o.Has('z') {
		conn.Close()
		return 0
	}
	if o.Has('e') {
		return ncExec(c, o.Str('e'), conn)
	}
	return ncCopy(c, conn)
}

// ncListen accepts connections. The first one closes the port, unless more are
// wanted.
func ncListen(c *applet.Call, o *applet.Options, port int, limit time.Duration) int {
	l, err := c.P.Listen(c.Ctx, port)
	if err != nil {
		c.Die("bind: %s", applet.Strerror(err))
	}
	if o.Has('v') {
		c.Stderr("listening on [::]:" + applet.Itoa(port) + " ...\n")
	}
	// ErrInterrupted is a signal that did not end the process, so accepting
	// goes on.
	for {
		conn, err := l.Accept(c.Ctx)
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			c.Die("accept: %s", applet.Strerror(err))
		}
		if o.Has('v') {
			c.Stderr("connect to [::]:" + applet.Itoa(port) + " from " + conn.RemoteIP() + ":" + applet.Itoa(conn.RemotePort()) + "\n")
		}
		if o.Count['l'] > 1 || o.Has('k') {
			if o.Has('e') {
				prog := o.Str('e')
				child := c.P.Fork("nc", nil, func(ctx context.Context, p *kernel.Process) int {
					// The child has the connection and its own output; nobody
					// waits for it.
					sub := *c
					sub.Ctx, sub.P = ctx, p
					sub.Out = sub.Buffered(p.FD(1))
					return ncExec(&sub, prog, conn)
				})
				_ = child
				continue
			}
			// Without a program connections are served one after the other, and
			// the status of each is dropped because the listener outlives it.
			ncCopy(c, conn)
			continue
		}
		// The port is free again as soon as somebody is there.
		_ = l.Close()
		if o.Has('e') {
			return ncExec(c, o.Str('e'), conn)
		}
		return ncCopy(c, conn)
	}
}

// ncExec runs a program on a connection.
func ncExec(c *applet.Call, prog string, conn *kernel.Conn) int {
	// Each descriptor is a duplicate, so that a program that closes its output
	// does not close its input.
	c.P.SetFD(0, conn.Dup())
	c.P.SetFD(1, conn.Dup())
	c.P.SetFD(2, conn.Dup())
	return c.Become([]string{prog}, nil, applet.CantExec)
}

// ncCopy copies both ways until the other side is done. The end of the input is
// passed on, and what then comes back is still shown.
func ncCopy(c *applet.Call, conn *kernel.Conn) int {
	defer conn.Close()
	// A closed standard input counts as one that has ended.
	if f := c.P.FD(0); f != nil {
		c.P.Group().Go("nc", func(ctx context.Context) {
			buf := make([]byte, 4096)
			for {
				// The input is read by a task of its own: it may never end, and
				// then ends with the process.
				n, err := f.Read(ctx, buf)
				if n > 0 {
					if _, werr := conn.Write(ctx, buf[:n]); werr != nil {
						return
					}
				}
				if err != nil && !errors.Is(err, kernel.ErrInterrupted) || n == 0 && err == nil {
					_ = conn.CloseWrite()
					return
				}
			}
		})
	} else {
		_ = conn.CloseWrite()
	}
	buf := make([]byte, 4096)
	for {
		n, err := c.Stream(conn).Read(buf)
		if n > 0 {
			_, _ = c.Out.Write(buf[:n])
			// Data is shown as it comes, since the other side may be waiting
			// for an answer to it.
			c.Out.Flush()
		}
		if err != nil {
			// A reset is an end like any other for the status.
			if err != io.EOF && !errors.Is(err, linux.ECONNRESET) {
				return 1
			}
			return 0
		}
	}
}
