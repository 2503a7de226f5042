package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Fold is fold. Columns are bytes, with or without -b: tabs and backspaces are
// not counted by where they lead. With -s a line breaks after its last blank,
// if it has one.
func Fold() applet.Applet { return applet.New(runFold, "fold", "[-bs] [-w WIDTH] [FILE]...") }

func runFold(c *applet.Call) int {
	o := c.Getopt("bsw:", "bytes=b", "spaces=s", "width=w:")
	width := 80
	if o.Has('w') {
		// At least 1, or no line would ever get shorter.
		width = max(1, int(c.Number(o.Str('w'))))
	}
	return c.EachLine(o.Args, applet.PlainOpen, func(text string, ended bool) {
		for len(text) > width {
			at := width
			if o.Has('s') {
				if i := strings.LastIndexAny(text[:width], " \t"); i > 0 {
					at = i + 1
				}
			}
			c.Print(text[:at], "\n")
			text = text[at:]
		}
		c.Print(text, applet.NewlineIf(ended))
	})
}
