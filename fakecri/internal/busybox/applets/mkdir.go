package applets

import (
	"errors"
	"io/fs"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Mkdir is mkdir. -m sets the mode after the directory is made, so that the
// umask does not count; parents that -p makes have the default mode. -v does
// nothing.
func Mkdir() applet.Applet { return applet.New(runMkdir, "mkdir", "[-m MODE] [-p] DIRECTORY...") }

// runMkdir makes the operands in their order. One that fails does not stop the
// others; it only makes the status 1, as in BusyBox.
func runMkdir(c *applet.Call) int {
	o := c.Getopt("m:pv", "mode=m:", "parents=p", "verbose=v")
	if len(o.Args) == 0 {
		c.Usage()
	}
	mode, explicit := fs.FileMode(0o777), o.Has('m')
	if explicit {
		// A symbolic mode such as u=rwx,go= starts from 0777, what mkdir(2)
		// would be asked for without -m.
		m, ok := applet.ParseMode(o.Str('m'), fs.ModeDir|0o777, c.P.Umask)
		if !ok {
			c.Die("invalid mode '%s'", o.Str('m'))
		}
		mode = m
	}
	code := 0
	for _, name := range o.Args {
		if at, err := mkdir(c, name, mode.Perm(), o.Has('p')); err != nil {
			c.Errorf("can't create directory '%s': %s", at, applet.Strerror(err))
			code = 1
			continue
		}
		// Mkdir has taken the permission bits alone and applied the umask to
		// them; -m means the mode as it is given.
		if explicit {
			if err := c.View().Chmod(name, mode); err != nil {
				c.Errorf("can't set permissions of directory '%s': %s", name, applet.Strerror(err))
				code = 1
			}
		}
	}
	return code
}

// mkdir makes a directory, with parents if asked; on failure it returns the
// name that could not be made.
func mkdir(c *applet.Call, name string, perm fs.FileMode, parents bool) (string, error) {
	if !parents {
		return name, c.View().Mkdir(name, perm)
	}
	// Each prefix that ends before a slash is a directory to make or to find.
	for i := 1; i <= len(name); i++ {
		if i < len(name) && (name[i] != '/' || name[i-1] == '/') {
			continue
		}
		part := name[:i]
		err := c.View().Mkdir(part, perm)
		if err == nil {
			continue
		}
		// What is a directory already was made by somebody else, or is a link
		// to one.
		if fi, serr := c.View().Stat(part); serr != nil || !fi.IsDir() {
			if i < len(name) {
				// As BusyBox, whose message cuts the name after the slash.
				part += "/"
				if errors.Is(err, linux.EEXIST) {
					err = linux.ENOTDIR
				}
			}
			return part, err
		}
	}
	return name, nil
}
