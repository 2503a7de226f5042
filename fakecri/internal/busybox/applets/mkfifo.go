package applets

import (
	"io/fs"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Mkfifo is mkfifo. What goes through a pipe stays in the node's kernel, even
// if its name is on a mount of the machine's own files. -Z is read and does
// nothing. mknod is not built.
func Mkfifo() applet.Applet { return applet.New(runMkfifo, "mkfifo", "[-m MODE] NAME") }

// runMkfifo goes on after an operand that fails; the status is 1 then.
func runMkfifo(c *applet.Call) int {
	o := c.Getopt("m:Z:", "mode=m:")
	if len(o.Args) == 0 {
		c.Usage()
	}
	// The umask is applied by the kernel to this default.
	mode := fs.FileMode(0o666)
	if o.Has('m') {
		m, ok := applet.ParseMode(o.Str('m'), 0o666, c.P.Umask)
		if !ok {
			c.Die("invalid mode '%s'", o.Str('m'))
		}
		mode = m
	}
	code := 0
	for _, name := range o.Args {
		if err := c.View().Mkfifo(name, mode); err != nil {
			c.Errorf("%s: %s", name, applet.Strerror(err))
			code = 1
		}
	}
	return code
}
