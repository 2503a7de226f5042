package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Readlink is readlink of one name. With -f a last element may be missing.
// Failures are silent but for -v, as BusyBox's are.
func Readlink() applet.Applet { return applet.New(runReadlink, "readlink", "[-fnv] FILE") }

// runReadlink without -f fails for what is no link, so its status tests for
// one.
func runReadlink(c *applet.Call) int {
	o := c.Getopt("fnvsq", "canonicalize=f", "no-newline=n")
	if len(o.Args) != 1 {
		c.Usage()
	}
	var to string
	var err error
	if o.Has('f') {
		to, err = c.Canonical(o.Args[0], false)
	} else {
		to, err = c.View().Readlink(o.Args[0])
	}
	if err != nil {
		if o.Has('v') {
			c.Errorf("%s: %s", o.Args[0], applet.Strerror(err))
		}
		return 1
	}
	c.Print(to)
	if !o.Has('n') {
		c.Print("\n")
	}
	return 0
}
