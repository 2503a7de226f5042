package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Timeout is timeout. -s takes a signal, -k sends KILL so much later than the
// first one. The status is the program's own, 128 and the signal if that killed
// it: BusyBox knows no 124.
func Timeout() applet.Applet {
	return applet.New(runTimeout, "timeout", "[-s SIG] [-k KILL_SECS] SECS PROG ARGS")
}

// runTimeout runs the program in the applet's own process, as the real one
// does, so that who waits sees how the program ended; a timer watches.
func runTimeout(c *applet.Call) int {
	o := c.Getopt("+s:k:", "signal=s:", "kill-after=k:")
	if len(o.Args) < 2 {
		c.Usage()
	}
	sig := 15
	if o.Has('s') {
		n, ok := kernel.SignalNumber(o.Str('s'))
		if !ok {
			c.Die("unknown signal '%s'", o.Str('s'))
		}
		sig = n
	}
	limit, ok := applet.Duration(o.Args[0])
	if !ok {
		c.Die("invalid number '%s'", o.Args[0])
	}
	var again time.Duration
	if o.Has('k') {
		if again, ok = applet.Duration(o.Str('k')); !ok {
			c.Die("invalid number '%s'", o.Str('k'))
		}
	}
	// It is looked for first, since BusyBox would fork before it fails.
	if _, err := c.Find(o.Args[1], c.P.Env); err != nil {
		c.Errorf(applet.CantExec, o.Args[1], applet.Strerror(err))
		return applet.NotRun(err)
	}
	// No time limit at all, as for GNU.
	if limit == 0 {
		return c.Become(o.Args[1:], nil, applet.CantExec)
	}
	// The process stays the same when Become replaces the program in it.
	target := c.P
	watchdog := c.P.Group().After(limit, func() { target.Signal(sig) })
	var second *loop.Timer
	if o.Has('k') {
		second = c.P.Group().After(limit+again, func() { target.Signal(kernel.SIGKILL) })
	}
	code := c.Become(o.Args[1:], nil, applet.CantExec)
	watchdog.Stop()
	if second != nil {
		second.Stop()
	}
	return code
}
