package applets

import (
	"cmp"
	"strconv"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Nl is nl for bodies: headers, footers and their numbering are not built, as
// in BusyBox. -l and -p are read and do nothing; of -b's styles a, t and n
// count. Lines without a number are indented as far as the others.
func Nl() applet.Applet {
	return applet.New(runNl, "nl", "[-b STYLE] [-i N] [-n FORMAT] [-s SEP] [-v N] [-w N] [FILE]...")
}

// runNl counts over all files together: BusyBox does not start again with each.
func runNl(c *applet.Call) int {
	o := c.Getopt("pb:i:l:n:s:v:w:", "body-numbering=b:", "line-increment=i:", "number-format=n:", "number-separator=s:", "starting-line-number=v:", "number-width=w:")
	style, sep, width, n, step := "t", "\t", 6, int64(1), int64(1)
	if o.Has('b') {
		style = o.Str('b')
	}
	if o.Has('s') {
		sep = o.Str('s')
	}
	if o.Has('w') {
		width = int(c.Number(o.Str('w')))
	}
	if o.Has('v') {
		// The first number may be negative, so Number, which reads unsigned
		// ones, won't do.
		n, _ = strconv.ParseInt(o.Str('v'), 10, 64)
	}
	if o.Has('i') {
		step = c.Number(o.Str('i'))
	}
	// Left without zeros, right with; right without them is the default.
	format := cmp.Or(map[string]string{"ln": "%-*d", "rz": "%0*d"}[o.Str('n')], "%*d")
	return c.EachLine(o.Args, applet.PlainOpen, func(text string, _ bool) {
		if style == "n" || style == "t" && text == "" {
			// What is not numbered does not advance the number.
			c.Printf("%*s%s\n", width+len(sep), "", text)
			return
		}
		c.Printf(format+"%s%s\n", width, n, sep, text)
		n += step
	})
}
