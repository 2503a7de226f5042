package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Umount is umount, which always fails: containers can't unmount what the
// runtime has mounted, and what they mount themselves stays as long as they do.
func Umount() applet.Applet { return applet.New(runUmount, "umount", "[-flr] FILESYSTEM|DIRECTORY") }

// runUmount answers for every operand with EPERM's words, and status 1.
func runUmount(c *applet.Call) int {
	o := c.Getopt("fldrat:D")
	for _, a := range o.Args {
		c.Errorf("can't unmount %s: Operation not permitted", a)
	}
	if len(o.Args) == 0 {
		c.Usage()
	}
	return 1
}
