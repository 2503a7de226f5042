package applets

import (
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Tac is tac.
func Tac() applet.Applet { return applet.New(runTac, "tac", "[FILE]...") }

func runTac(c *applet.Call) int {
	return c.EachInput(c.Getopt("").Args, applet.PlainOpen, func(_ string, r io.Reader) error {
		data, err := c.Slurp(r)
		list := strings.SplitAfter(string(data), "\n")
		for i := len(list) - 1; i >= 0; i-- {
			c.Print(list[i])
		}
		return err
	})
}
