package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Printenv is printenv, of which Debian's busybox has none.
func Printenv() applet.Applet { return applet.New(runPrintenv, "printenv", "[VARIABLE]...") }

// runPrintenv prints values in the order of the operands. One that is not set
// prints nothing and makes the status 1.
func runPrintenv(c *applet.Call) int {
	if len(c.Args) == 0 {
		for _, kv := range c.P.Env {
			c.Print(kv, "\n")
		}
		return 0
	}
	code := 0
	for _, name := range c.Args {
		found := false
		for _, kv := range c.P.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				c.Print(v, "\n")
				found = true
				break
			}
		}
		if !found {
			code = 1
		}
	}
	return code
}
