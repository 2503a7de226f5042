package applets

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Watch is watch. The command is run by sh -c, and its output goes straight
// through: it is not cut to a screen, and -x, -d and -g are not built.
func Watch() applet.Applet { return applet.New(runWatch, "watch", "[-n SEC] [-t] PROG ARGS") }

// runWatch ends only by a signal or when its output is gone; the command's
// status does not matter.
func runWatch(c *applet.Call) int {
	o := c.Getopt("+n:t", "interval=n:", "no-title=t")
	if len(o.Args) == 0 {
		c.Usage()
	}
	period := 2 * time.Second
	if o.Has('n') {
		d, ok := applet.Duration(o.Str('n'))
		if !ok {
			c.Die("invalid number '%s'", o.Str('n'))
		}
		// A period of 0 could run the command for ever at one instant.
		period = max(d, 100*time.Millisecond)
	}
	command := strings.Join(o.Args, " ")
	for {
		c.Print("\x1b[H\x1b[J")
		if !o.Has('t') {
			c.Printf("Every %ds: %s\n\n", period/time.Second, command)
		}
		c.Out.Flush()
		if child, err := c.Spawn([]string{"sh", "-c", command}, nil, nil); err == nil {
			c.Wait(child)
		}
		if c.P.Sleep(c.Ctx, period) != nil && c.Ctx.Err() != nil || c.Out.Failed() {
			return 1
		}
	}
}
