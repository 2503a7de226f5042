package applets

import (
	"io"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Tee is tee, which passes on what one read gives, so that a slow input is seen
// at once. An output that fails is given up, the others go on. -i does nothing.
func Tee() applet.Applet { return applet.New(runTee, "tee", "[-a] [FILE]...") }

// runTee ends with its input. It writes unbuffered, since its readers may be
// waiting for each line.
func runTee(c *applet.Call) int {
	o := c.Getopt("ai", "append=a", "ignore-interrupts=i")
	outs := []io.Writer{}
	names := []string{}
	if f := c.P.FD(1); f != nil {
		outs = append(outs, c.Stream(f))
		names = append(names, "standard output")
	}
	code := 0
	for _, name := range o.Args {
		f, err := c.Create(name, o.Has('a'))
		if err != nil {
			c.Errorf("%s: %s", name, applet.Strerror(err))
			code = 1
			continue
		}
		outs = append(outs, f)
		names = append(names, name)
	}
	buf := make([]byte, 4096)
	in := c.Stdin()
	for {
		n, err := in.Read(buf)
		for i, w := range outs {
			if w == nil || n == 0 {
				continue
			}
			if _, werr := w.Write(buf[:n]); werr != nil {
				c.Errorf("%s: %s", names[i], applet.Strerror(werr))
				// Dropped after one message: the next write would fail the same
				// way.
				outs[i] = nil
				code = 1
			}
		}
		if err != nil {
			return code
		}
	}
}
