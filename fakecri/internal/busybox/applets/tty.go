package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// TTY is tty. A container has at most one terminal, /dev/pts/0.
func TTY() applet.Applet { return applet.New(runTTY, "tty", "[-s]") }

// runTTY asks the standard input alone, as POSIX has it; with -s only the
// status answers.
func runTTY(c *applet.Call) int {
	o := c.Getopt("s")
	if applet.IsTTY(c.P.FD(0)) {
		if !o.Has('s') {
			c.Print("/dev/pts/0\n")
		}
		return 0
	}
	if !o.Has('s') {
		c.Print("not a tty\n")
	}
	return 1
}
