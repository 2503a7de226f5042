package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Logname is logname, which fails in every container: nobody has logged in.
func Logname() applet.Applet { return applet.New(runLogname, "logname", "") }

func runLogname(c *applet.Call) int {
	c.Die("getlogin: No such device or address")
	// Not reached, as Die doesn't return.
	return 1
}
