package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Logname is logname.
func Logname() applet.Applet { return applet.New(runLogname, "logname", "") }

func runLogname(c *applet.Call) int {
	c.Die("getlogin: No such device or address")
	return 1
}
