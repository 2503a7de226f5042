package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Unlink is unlink: of one file. A directory is removed too if it is empty,
// which unlink(2) would refuse.
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
