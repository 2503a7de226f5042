package applets

import (
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Ln is ln. -b and -S are read and make no backup. With one operand the link
// has its name, here. -n takes a link to a directory for a file, so that -sfn
// replaces it. GNU's -r is not built.
func Ln() applet.Applet { return applet.New(runLn, "ln", "[-sfnTv] TARGET... LINK|DIR") }

func runLn(c *applet.Call) int {
	o := c.Getopt("sfnbS:vT", "symbolic=s", "force=f", "no-dereference=n", "no-target-directory=T", "verbose=v")
	if len(o.Args) == 0 || o.Has('T') && len(o.Args) > 2 {
		c.Usage()
	}
	targets := o.Args
	dest := ""
	if len(targets) == 1 {
		// The link goes into the current directory, by the target's last name.
		dest = applet.Base(strings.TrimRight(targets[0], "/"))
	} else {
		dest = targets[len(targets)-1]
		targets = targets[:len(targets)-1]
	}
	v := c.View()
	intoDir := false
	if !o.Has('T') {
		fi, err := v.Stat(dest)
		intoDir = err == nil && fi.IsDir()
		if lfi, err := v.Lstat(dest); err == nil && o.Has('n') && lfi.Mode()&fs.ModeSymlink != 0 {
			intoDir = false
		}
	}
	// Several links need a directory to be in.
	if len(targets) > 1 && !intoDir {
		c.Usage()
	}
	code := 0
	for _, t := range targets {
		name := dest
		if intoDir {
			name = applet.Join(dest, applet.Base(strings.TrimRight(t, "/")))
		}
		// A symbolic link may lead nowhere; a hard one has a file.
		if !o.Has('s') {
			if _, err := v.Stat(t); err != nil {
				c.Errorf("%s: %s", t, applet.Strerror(err))
				code = 1
				continue
			}
		}
		if o.Has('f') {
			// What can't be removed is an error of the link that is made next.
			_ = v.Remove(name)
		}
		link := v.Link
		if o.Has('s') {
			link = v.Symlink
		}
		if err := link(t, name); err != nil {
			c.Errorf("%s: %s", name, applet.Strerror(err))
			code = 1
		} else if o.Has('v') {
			c.Printf("'%s' -> '%s'\n", name, t)
		}
	}
	return code
}
