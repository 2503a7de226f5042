package applets

import (
	"errors"
	"io"
	"io/fs"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Touch is touch. There is one time, so -a and -m are read and both set it; -h
// and -f do nothing. -t takes what -d takes. A missing file is made, unless -c,
// and a directory for it is not.
func Touch() applet.Applet {
	return applet.New(runTouch, "touch", "[-cham] [-d DATE] [-t DATE] [-r FILE] FILE...")
}

// runTouch takes the time of the node's clock unless -d, -t or -r names
// another; of those the last one counts.
func runTouch(c *applet.Call) int {
	o := c.Getopt("chamd:t:r:f", "no-create=c", "date=d:", "reference=r:", "time=t:")
	if len(o.Args) == 0 {
		c.Usage()
	}
	at := c.P.Now()
	v := c.View()
	switch o.Last("dtr") {
	case 'd', 't':
		s := o.Str(o.Last("dtr"))
		t, ok := applet.ParseDate(s, at)
		if !ok {
			c.Die("invalid date '%s'", s)
		}
		at = t
	case 'r':
		fi, err := v.Stat(o.Str('r'))
		if err != nil {
			c.Die("can't stat '%s': %s", o.Str('r'), applet.Strerror(err))
		}
		at = fi.ModTime()
	}
	code := 0
	for _, name := range o.Args {
		err := v.Chtimes(name, at)
		// Changing the time is tried first: its error reports whether the file
		// exists.
		if errors.Is(err, fs.ErrNotExist) {
			if o.Has('c') {
				continue
			}
			var f io.Closer
			if f, err = c.Create(name, true); err == nil {
				f.Close()
				// A new file has the current time already.
				if o.Last("dtr") != 0 {
					err = v.Chtimes(name, at)
				}
			}
		}
		if err != nil {
			c.Errorf("%s: %s", name, applet.Strerror(err))
			code = 1
		}
	}
	return code
}
