package applets

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Usemem is usemem: see runUsemem.
func Usemem() applet.Applet { return applet.New(runUsemem, "usemem", "BYTES") }

// runUsemem takes memory, touches it, and sleeps until SIGTERM. It is no
// busybox applet but a test program of the recordings' images.
func runUsemem(c *applet.Call) int {
	if len(c.Args) != 1 {
		c.Usage()
	}
	n := c.Number(c.Args[0])
	c.P.Disposition(kernel.SIGTERM, kernel.Catch)
	// In bytes. Growing in steps lets metrics and eviction see the memory rise,
	// and a signal end it on the way.
	const chunk = 16 << 20
	for left := n; left > 0; left -= chunk {
		if err := c.P.Alloc(c.Ctx, min(left, chunk)); err != nil {
			c.Die("%s", applet.Strerror(err))
		}
		_ = c.P.Step(c.Ctx, 4*time.Millisecond)
		if _, ok := c.P.NextSignal(); ok {
			return 0
		}
	}
	for {
		if c.P.Sleep(c.Ctx, applet.Forever) == nil {
			continue
		}
		if _, ok := c.P.NextSignal(); ok || c.Ctx.Err() != nil {
			return 0
		}
	}
}
