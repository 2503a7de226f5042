package busybox

import (
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
)

// parseMode applies a mode, octal or symbolic, to what a file has.
func parseMode(s string, old fs.FileMode, umask uint32) (fs.FileMode, bool) {
	mode, ok := posix.ParseMode(s, octalMode(old), old.IsDir(), umask)
	if !ok {
		return 0, false
	}
	return old.Type() | fileMode(mode), true
}

// eachBelow calls fn for a path and, if recursive, what is below it.
func (c *call) eachBelow(name string, recursive bool, fn func(name string, fi fs.FileInfo) error) bool {
	c.spend(4096)
	fi, err := c.view().Lstat(name)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 && !recursive {
		fi, err = c.view().Stat(name)
	}
	if err == nil {
		err = fn(name, fi)
	}
	if err != nil {
		c.errorf("%s: %s", name, strerror(err))
		return false
	}
	if !recursive || !fi.IsDir() {
		return true
	}
	list, err := c.view().ReadDir(name)
	if err != nil {
		c.errorf(cantOpen, name, strerror(err))
		return false
	}
	ok := true
	for _, e := range list {
		ok = c.eachBelow(join(name, e.Name()), true, fn) && ok
	}
	return ok
}

func runChmod(c *call) int {
	// A mode such as -x looks like an option.
	for i, a := range c.args {
		if a == "--" {
			break
		}
		if len(a) > 1 && a[0] == '-' && strings.IndexByte("rwxXst", a[1]) >= 0 {
			c.args = append(append(append([]string{}, c.args[:i]...), "a"+a), c.args[i+1:]...)
			break
		}
	}
	o := c.getopt("Rcvf", "recursive=R", "changes=c", "verbose=v", "silent=f", "quiet=f")
	if len(o.args) < 2 {
		c.usage()
	}
	spec := o.args[0]
	if _, ok := parseMode(spec, 0, c.p.Umask); !ok {
		c.die("invalid mode '%s'", spec)
	}
	code := 0
	for _, name := range o.args[1:] {
		if !c.eachBelow(name, o.has('R'), func(name string, fi fs.FileInfo) error {
			if fi.Mode()&fs.ModeSymlink != 0 {
				return nil
			}
			mode, _ := parseMode(spec, fi.Mode(), c.p.Umask)
			return c.view().Chmod(name, mode)
		}) {
			code = 1
		}
	}
	return code
}

func runChown(c *call) int {
	o := c.getopt("Rhvcf", "recursive=R", "no-dereference=h", "verbose=v", "changes=c", "silent=f", "quiet=f")
	if len(o.args) < 2 {
		c.usage()
	}
	uid, gid := -1, -1
	user, group, hasGroup := strings.Cut(o.args[0], ":")
	if c.name == "chgrp" {
		user, group, hasGroup = "", o.args[0], true
	} else if !hasGroup {
		if u, g, ok := strings.Cut(user, "."); ok {
			user, group, hasGroup = u, g, true
		}
	}
	var ok bool
	if user != "" {
		if uid, ok = c.lookup(passwdFile, user); !ok {
			c.die("unknown user %s", user)
		}
		if hasGroup && group == "" {
			for _, a := range c.accounts(passwdFile) {
				if a.id == uid {
					gid = a.gid
				}
			}
		}
	}
	if hasGroup && group != "" {
		if gid, ok = c.lookup(groupFile, group); !ok {
			c.die("unknown group %s", group)
		}
	}
	code := 0
	for _, name := range o.args[1:] {
		if !c.eachBelow(name, o.has('R'), func(name string, fi fs.FileInfo) error {
			if o.has('h') || fi.Mode()&fs.ModeSymlink != 0 {
				return c.view().Lchown(name, uid, gid)
			}
			return c.view().Chown(name, uid, gid)
		}) {
			code = 1
		}
	}
	return code
}
