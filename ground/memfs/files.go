package memfs

import (
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// ReadFile returns a file's content. The caller must not write to it: it is
// shared with the file. A sparse file's content is made for the caller, with its zeros.
func (f *FS) ReadFile(name string) ([]byte, error) {
	pl, errno := f.walk(name, true)
	switch {
	case errno != 0:
		return nil, f.missing(name, errno)
	case pl.n == nil:
		return nil, f.missing(name, linux.ENOENT)
	case pl.n.isDir():
		return nil, pathError("read", name, linux.EISDIR)
	}
	return pl.n.body.content(), nil
}

// WriteFile creates a file, or replaces what it holds, with a copy of data;
// perm counts when it creates. The directory must exist. On a full disk the file is there
// afterwards, with what fitted: as write(2) after O_TRUNC.
func (f *FS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	return f.WriteShared(name, slices.Clone(data), perm)
}

// WriteShared is WriteFile, but keeps data itself, which nobody may write to
// from then on. So a thousand nodes can hold one manifest.
func (f *FS) WriteShared(name string, data []byte, perm fs.FileMode) error {
	n, pl, err := f.writable(name, perm)
	if err != nil {
		return err
	}
	defer f.changed(pl.path, false)
	before := n.allocated()
	// First the old content goes, so that its room is there for the new one.
	n.setContent(nil)
	f.vol.resized(n, before)
	room := f.vol.room(f.full(pl.path), n, 0, int64(len(data)))
	n.setContent(slices.Clip(data[:room]))
	f.vol.resized(n, 0)
	if room < int64(len(data)) {
		return pathError("write", name, linux.ENOSPC)
	}
	return nil
}

// ReplaceFile is WriteFile in one step, as with a temporary file that is renamed:
// while there is no room for both contents the old one stays. A checkpoint that is written so is
// never half written.
func (f *FS) ReplaceFile(name string, data []byte, perm fs.FileMode) error {
	tmp := name + ".tmp"
	err := f.WriteFile(tmp, data, perm)
	if err == nil {
		err = f.Rename(tmp, name)
	}
	if err != nil {
		_ = f.Remove(tmp)
	}
	return err
}

// Append adds a copy of data to the end of a file; perm counts when it creates
// the file. What fitted stays, and the rest is ENOSPC.
func (f *FS) Append(name string, data []byte, perm fs.FileMode) error {
	n, pl, err := f.writable(name, perm)
	if err != nil {
		return err
	}
	defer f.changed(pl.path, false)
	before := n.allocated()
	room := max(f.vol.room(f.full(pl.path), n, n.size(), n.size()+int64(len(data)))-n.size(), 0)
	n.writeAt(data[:min(room, int64(len(data)))], n.size())
	f.vol.resized(n, before)
	if room < int64(len(data)) {
		return pathError("write", name, linux.ENOSPC)
	}
	return nil
}

// writable returns a file that may be written to; there is one now, changed at
// this instant. The time is set before the change, which makes no difference within a step.
func (f *FS) writable(name string, perm fs.FileMode) (*node, place, error) {
	pl, errno := f.walk(name, true)
	switch {
	case errno != 0:
		return nil, pl, pathError("open", name, errno)
	case pl.n == nil:
		if errno := f.noSpace(pl, false, Space{Inodes: 1}); errno != 0 {
			return nil, pl, pathError("open", name, errno)
		}
		return f.create(pl, perm.Perm(), &body{}), pl, nil
	case pl.n.isDir():
		return nil, pl, pathError("open", name, linux.EISDIR)
	}
	if errno := f.noSpace(pl, true, Space{}); errno != 0 {
		return nil, pl, pathError("open", name, errno)
	}
	pl = f.mine(pl, true)
	f.vol.touch(pl.n)
	return pl.n, pl, nil
}

// Mkdir makes a directory; its parent must exist.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	pl, errno := f.walk(name, false)
	switch {
	case errno != 0:
		return pathError("mkdir", name, errno)
	case pl.n != nil:
		return pathError("mkdir", name, linux.EEXIST)
	}
	_, err := f.mkdirAt(pl, name, perm)
	return err
}

// mkdirAt makes a directory where a walk found none; it returns the place with
// it.
func (f *FS) mkdirAt(pl place, name string, perm fs.FileMode) (place, error) {
	if errno := f.noSpace(pl, false, Space{block, 1}); errno != 0 {
		return pl, pathError("mkdir", name, errno)
	}
	pl.n = f.create(pl, fs.ModeDir|perm.Perm(), nil)
	f.changed(pl.path, false)
	return pl, nil
}

// MkdirAll makes a directory and its parents; one that exists is no error. Links on the way are
// followed.
func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	_, err := f.mkdirAll(name, perm)
	return err
}

// mkdirAll is MkdirAll; it returns where the directory is.
func (f *FS) mkdirAll(name string, perm fs.FileMode) (place, error) {
	pl, errno := f.walk(name, true)
	switch {
	case errno == 0 && pl.n != nil && pl.n.isDir():
		return pl, nil
	case errno == 0 && pl.n != nil:
		return pl, pathError("mkdir", name, linux.ENOTDIR)
	case errno == linux.EINVAL:
		return pl, pathError("mkdir", name, errno)
	case errno == 0 && pl.path == name: // the directory above is there
		return f.mkdirAt(pl, name, perm)
	case errno != 0: // else it is by way of links, or one that leads nowhere
		above := strings.TrimRight(name, "/")
		if i := strings.LastIndexByte(above, '/'); i > 0 {
			if err := f.MkdirAll(above[:i], perm); err != nil {
				return pl, err
			}
		}
	}
	err := f.Mkdir(name, perm)
	pl, errno = f.walk(name, false)
	if err != nil && errno == 0 && pl.n != nil && pl.n.isDir() {
		err = nil // a path with ".." in it
	}
	return pl, err
}

// MkdirAllIn is MkdirAll of a directory, an entry of parent, and of entries of it.
// If all are there it allocates nothing. The kubelet makes a pod's directories at each sync, and
// mostly all are there.
func (f *FS) MkdirAllIn(parent, dir string, perm fs.FileMode, names []string) error {
	if in, errno := f.walk(parent, true); errno == 0 && in.n != nil {
		if at := f.vol.shown(in.n).child(dir); at != nil && at.isDir() {
			at = f.vol.shown(at)
			made := func(name string) bool { k := at.child(name); return k != nil && k.isDir() }
			if !slices.ContainsFunc(names, func(name string) bool { return !made(name) }) {
				return nil
			}
		}
	}
	return f.mkdirsIn(parent+"/"+dir, perm, names)
}

// mkdirsIn makes a directory, and entries of it.
func (f *FS) mkdirsIn(dir string, perm fs.FileMode, names []string) error {
	pl, err := f.mkdirAll(dir, perm)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := f.vol.shown(pl.n)
		if k := at.child(name); k != nil && k.isDir() {
			continue
			// The short way can't copy what is above.
		} else if k != nil || at.frozen || pl.path == "/" {
			if err := f.MkdirAll(dir+"/"+name, perm); err != nil {
				return err
			}
			continue
		}
		full := pl.path + "/" + name
		if _, err := f.mkdirAt(place{dir: at, name: name, path: full}, full, perm); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a file, a symbolic link or an empty directory. What is open stays readable by
// who has it open.
func (f *FS) Remove(name string) error {
	pl, errno := f.walk(name, false)
	if errno == 0 {
		switch {
		case pl.n == nil:
			errno = linux.ENOENT
		case pl.dir == nil || pl.n.mounted:
			errno = linux.EBUSY
		case len(pl.n.kids) > 0:
			errno = linux.ENOTEMPTY
		default:
			errno = f.noSpace(pl, false, Space{})
		}
	}
	if errno != 0 {
		return pathError("remove", name, errno)
	}
	f.drop(pl)
	f.changed(pl.path, true)
	return nil
}

// RemoveAll removes a path and what is below it; nothing there is no error. A
// mount point below it is emptied and stays, which is an error. A frozen tree goes at once,
// without being walked.
func (f *FS) RemoveAll(name string) error {
	pl, errno := f.walk(name, false)
	switch {
	case errno == linux.ENOENT || errno == 0 && pl.n == nil:
		return nil
	case errno != 0:
		// As os says it, which opens the parent first.
		if _, errno := f.walk(path.Dir(name), true); errno != 0 {
			return pathError("open", path.Dir(name), errno)
		}
		return pathError("unlinkat", name, errno)
	}
	if errno := f.noSpace(pl, pl.dir == nil, Space{}); errno != 0 {
		return pathError("unlinkat", name, errno)
	}
	pl = f.mine(pl, pl.dir == nil)
	busy := f.vol.clearTree(pl.n)
	if pl.dir == nil || busy {
		f.changed(pl.path, true)
		return pathError("unlinkat", name, linux.EBUSY)
	}
	f.drop(pl)
	f.changed(pl.path, true)
	return nil
}

// ReadDir lists a directory, sorted by name. It is a snapshot: entries describe what was there.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	kids, errno := f.entries(name)
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	infos := make([]info, len(kids))
	out := make([]fs.DirEntry, len(kids))
	for i, k := range kids {
		infos[i] = f.vol.infoOf(k)
		out[i] = &infos[i]
	}
	return out, nil
}

// entries are those of a directory.
func (f *FS) entries(name string) ([]*node, linux.Errno) {
	pl, errno := f.walk(name, true)
	switch {
	case errno != 0:
		return nil, errno
	case pl.n == nil:
		return nil, linux.ENOENT
	case !pl.n.isDir():
		return nil, linux.ENOTDIR
	}
	return f.vol.shown(pl.n).kids, 0
}

// Names goes over the names of a directory's entries, sorted, without a list of
// them being made; there are none if it can't be read. The directory must not
// change meanwhile. It is for passes that only look for a name.
func (f *FS) Names(name string) iter.Seq[string] {
	kids, _ := f.entries(name)
	return func(yield func(string) bool) {
		for _, k := range kids {
			if !yield(k.name) {
				return
			}
		}
	}
}

// AnyFile reports whether match holds for the name and size of an entry that lies
// levels of directories below dir, without a list being made. known is false if
// there are links among the directories, which it doesn't follow. The kubelet asks so whether a
// log is too large, without listing all.
func (f *FS) AnyFile(dir string, levels int, match func(name string, size int64) bool) (found, known bool) {
	kids, _ := f.entries(dir)
	return f.anyFile(kids, levels, match)
}

// anyFile is AnyFile of entries at hand.
func (f *FS) anyFile(kids []*node, levels int, match func(name string, size int64) bool) (found, known bool) {
	for _, k := range kids {
		switch at := f.vol.shown(k); {
		case levels == 0:
			found, known = match(k.name, at.size()), true
		case k.isLink():
			found, known = false, false
		default:
			found, known = f.anyFile(at.kids, levels-1, match)
		}
		if found || !known {
			return found, known
		}
	}
	return false, true
}

// Stat describes what a path leads to.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

// Lstat is Stat, but does not follow a symbolic link at the path's end.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

// stat describes a place under the name that it was asked by.
func (f *FS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	pl, err := f.existing(op, name, follow)
	if err != nil {
		return nil, err
	}
	i := f.vol.infoOf(pl.n)
	i.name = lastElement(name)
	return &i, nil
}

// existing follows a path to something that is there.
func (f *FS) existing(op, name string, follow bool) (place, error) {
	pl, errno := f.walk(name, follow)
	if errno == 0 && pl.n == nil {
		errno = linux.ENOENT
	}
	if errno != 0 {
		return pl, pathError(op, name, errno)
	}
	return pl, nil
}

// alter changes what is known of an entry, but not what it holds. Owner, mode and times take no
// space of their own, but a copy from an image may.
func (f *FS) alter(op, name string, pl place, change func(n *node)) error {
	if errno := f.noSpace(pl, true, Space{}); errno != 0 {
		return pathError(op, name, errno)
	}
	pl = f.mine(pl, true)
	change(f.vol.shown(pl.n))
	f.changed(pl.path, false)
	return nil
}

// Chmod sets the permission bits, with setuid, setgid and sticky.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	pl, err := f.existing("chmod", name, true)
	if err != nil {
		return err
	}
	return f.alter("chmod", name, pl, func(n *node) { n.setMode(mode) })
}
