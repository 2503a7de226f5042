package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Usleep is usleep, in microseconds.
func Usleep() applet.Applet { return applet.New(runUsleep, "usleep", "N") }

func runUsleep(c *applet.Call) int {
	if len(c.Args) != 1 {
		c.Usage()
	}
	return c.Pause(time.Duration(min(c.Number(c.Args[0]), int64(applet.Forever/time.Microsecond))) * time.Microsecond)
}
