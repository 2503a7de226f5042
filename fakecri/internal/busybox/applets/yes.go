package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Yes is yes, for ever. It writes blocks, as one word at a time would cost a
// step each; time passes by what is written, and a reader that goes away ends
// it.
func Yes() applet.Applet { return applet.New(runYes, "yes", "[STRING]") }

func runYes(c *applet.Call) int {
	text := "y"
	if args := c.Args; len(args) > 0 {
		if args[0] == "--" {
			args = args[1:]
		}
		text = strings.Join(args, " ")
	}
	line := text + "\n"
	// About a page at a time, and at least one line however long it is.
	block := strings.Repeat(line, max(1, 4096/len(line)))
	for {
		c.Print(block)
		if c.Out.Failed() {
			return 1
		}
	}
}
