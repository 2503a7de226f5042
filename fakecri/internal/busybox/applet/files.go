package applet

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// Remove removes a file or, if recursive, a tree, reporting what can't be
// removed. A directory in which something is left stays. force passes over what
// is not there. It goes bottom up, and asks nothing: there is no terminal to answer.
func (c *Call) Remove(name string, recursive, force bool) bool {
	c.Spend(4096)
	v := c.View()
	fi, err := v.Lstat(name)
	if err != nil {
		if force && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, linux.ENOTDIR)) {
			return true
		}
		c.Errorf("can't remove '%s': %s", name, Strerror(err))
		return false
	}
	if fi.IsDir() {
		if !recursive {
			c.Errorf("'%s' is a directory", name)
			return false
		}
		list, err := v.ReadDir(name)
		if err != nil {
			c.Errorf("can't open '%s': %s", name, Strerror(err))
			return false
		}
		ok := true
		for _, e := range list {
			ok = c.Remove(Join(name, e.Name()), true, force) && ok
		}
		if !ok {
			return false
		}
	}
	if err := v.Remove(name); err != nil {
		c.Errorf("can't remove '%s': %s", name, Strerror(err))
		return false
	}
	return true
}

// Canonical resolves all links of a path; its last part need not exist. realpath and readlink -f
// differ in mustExist. A link that leads to something missing is followed to there.
func (c *Call) Canonical(name string, mustExist bool) (string, error) {
	v := c.View()
	// Linux's bound of links.
	for range 40 {
		to, err := v.EvalSymlinks(name)
		if err == nil || mustExist || !errors.Is(err, fs.ErrNotExist) {
			return to, err
		}
		if link, lerr := v.Readlink(name); lerr == nil {
			if !strings.HasPrefix(link, "/") {
				link = path.Join(path.Dir(c.absolute(name)), link)
			}
			name = link
			continue
		}
		abs := strings.TrimRight(c.absolute(name), "/")
		dir, err := v.EvalSymlinks(path.Dir(abs))
		if err != nil {
			return "", err
		}
		return Join(dir, path.Base(abs)), nil
	}
	return "", linux.ELOOP
}

// absolute is a path from the root, cleaned by its letters. Links in it are not resolved.
func (c *Call) absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(c.P.Dir, name)
}
