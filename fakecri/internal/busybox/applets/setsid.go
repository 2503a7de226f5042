package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Setsid is setsid. There are no sessions here: the program is run, and that is
// all; -c does nothing.
func Setsid() applet.Applet { return applet.New(runSetsid, "setsid", "PROG ARGS") }

// runSetsid never forks: the real one does so only when it leads a process
// group.
func runSetsid(c *applet.Call) int {
	o := c.Getopt("+c")
	if len(o.Args) == 0 {
		c.Usage()
	}
	return c.Become(o.Args, nil, applet.CantExec)
}
