package memfs

import (
	"io/fs"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
)

// exts returns what is kept for few files, or nil. Callers must not write to what it returns
// unless they own the node.
func (n *node) exts() *ext {
	if n.body == nil {
		return nil
	}
	return n.body.ext
}

// extended makes room for what is kept for few files.
func (n *node) extended() *ext {
	if n.body == nil {
		n.body = &body{}
	}
	if n.body.ext == nil {
		n.body.ext = &ext{}
	}
	return n.body.ext
}

// owner is root for all files that nobody was given. Numbers only; names are the container's
// business.
func (n *node) owner() (uid, gid uint32) {
	if e := n.exts(); e != nil {
		return e.uid, e.gid
	}
	return 0, 0
}

// Owner returns the owner and group of a file.
func (t *part) Owner(name string) (uid, gid int, err error) {
	pl, errno := t.walk(name, true)
	if errno == 0 && pl.n == nil {
		errno = linux.ENOENT
	}
	if errno != 0 {
		return 0, 0, pathError("stat", name, errno)
	}
	u, g := t.vol.shown(pl.n).owner()
	return int(u), int(g), nil
}

// setMode sets the bits that Chmod does; all names of a file share them.
func (n *node) setMode(mode fs.FileMode) {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	n.mode = n.mode&^bits | mode&bits
	if e := n.exts(); e != nil {
		for _, o := range e.names {
			o.mode = n.mode
		}
	}
}

// setTime sets the modification time, under all names of a file.
func (n *node) setTime(t int64) {
	n.mtime = t
	if e := n.exts(); e != nil {
		for _, o := range e.names {
			o.mtime = t
		}
	}
}

// unname takes a node off the names of its file.
func (n *node) unname() {
	if e := n.exts(); e != nil && e.names != nil && !n.frozen {
		e.names = slices.DeleteFunc(e.names, func(o *node) bool { return o == n })
	}
}

// Chown sets who owns what a path leads to; -1 leaves one as it is. setuid bits stay, unlike on
// Linux.
func (f *FS) Chown(name string, uid, gid int) error { return f.chown("chown", name, uid, gid, true) }

// Lchown is Chown, but of a symbolic link itself.
func (f *FS) Lchown(name string, uid, gid int) error {
	// A change to what is there already copies nothing.
	return f.chown("lchown", name, uid, gid, false)
}

func (f *FS) chown(op, name string, uid, gid int, follow bool) error {
	pl, err := f.existing(op, name, follow)
	if err != nil {
		return err
	}
	oldUID, oldGID := f.vol.shown(pl.n).owner()
	if uid < 0 {
		uid = int(oldUID)
	}
	if gid < 0 {
		gid = int(oldGID)
	}
	if uint32(uid) == oldUID && uint32(gid) == oldGID {
		return nil
	}
	return f.alter(op, name, pl, func(n *node) {
		e := n.extended()
		e.uid, e.gid = uint32(uid), uint32(gid)
	})
}

// Chtimes sets the modification time; the access time is not kept.
func (f *FS) Chtimes(name string, atime, mtime time.Time) error {
	pl, err := f.existing("chtimes", name, true)
	if err != nil {
		return err
	}
	if mtime.IsZero() {
		return nil // as os.Chtimes
	}
	return f.alter("chtimes", name, pl, func(n *node) { n.setTime(mtime.UnixNano()) })
}
