package applets

import (
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Chmod is chmod. -v, -c and -f are read and do nothing: the real one's reports
// of -v are not built. Symbolic links met by -R are left alone, as they have no
// mode of their own on Linux. A mode that begins with a dash is recognized by
// its letters.
func Chmod() applet.Applet { return applet.New(runChmod, "chmod", "[-R] MODE[,MODE]... FILE...") }

func runChmod(c *applet.Call) int {
	// A mode such as -x looks like an option.
	for i, a := range c.Args {
		if a == "--" {
			break
		}
		if len(a) > 1 && a[0] == '-' && strings.IndexByte("rwxXst", a[1]) >= 0 {
			// An a in front keeps getopt from taking the mode for options. Only one word
			// can be the mode, so the first such one ends the search.
			c.Args = append(append(append([]string{}, c.Args[:i]...), "a"+a), c.Args[i+1:]...)
			break
		}
	}
	o := c.Getopt("Rcvf", "recursive=R", "changes=c", "verbose=v", "silent=f", "quiet=f")
	if len(o.Args) < 2 {
		c.Usage()
	}
	spec := o.Args[0]
	// Before any file: a bad mode changes nothing.
	if _, ok := applet.ParseMode(spec, 0, c.P.Umask); !ok {
		c.Die("invalid mode '%s'", spec)
	}
	code := 0
	for _, name := range o.Args[1:] {
		if !c.EachBelow(name, o.Has('R'), func(name string, fi fs.FileInfo) error {
			if fi.Mode()&fs.ModeSymlink != 0 {
				return nil
			}
			// The mode is read anew for each file, as letters such as X depend on what it
			// has.
			mode, _ := applet.ParseMode(spec, fi.Mode(), c.P.Umask)
			return c.View().Chmod(name, mode)
		}) {
			code = 1
		}
	}
	return code
}
