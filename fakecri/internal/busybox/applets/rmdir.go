package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Rmdir is rmdir. -p goes up as far as the operand's own path leads.
// --ignore-fail-on-non-empty is read and does nothing.
func Rmdir() applet.Applet { return applet.New(runRmdir, "rmdir", "[-p] DIRECTORY...") }

func runRmdir(c *applet.Call) int {
	o := c.Getopt("p", "parents=p", "ignore-fail-on-non-empty=1")
	if len(o.Args) == 0 {
		c.Usage()
	}
	code := 0
	for _, name := range o.Args {
		for dir := name; ; {
			// Remove would also take a file; rmdir(2) refuses it with ENOTDIR.
			fi, err := c.View().Lstat(dir)
			if err == nil && !fi.IsDir() {
				err = linux.ENOTDIR
			}
			if err == nil {
				err = c.View().Remove(dir)
			}
			if err != nil {
				c.Errorf("'%s': %s", dir, applet.Strerror(err))
				code = 1
				break
			}
			// At 0 only the root is left, which -p does not try to remove.
			up := strings.LastIndexByte(strings.TrimRight(dir, "/"), '/')
			if !o.Has('p') || up <= 0 {
				break
			}
			dir = dir[:up]
		}
	}
	return code
}
