package memfs

import (
	"cmp"
	"io/fs"
	"os"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/paths"
)

// Symlink makes newname a symbolic link to oldname, which need not exist. symlinks counts links
// ever made: as long as there are none, paths need not be resolved to be compared.
func (f *FS) Symlink(oldname, newname string) error {
	pl, errno := f.walk(newname, false)
	switch {
	case errno != 0:
	case pl.n != nil:
		errno = linux.EEXIST
	case oldname == "":
		errno = linux.ENOENT
	default:
		errno = f.noSpace(pl, false, Space{Inodes: 1})
	}
	if errno != 0 {
		return &os.LinkError{Op: "symlink", Old: oldname, New: newname, Err: errno}
	}
	f.create(pl, fs.ModeSymlink|0o777, &body{target: strings.Clone(oldname)})
	f.vol.symlinks++
	f.changed(pl.path, true)
	return nil
}

// Readlink returns what a symbolic link says.
func (f *FS) Readlink(name string) (string, error) {
	pl, errno := f.walk(name, false)
	switch {
	case errno != 0:
	case pl.n == nil:
		errno = linux.ENOENT
	case !pl.n.isLink():
		errno = linux.EINVAL
	default:
		return pl.n.body.target, nil
	}
	return "", pathError("readlink", name, errno)
}

// Driver returns what Mknod was told of a device of a file system, to which name may be a link,
// and its mode; "": there is no device.
func Driver(f *FS, name string) (string, fs.FileMode) {
	pl, errno := f.walk(name, true)
	if errno != 0 || pl.n == nil || pl.n.mode&fs.ModeDevice == 0 {
		return "", 0
	}
	return pl.n.body.target, pl.n.mode
}

// Rename moves a file, a link or a directory, replacing a file or link that is
// in the place; a directory there is an error. What is below a directory moves
// with it. It takes no space, but copies from an image may.
func (f *FS) Rename(oldname, newname string) error {
	from, errno := f.walk(oldname, false)
	to, errno2 := f.walk(newname, false)
	errno = cmp.Or(errno, errno2)
	if errno == 0 && from.n == nil {
		errno = linux.ENOENT
	}
	if errno == 0 {
		errno = f.mayRename(from, to, oldname == newname)
	}
	if errno != 0 {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: errno}
	}
	if from.n == to.n || to.n != nil && from.n.body != nil && from.n.body == to.n.body {
		return nil // also if they are names of one file
	}
	if errno := f.noSpace(from, true, Space{}); errno != 0 {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: errno}
	}
	from, to = f.mine(from, true), f.mine(to, false)
	if to.n != nil {
		f.vol.forget(to.n)
		to.dir.remove(to.n)
	}
	from.dir.remove(from.n)
	from.dir.mtime = f.vol.now()
	from.n.name = shared(to.name)
	to.dir.add(from.n)
	to.dir.mtime = f.vol.now()
	f.changed(from.path, true)
	f.changed(to.path, true)
	return nil
}

// mayRename is the rules of os.Rename, then of Linux. Renaming a thing to
// another name of itself (by way of a link to a directory) does nothing. Directories never
// replace anything, as os.Rename refuses that first.
func (f *FS) mayRename(from, to place, sameName bool) linux.Errno {
	switch {
	case to.n != nil && to.n.isDir() && (to.n != from.n || sameName):
		return linux.EEXIST
	case to.n == from.n:
		return 0
	case from.dir == nil || from.n.mounted:
		return linux.EBUSY
	case from.n.isDir() && paths.Below(to.path, from.path):
		return linux.EINVAL
	case f.vol.mountOf(f.full(from.path)) != f.vol.mountOf(f.full(to.path)):
		return linux.EXDEV
	case from.n.isDir() && to.n != nil:
		return linux.ENOTDIR
	}
	return 0
}
