package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Realpath is realpath: here all elements must exist, as those of GNU's -e.
func Realpath() applet.Applet { return applet.New(runRealpath, "realpath", "FILE...") }

func runRealpath(c *applet.Call) int {
	if len(c.Args) == 0 {
		c.Usage()
	}
	code := 0
	for _, name := range c.Getopt("").Args {
		// A name that can't be resolved does not stop the others.
		to, err := c.Canonical(name, true)
		if err != nil {
			c.Errorf("%s: %s", name, applet.Strerror(err))
			code = 1
			continue
		}
		c.Print(to, "\n")
	}
	return code
}
