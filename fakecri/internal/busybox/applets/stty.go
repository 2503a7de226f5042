package applets

import (
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Stty is stty, of which the size and a line of defaults is known. Modes can't
// be set: a TTY of the kernel is always in canonical mode.
func Stty() applet.Applet { return applet.New(runStty, "stty", "[size]") }

// runStty tells of the terminal that is the standard input. Its modes can't be
// changed, since there is one only.
func runStty(c *applet.Call) int {
	width, height, ok := kernel.WindowSize(c.P.FD(0))
	switch {
	case !ok:
		c.Errorf("standard input: Not a tty")
		return 1
	case len(c.Args) == 0:
		c.Print("speed 38400 baud; line = 0;\n")
		return 0
	case len(c.Args) == 1 && c.Args[0] == "size":
		c.Printf("%d %d\n", height, width)
		return 0
	}
	c.Errorf("invalid argument '%s'", c.Args[0])
	return 1
}
