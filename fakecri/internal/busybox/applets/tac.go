package applets

import (
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Tac is tac. A last line without a newline is followed by the line before it,
// on the same line: as GNU has it, too. Each file is turned by itself.
func Tac() applet.Applet { return applet.New(runTac, "tac", "[FILE]...") }

func runTac(c *applet.Call) int {
	return c.EachInput(c.Getopt("").Args, applet.PlainOpen, func(_ string, r io.Reader) error {
		data, err := c.Slurp(r)
		// Newlines stay with their lines. What was read before an error is
		// still printed.
		list := strings.SplitAfter(string(data), "\n")
		for i := len(list) - 1; i >= 0; i-- {
			c.Print(list[i])
		}
		return err
	})
}
