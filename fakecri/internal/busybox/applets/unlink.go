package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Unlink is unlink.
func Unlink() applet.Applet { return applet.New(runUnlink, "unlink", "FILE") }

func runUnlink(c *applet.Call) int {
	if len(c.Args) != 1 {
		c.Usage()
	}
	if err := c.View().Remove(c.Args[0]); err != nil {
		c.Die("can't remove file '%s': %s", c.Args[0], applet.Strerror(err))
	}
	return 0
}
