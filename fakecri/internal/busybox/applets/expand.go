package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Expand is expand. Tab stops are equally far apart: a list for -t is an
// invalid number. Columns are bytes. unexpand is not built.
func Expand() applet.Applet { return applet.New(runExpand, "expand", "[-i] [-t N] [FILE]...") }

func runExpand(c *applet.Call) int {
	o := c.Getopt("it:", "initial=i", "tabs=t:")
	tab := 8
	if o.Has('t') {
		// At least 1, as columns are divided by it.
		tab = max(1, int(c.Number(o.Str('t'))))
	}
	return c.EachLine(o.Args, applet.PlainOpen, func(text string, ended bool) {
		column, leading := 0, true
		for i := 0; i < len(text); i++ {
			ch := text[i]
			// -i leaves the tabs after the first other character.
			leading = leading && (ch == ' ' || ch == '\t')
			if ch == '\t' && (leading || !o.Has('i')) {
				n := tab - column%tab
				c.Print(strings.Repeat(" ", n))
				column += n
				continue
			}
			c.Print(text[i : i+1])
			column++
		}
		c.Print(applet.NewlineIf(ended))
	})
}
