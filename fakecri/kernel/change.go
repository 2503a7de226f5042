package kernel

import (
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// create makes an entry that must not be there yet. It is what mkdir, symlink, mkfifo and mknod
// have in common: EEXIST first, then permissions. A link at the end is not followed, even if it
// leads nowhere.
func (v *View) create(op, name string, make func(f hostfs.Tree, rel string) error) error {
	if errno := v.denied(op); errno != 0 {
		return pathError(op, name, errno)
	}
	at, errno := v.resolve(unslashed(name), false)
	if errno == 0 && at.exists() {
		errno = linux.EEXIST
	}
	if errno != 0 {
		return pathError(op, name, errno)
	}
	f, rel, errno := v.mayCreate(&at)
	if errno != 0 {
		return pathError(op, name, errno)
	}
	if err := make(f, rel); err != nil {
		return pathError(op, name, execError(unlink(err)))
	}
	// The file system made it as root's; it belongs to who asked.
	v.own(f, rel, &at)
	return nil
}

// unslashed is a path without slashes at its end. mkdir x/ is allowed where creating a file x/ is
// not.
func unslashed(name string) string {
	for len(name) > 1 && name[len(name)-1] == '/' {
		name = name[:len(name)-1]
	}
	return name
}

// unlink takes the number out of a *os.LinkError.
func unlink(err error) error {
	if le, ok := err.(*os.LinkError); ok {
		return le.Err
	}
	return err
}

// Mkdir makes a directory.
func (v *View) Mkdir(name string, perm fs.FileMode) error {
	return v.create("mkdir", name, func(f hostfs.Tree, rel string) error {
		return f.Mkdir(rel, perm&^v.umask())
	})
}

// MkdirAll makes a directory and its parents. It goes from the top down; a part that is a file is
// ENOTDIR.
func (v *View) MkdirAll(name string, perm fs.FileMode) error {
	if at, errno := v.resolve(name, true); errno == 0 && at.exists() {
		if !at.mode().IsDir() {
			return pathError("mkdir", name, linux.ENOTDIR)
		}
		return nil
	}
	clean := path.Clean(name)
	if dir := path.Dir(clean); dir != clean && dir != "." {
		if err := v.MkdirAll(dir, perm); err != nil {
			return err
		}
	}
	return v.Mkdir(clean, perm)
}

// Symlink makes a symbolic link at name.
func (v *View) Symlink(target, name string) error {
	return v.create("symlink", name, func(f hostfs.Tree, rel string) error { return f.Symlink(target, rel) })
}

// Link makes a hard link at name. Links don't cross mounts, and mount points and made-up files
// have none. A directory is EPERM.
func (v *View) Link(old, name string) error {
	if errno := v.denied("link"); errno != 0 {
		return pathError("link", name, errno)
	}
	from, err := v.existing("link", old, false)
	if err != nil {
		return err
	}
	at, errno := v.resolve(name, false)
	if errno == 0 && at.exists() {
		errno = linux.EEXIST
	}
	if errno == 0 && (at.dirMnt != from.mnt || from.point || from.syn != nil && !from.syn.real()) {
		// A file of the machine can be linked within its mount: real says so.
		errno = linux.EXDEV
	}
	if errno != 0 {
		return pathError("link", name, errno)
	}
	f, rel, errno := v.mayCreate(&at)
	if errno == 0 && from.mode().IsDir() {
		errno = linux.EPERM
	}
	if errno != 0 {
		return pathError("link", name, errno)
	}
	// Both paths are those of the mount's own file system.
	old = v.ns.list[from.mnt].rel(from.path)
	if from.syn != nil {
		old = from.syn.name
	}
	if err := f.Link(old, rel); err != nil {
		return pathError("link", name, execError(unlink(err)))
	}
	return nil
}

// Remove removes a file or an empty directory. A directory with mount points in it is not empty
// even if its files are gone: names lists those, too.
func (v *View) Remove(name string) error {
	at, err := v.existing("remove", name, false)
	if err != nil {
		return err
	}
	f, rel, errno := v.mayRemove(&at)
	if errno == 0 {
		errno = v.denied(removal(&at))
	}
	if errno == 0 {
		// Called now for what the tmpfs holds before, and at the end for the difference.
		defer v.freeing(at.mnt, f)()
	}
	if errno == 0 && at.mode().IsDir() && len(v.names(&at)) > 0 {
		errno = linux.ENOTEMPTY
	}
	if errno == 0 {
		if err := f.Remove(rel); err != nil {
			errno = execError(err)
		}
	}
	if errno != 0 {
		return pathError("remove", name, errno)
	}
	return nil
}

// removal is the system call that removes what is at a place.
func removal(at *place) string {
	if at.mode().IsDir() {
		return "rmdir"
	}
	return "unlink"
}

// RemoveAll removes a path and what is below it; nothing there is no error. The
// error is the first of those met; what can be removed is.
//
// The short way asks the file system to do it at once. It is taken only if no permission and no
// mount can be in the way below; else the tree is walked, with a check for each entry, as rm -r
// does.
func (v *View) RemoveAll(name string) error {
	at, errno := v.resolve(name, false)
	switch {
	case errno == linux.ENOENT || errno == 0 && !at.exists():
		return nil
	case errno != 0:
		return pathError("unlinkat", name, errno)
	}
	if v.can(capDACOverride) && v.can(capFowner) && (at.syn == nil || at.syn.real()) && !v.ns.inside(at.path) {
		f, rel, errno := v.mayRemove(&at)
		if errno == 0 {
			errno = v.denied(removal(&at))
		}
		if errno != 0 {
			return pathError("unlinkat", name, errno)
		}
		defer v.freeing(at.mnt, f)()
		err := f.RemoveAll(rel)
		if err != nil && at.syn != nil {
			return pathError("unlinkat", name, execError(err))
		}
		return err
	}
	var first error
	if at.mode().IsDir() {
		if !v.may(&at, 4) {
			first = pathError("unlinkat", name, linux.EACCES)
		} else {
			for _, n := range v.names(&at) {
				if err := v.RemoveAll(path.Join(at.path, n)); err != nil && first == nil {
					first = err
				}
			}
		}
	}
	if err := v.Remove(name); err != nil && first == nil {
		first = err
	}
	return first
}

// Rename moves a file or a directory, replacing as rename(2) does. A link at the end of either is
// not followed.
func (v *View) Rename(from, to string) error {
	errno := v.rename(from, to)
	if errno != 0 {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: errno}
	}
	return nil
}

// rename checks in the order of Linux, of which the first error is shown: what
// a rename would hide, cut off or move between mounts is refused.
func (v *View) rename(from, to string) linux.Errno {
	if errno := v.denied("rename"); errno != 0 {
		return errno
	}
	a, errno := v.resolve(unslashed(from), false)
	if errno != 0 {
		return errno
	}
	b, errno := v.resolve(unslashed(to), false)
	switch {
	case errno != 0:
		return errno
	case !a.exists():
		return linux.ENOENT
	case a.point || b.point:
		// A mount point can't be moved or replaced.
		return linux.EBUSY
	case a.mnt != b.dirMnt:
		return linux.EXDEV
	case !a.mode().IsDir() && (unslashed(from) != from || unslashed(to) != to):
		return linux.ENOTDIR
	case a.path == b.path:
		return 0
	// A directory can't be moved into itself.
	case a.mode().IsDir() && below(b.path, a.path):
		return linux.EINVAL
	case b.exists() && below(a.path, b.path):
		return linux.ENOTEMPTY
	// With something mounted in it a directory stays where it is: the mounts are kept by path
	// here.
	case a.mode().IsDir() && v.ns.inside(a.path):
		return linux.EBUSY
	}
	f, rel, errno := v.mayRemove(&a)
	if errno != 0 {
		return errno
	}
	_, newRel, errno := v.mayCreate(&b)
	if errno != 0 {
		return errno
	}
	if b.exists() {
		if _, _, errno := v.mayRemove(&b); errno != 0 {
			return errno
		}
		switch {
		case a.mode().IsDir() && !b.mode().IsDir():
			return linux.ENOTDIR
		case !a.mode().IsDir() && b.mode().IsDir():
			return linux.EISDIR
		case b.mode().IsDir():
			// rename(2) replaces an empty directory; Remove fails for another.
			if err := f.Remove(newRel); err != nil {
				return execError(err)
			}
		}
	}
	if err := f.Rename(rel, newRel); err != nil {
		return execError(unlink(err))
	}
	return 0
}

// change changes what is at a place; owner says that only its owner may. op is both the system
// call that a filter may deny and the operation in the error. Owner is judged before the mount
// is: EPERM comes before EROFS.
func (v *View) change(op, name string, follow, owner bool, do func(f hostfs.Tree, rel string) error) error {
	at, err := v.existing(op, name, follow)
	if err != nil {
		return err
	}
	if errno := v.denied(op); errno != 0 {
		return pathError(op, name, errno)
	}
	uid, _ := at.owner()
	if cred := v.cred(); owner && cred.UID != uid && !v.can(capFowner) && !(op == "chown" && v.can(capChown)) {
		return pathError(op, name, linux.EPERM)
	}
	f, rel, errno := v.writable(at.mnt, at.path)
	if errno != 0 {
		return pathError(op, name, errno)
	}
	// Only that gives memory of a tmpfs back.
	if op == "truncate" {
		defer v.freeing(at.mnt, f)()
	}
	if err := do(f, rel); err != nil {
		return pathError(op, name, execError(err))
	}
	return nil
}

// freeing watches what a change on a tmpfs gives back; the function returned,
// called after it, books that. Only tmpfs files are charged, and only if the container wrote some
// (files).
func (v *View) freeing(i int, t hostfs.Tree) func() {
	c := v.ns.c
	if v.ns.list[i].fstype != "tmpfs" || c == nil || c.files == 0 {
		return func() {}
	}
	f, ok := t.(*memfs.FS)
	if !ok {
		return func() {}
	}
	_, before, _ := f.Limit("/")
	return func() {
		if _, after, _ := f.Limit("/"); after < before {
			c.removed(before - after)
		}
	}
}

// Chmod sets the permission bits, with setuid, setgid and sticky.
func (v *View) Chmod(name string, mode fs.FileMode) error {
	return v.change("chmod", name, true, true, func(f hostfs.Tree, rel string) error { return f.Chmod(rel, mode) })
}

// Chown sets the owner; -1 leaves one as it is. Who is not root may give a file
// of his own to a group of his own. The kernel's rule for everybody else: no new owner, and only
// groups that he is in.
func (v *View) Chown(name string, uid, gid int) error { return v.chown(name, uid, gid, true) }

// Lchown is Chown of a link itself.
func (v *View) Lchown(name string, uid, gid int) error { return v.chown(name, uid, gid, false) }

// chown checks who may: giving files away takes a capability, and a group must
// be one of the process's own.
func (v *View) chown(name string, uid, gid int, follow bool) error {
	cred := v.cred()
	if !v.can(capChown) {
		in := gid < 0 || gid == cred.GID
		for _, g := range cred.Groups {
			in = in || g == gid
		}
		if uid >= 0 && uid != cred.UID || !in {
			// A missing file is ENOENT before it is EPERM.
			if _, err := v.existing("chown", name, follow); err != nil {
				return err
			}
			return pathError("chown", name, linux.EPERM)
		}
	}
	return v.change("chown", name, follow, true, func(f hostfs.Tree, rel string) error {
		if follow {
			return f.Chown(rel, uid, gid)
		}
		return f.Lchown(rel, uid, gid)
	})
}

// Chtimes sets the modification time. Who may write to a file may set it to
// now, only its owner to something else; the two are not told apart. Access times are set along,
// and kept nowhere else.
func (v *View) Chtimes(name string, mtime time.Time) error {
	owner := v.Access(name, 2) != nil
	return v.change("chtimes", name, true, owner, func(f hostfs.Tree, rel string) error {
		return f.Chtimes(rel, mtime, mtime)
	})
}

// Truncate sets a file's size.
func (v *View) Truncate(name string, size int64) error {
	at, err := v.existing("truncate", name, true)
	if err != nil {
		return err
	}
	if !v.may(&at, 2) {
		return pathError("truncate", name, linux.EACCES)
	}
	return v.change("truncate", name, true, false, func(f hostfs.Tree, rel string) error { return f.Truncate(rel, size) })
}
