package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Rm is rm. -i asks nobody and removes; of -f and -i the last one counts, which
// only matters for what is missing. "." and ".." are refused by their letters,
// before anything is looked at. -v does nothing.
func Rm() applet.Applet { return applet.New(runRm, "rm", "[-irf] FILE...") }

func runRm(c *applet.Call) int {
	o := c.Getopt("fiRrv", "recursive=r", "force=f", "interactive=i", "verbose=v")
	force := o.Last("fi") == 'f'
	// rm -f without operands succeeds, as POSIX has it: scripts pass lists that
	// may be empty.
	if len(o.Args) == 0 && !force {
		c.Usage()
	}
	code := 0
	for _, name := range o.Args {
		// Slashes at the end go first, or ./ would get past the check.
		b := applet.Base(strings.TrimRight(name, "/"))
		if b == "." || b == ".." {
			c.Errorf("can't remove '.' or '..'")
			code = 1
			continue
		}
		if !c.Remove(name, o.Has('r') || o.Has('R'), force) {
			code = 1
		}
	}
	return code
}
