package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Truncate is truncate to a size; GNU's relative sizes (+, -, <, >) and -r are
// not built and are invalid numbers or options. What is added is a hole.
func Truncate() applet.Applet { return applet.New(runTruncate, "truncate", "[-c] -s SIZE FILE...") }

// runTruncate makes a missing file, unless -c; then a missing one is no error.
func runTruncate(c *applet.Call) int {
	o := c.Getopt("cs:", "size=s:", "no-create=c")
	if len(o.Args) == 0 || !o.Has('s') {
		c.Usage()
	}
	size := c.Sized(o.Str('s'), applet.SizeSuffixes())
	code := 0
	for _, name := range o.Args {
		if _, err := c.View().Stat(name); err != nil {
			if o.Has('c') {
				continue
			}
			f, err := c.Create(name, true)
			if err != nil {
				c.Errorf("%s: open: %s", name, applet.Strerror(err))
				code = 1
				continue
			}
			f.Close()
		}
		if err := c.View().Truncate(name, size); err != nil {
			c.Errorf("%s: truncate: %s", name, applet.Strerror(err))
			code = 1
		}
	}
	return code
}
