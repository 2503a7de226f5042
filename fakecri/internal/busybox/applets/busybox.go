package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Busybox is busybox by its own name. An applet is run in the same process, so
// that its process number and parent are the caller's. --install and --show are
// not built: what begins with a dash, except --list, prints the version line.
func Busybox() applet.Applet { return applet.New(runBusybox, "busybox", "[--list | APPLET [ARG]...]") }

// runBusybox is the program by its own name.
func runBusybox(c *applet.Call) int {
	// The kernel has not taken the applet's name off, since argv[0] is busybox.
	args := c.P.Argv[min(1, len(c.P.Argv)):]
	switch {
	case len(args) > 0 && args[0] == "--list":
		for _, name := range Names() {
			c.Print(name, "\n")
		}
		return 0
	case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		for _, a := range All() {
			for _, n := range a.Names {
				// busybox is no applet of itself: argv would stay the same, and it would
				// run itself for ever.
				if n.Name == args[0] && n.Name != "busybox" {
					return a.Program(n)(c.Ctx, c.P)
				}
			}
		}
		// The message begins with the name that was asked for, as if that applet had
		// failed.
		c.Name = args[0]
		c.Errorf("applet not found")
		return 127
	}
	c.Print("BusyBox v1.35.0 multi-call binary.\n")
	return 0
}
