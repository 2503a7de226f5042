package applets

import (
	"errors"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Mv is mv: a rename, or a copy and a removal where the two are on different
// file systems, as a volume and the image are. -i asks nobody; -v does nothing.
func Mv() applet.Applet {
	return applet.New(runMv, "mv", "[-finT] SOURCE DEST | SOURCE... { -t DIRECTORY | DIRECTORY }")
}

// runMv chooses a target for each source. Without -t the last operand is the
// destination, a directory or a new name.
func runMv(c *applet.Call) int {
	o := c.Getopt("finvTt:", "force=f", "interactive=i", "no-clobber=n", "no-target-directory=T", "target-directory=t:", "verbose=v")
	args := o.Args
	dest := o.Str('t')
	if !o.Has('t') {
		if len(args) < 2 {
			c.Usage()
		}
		dest = args[len(args)-1]
		args = args[:len(args)-1]
	}
	// Stat and not Lstat: a link to a directory is a directory to move into,
	// unless -T forbids it.
	fi, err := c.View().Stat(dest)
	intoDir := err == nil && fi.IsDir() && !o.Has('T')
	code := 0
	for _, from := range args {
		to := dest
		// Several sources need a directory. If there is none, joining the names
		// lets the rename fail with the proper error for each of them.
		if intoDir || len(args) > 1 {
			to = applet.Join(dest, applet.Base(strings.TrimRight(from, "/")))
		}
		if !move(c, from, to, o.Has('n')) {
			code = 1
		}
	}
	return code
}

// move moves one file. In a copy everything is kept that cp -a keeps; what is
// in the way is removed first, unless one of the two is a directory and the
// other is not.
func move(c *applet.Call, from, to string, noClobber bool) bool {
	v := c.View()
	if noClobber {
		if _, err := v.Lstat(to); err == nil {
			return true
		}
	}
	err := v.Rename(from, to)
	if err == nil {
		return true
	}
	// Only another file system makes it a copy.
	if !errors.Is(err, linux.EXDEV) {
		c.Errorf("can't rename '%s': %s", from, applet.Strerror(err))
		return false
	}
	// A move must not change owner, mode, times or links, even when it is a
	// copy.
	p := &applet.Copier{C: c, Recursive: true, Preserve: true, KeepLinks: true, Force: true}
	if fi, err := v.Lstat(to); err == nil {
		src, serr := v.Lstat(from)
		if serr == nil && fi.IsDir() != src.IsDir() {
			c.Errorf("can't rename '%s': %s", from, applet.Strerror(linux.EISDIR))
			return false
		}
		if err := v.Remove(to); err != nil {
			c.Errorf("can't remove '%s': %s", to, applet.Strerror(err))
			return false
		}
	}
	// The source stays if the copy failed: a failed move loses nothing of it.
	return p.Copy(from, to, true) && c.Remove(from, true, true)
}
