package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Echo is echo. A word of options counts only if it has no other letter than n,
// e and E; else it and what follows is text. Unlike what POSIX allows,
// backslashes mean nothing without -e; \c ends the output, newline included.
func Echo() applet.Applet { return applet.New(runEcho, "echo", "[-neE] [ARG]...") }

func runEcho(c *applet.Call) int {
	newline, escapes := true, false
	args := c.Args
	// Not getopt, which would refuse letters that are text here.
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, f := range args[0][1:] {
			switch f {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	// \c ends the text, and takes the newline with it.
	if escapes {
		var stop bool
		if text, stop = applet.EchoEscapes(text); stop {
			newline = false
		}
	}
	c.Print(text)
	if newline {
		c.Print("\n")
	}
	return 0
}
