package applet

import (
	"io/fs"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// ParseMode applies a mode, octal or symbolic, to what a file has. false means that s is no mode;
// the caller has the message.
func ParseMode(s string, old fs.FileMode, umask uint32) (fs.FileMode, bool) {
	mode, ok := posix.ParseMode(s, OctalMode(old), old.IsDir(), umask)
	if !ok {
		return 0, false
	}
	return old.Type() | FileMode(mode), true
}

// EachBelow calls fn for a path and, if recursive, what is below it,
// directories first. It goes on after an error, and returns false if there was
// any. A link that is named is followed unless recursive. It is the walk of chmod, chown and
// their like: BusyBox's recursive_action.
func (c *Call) EachBelow(name string, recursive bool, fn func(name string, fi fs.FileInfo) error) bool {
	// About a page for each file: a system call or two.
	c.Spend(4096)
	fi, err := c.View().Lstat(name)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 && !recursive {
		fi, err = c.View().Stat(name)
	}
	if err == nil {
		err = fn(name, fi)
	}
	if err != nil {
		c.Errorf("%s: %s", name, Strerror(err))
		return false
	}
	if !recursive || !fi.IsDir() {
		return true
	}
	list, err := c.View().ReadDir(name)
	if err != nil {
		c.Errorf(CantOpen, name, Strerror(err))
		return false
	}
	ok := true
	for _, e := range list {
		ok = c.EachBelow(Join(name, e.Name()), true, fn) && ok
	}
	return ok
}
