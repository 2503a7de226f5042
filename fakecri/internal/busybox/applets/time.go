package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Time is time.
func Time() applet.Applet { return applet.New(runTime, "time", "[-p] PROG ARGS") }

func runTime(c *applet.Call) int {
	o := c.Getopt("+vpao:f:", "verbose=v", "portability=p", "format=f:")
	if len(o.Args) == 0 {
		c.Usage()
	}
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

func secondsOf(d time.Duration) string {
	hundredths := int(d / (10 * time.Millisecond))
	text := applet.Itoa(hundredths % 100)
	if len(text) < 2 {
		text = "0" + text
	}
	return applet.Itoa(hundredths/100) + "." + text
}
