package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Basename is basename, with GNU's -a and -s. A suffix that is the whole name
// stays, as POSIX has it; "/" stays "/".
func Basename() applet.Applet {
	return applet.New(runBasename, "basename", "FILE [SUFFIX] | -a FILE... | -s SUFFIX FILE...")
}

func runBasename(c *applet.Call) int {
	o := c.Getopt("+as:")
	if len(o.Args) == 0 || !o.Has('a') && !o.Has('s') && len(o.Args) > 2 {
		c.Usage()
	}
	names, suffix := o.Args, o.Str('s')
	// With -a or -s every operand is a name, the second one as well.
	if !o.Has('a') && !o.Has('s') && len(names) == 2 {
		names, suffix = names[:1], names[1]
	}
	for _, n := range names {
		trimmed := strings.TrimRight(n, "/")
		// Nothing but slashes is the root; an empty operand stays empty.
		if trimmed == "" && n != "" {
			trimmed = "/"
		} else {
			trimmed = applet.Base(trimmed)
		}
		if s, ok := strings.CutSuffix(trimmed, suffix); ok && s != "" {
			trimmed = s
		}
		c.Print(trimmed, "\n")
	}
	return 0
}
