package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Sync is sync: nothing is ever unwritten. Operands are looked for, so that a
// missing file is told of.
func Sync() applet.Applet { return applet.New(runSync, "sync", "[-df] [FILE]...") }

func runSync(c *applet.Call) int {
	o := c.Getopt("df")
	code := 0
	for _, name := range o.Args {
		if _, err := c.View().Stat(name); err != nil {
			c.Errorf(applet.PlainOpen, name, applet.Strerror(err))
			code = 1
		}
	}
	// A nominal cost, so that a script that syncs in a loop still takes time.
	_ = c.P.Step(c.Ctx, time.Millisecond)
	return code
}
