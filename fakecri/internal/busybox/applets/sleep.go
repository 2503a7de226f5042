package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Sleep is sleep. Times are added, as GNU has it, with fractions and the units
// s, m, h and d; inf is longer than any run. A signal that is ignored does not
// end it.
func Sleep() applet.Applet { return applet.New(runSleep, "sleep", "[N]...") }

func runSleep(c *applet.Call) int {
	if len(c.Args) == 0 {
		c.Usage()
	}
	args := c.Args
	// sleep has no options, so it reads the end of options itself.
	if args[0] == "--" {
		args = args[1:]
	}
	var total time.Duration
	for _, a := range args {
		d, ok := applet.Duration(a)
		if !ok {
			c.Die("invalid number '%s'", a)
		}
		// Each time is bounded by Forever; bounding the sum too keeps it from
		// overflowing.
		total = min(applet.Forever, total+d)
	}
	return c.Pause(total)
}
