package applets

import (
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Brctl is brctl: enough for a container to find out whether it may make
// bridges (CAP_NET_ADMIN), which is what tests of privileges do. Bridges are
// not kept; any other command than show, addbr and delbr is a usage error.
func Brctl() applet.Applet { return applet.New(runBrctl, "brctl", "COMMAND [BRIDGE]") }

// runBrctl makes and removes bridges, which are not kept.
func runBrctl(c *applet.Call) int {
	o := c.Getopt("+")
	if len(o.Args) == 0 {
		c.Usage()
	}
	switch o.Args[0] {
	case "show":
		c.Print("bridge name\tbridge id\t\tSTP enabled\tinterfaces\n")
		return 0
	case "addbr", "delbr":
		if len(o.Args) != 2 {
			c.Usage()
		}
		// The privilege is all that a caller can learn here, so the bridge need not
		// exist.
		if !c.P.Can(kernel.CapNetAdmin) {
			c.Die("bridge %s: Operation not permitted", o.Args[1])
		}
		return 0
	}
	c.Usage()
	return 1
}
