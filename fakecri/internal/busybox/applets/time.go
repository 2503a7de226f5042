package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Time is time. The program runs as a child; user and system time are 0, as no
// processor is simulated for programs. -v, -a, -o and -f are read and do
// nothing: the report is always the short one, to stderr.
func Time() applet.Applet { return applet.New(runTime, "time", "[-p] PROG ARGS") }

// runTime returns the program's status, and reports even if the program could
// not be started.
func runTime(c *applet.Call) int {
	o := c.Getopt("+vpao:f:", "verbose=v", "portability=p", "format=f:")
	if len(o.Args) == 0 {
		c.Usage()
	}
	// The node's clock, so the report is of virtual time.
	start := c.P.Now()
	code := 0
	child, err := c.Spawn(o.Args, nil, nil)
	if err != nil {
		c.Errorf(applet.CantExec, o.Args[0], applet.Strerror(err))
		code = applet.NotRun(err)
	} else {
		code = c.Wait(child)
	}
	d := c.P.Now().Sub(start)
	if o.Has('p') {
		c.Stderr("real " + secondsOf(d) + "\nuser 0.00\nsys 0.00\n")
	} else {
		m := int(d / time.Minute)
		c.Stderr("real\t" + applet.Itoa(m) + "m " + secondsOf(d%time.Minute) + "s\nuser\t0m 0.00s\nsys\t0m 0.00s\n")
	}
	return code
}

// secondsOf is a time in seconds with two decimals, cut off and not rounded.
func secondsOf(d time.Duration) string {
	hundredths := int(d / (10 * time.Millisecond))
	text := applet.Itoa(hundredths % 100)
	if len(text) < 2 {
		text = "0" + text
	}
	return applet.Itoa(hundredths/100) + "." + text
}
