package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Nice is nice. Processor time has no priorities here, so the adjustment is
// read and does nothing; without a program it prints 0.
func Nice() applet.Applet { return applet.New(runNice, "nice", "[-n ADJUST] [PROG ARGS]") }

// runNice replaces itself by the program, as the real one does by execvp(3), so
// that pid and status are the program's.
func runNice(c *applet.Call) int {
	o := c.Getopt("+n:", "adjustment=n:")
	if len(o.Args) == 0 {
		c.Print("0\n")
		return 0
	}
	return c.Become(o.Args, nil, applet.CantExec)
}
