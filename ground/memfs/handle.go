package memfs

import (
	"io"
	"io/fs"
	"os"

	"github.com/drydock-sim/drydock/ground/linux"
)

// File is an open file. It stays open when the file is removed, and needs no
// Close. There is no table of descriptors: it is a pointer to the node, which lives as long as
// somebody has it.
type File struct {
	vol  *volume
	n    *node
	name string
	path string // in the whole file system
	flag int
}

// Open opens a file; flag is of os.OpenFile. A directory can be opened for
// reading, and then only described. The checks are in Linux's order; nothing is touched before
// the last of them.
func (f *FS) Open(name string, flag int, perm fs.FileMode) (*File, error) {
	follow := flag&(os.O_CREATE|os.O_EXCL) != os.O_CREATE|os.O_EXCL
	pl, errno := f.walk(name, follow)
	write := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case errno != 0:
	case pl.n == nil && flag&os.O_CREATE == 0:
		errno = linux.ENOENT
	case pl.n != nil && !follow:
		errno = linux.EEXIST
	case pl.n != nil && pl.n.isDir() && (write || flag&(os.O_CREATE|os.O_TRUNC) != 0):
		errno = linux.EISDIR
	case pl.n == nil:
		errno = f.noSpace(pl, false, Space{Inodes: 1})
	case write || flag&os.O_TRUNC != 0:
		errno = f.noSpace(pl, true, Space{})
	}
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	switch {
	case pl.n == nil:
		pl.n = f.create(pl, perm.Perm(), &body{})
		f.changed(pl.path, false)
	case flag&os.O_TRUNC != 0:
		pl = f.mine(pl, true)
		before := pl.n.allocated()
		pl.n.setContent(nil)
		f.vol.resized(pl.n, before)
		f.vol.touch(pl.n)
		f.changed(pl.path, false)
	case write:
		pl = f.mine(pl, true)
	}
	return &File{vol: f.vol, n: f.vol.shown(pl.n), name: name, path: f.full(pl.path), flag: flag}, nil
}

// Node returns the open file as a place in the tree.
func (h *File) Node() Node { return Node{vol: h.vol, n: h.n} }

// Stat describes the file.
func (h *File) Stat() (fs.FileInfo, error) {
	i := h.vol.infoOf(h.n)
	i.name = lastElement(h.name)
	return &i, nil
}

// Mode returns its type and permissions.
func (h *File) Mode() fs.FileMode { return h.n.mode }

// Size returns the file's size in bytes.
func (h *File) Size() int64 { return h.n.size() }

// ReadAt is of io.ReaderAt. A short read is io.EOF, at the end and nowhere else.
func (h *File) ReadAt(b []byte, off int64) (int, error) {
	switch {
	case h.n.isDir():
		return 0, pathError("read", h.name, linux.EISDIR)
	case h.flag&os.O_WRONLY != 0:
		return 0, pathError("read", h.name, linux.EBADF)
	}
	n := h.n.readAt(b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt is of io.WriterAt. In a full tmpfs what fits is written. What was written before the
// disk was full counts.
func (h *File) WriteAt(b []byte, off int64) (int, error) {
	end, err := h.writeTo(off, int64(len(b)))
	n := max(end-off, 0)
	before := h.n.allocated()
	h.n.writeAt(b[:n], off)
	h.vol.resized(h.n, before)
	return int(n), err
}

// WriteZerosAt writes n zeros, which are not kept. It returns how many fitted.
func (h *File) WriteZerosAt(off, n int64) (int64, error) {
	end, err := h.writeTo(off, n)
	fits := max(end-off, 0)
	if fits > 0 {
		before := h.n.allocated()
		h.n.writeZerosAt(off, fits)
		h.vol.resized(h.n, before)
	}
	return fits, err
}

// writeTo prepares for writing n bytes and returns where they can end. The watches are told
// before the bytes are there, within the same step.
func (h *File) writeTo(off, n int64) (end int64, err error) {
	if n == 0 {
		return off, nil
	}
	if h.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return off, pathError("write", h.name, linux.EBADF)
	}
	h.vol.touch(h.n)
	h.vol.changed(h.path, false)
	end = h.vol.room(h.path, h.n, off, off+n)
	if end < off+n {
		return end, pathError("write", h.name, linux.ENOSPC)
	}
	return end, nil
}

// Append writes at the end of the file.
func (h *File) Append(b []byte) (int, error) { return h.WriteAt(b, h.n.size()) }

// Truncate sets the file's size.
func (h *File) Truncate(size int64) error {
	if h.flag&(os.O_WRONLY|os.O_RDWR) == 0 || size < 0 {
		return pathError("truncate", h.name, linux.EINVAL)
	}
	before := h.n.allocated()
	h.n.truncate(size)
	h.vol.resized(h.n, before)
	h.vol.touch(h.n)
	h.vol.changed(h.path, false)
	return nil
}

// Close does nothing.
func (h *File) Close() error { return nil }

// Truncate sets a file's size; what is added is a hole. Holes take no blocks.
func (f *FS) Truncate(name string, size int64) error {
	pl, errno := f.walk(name, true)
	switch {
	case size < 0:
		errno = linux.EINVAL
	case errno != 0:
	case pl.n == nil:
		errno = linux.ENOENT
	case pl.n.isDir():
		errno = linux.EISDIR
	default:
		errno = f.noSpace(pl, true, Space{})
	}
	if errno != 0 {
		return pathError("truncate", name, errno)
	}
	pl = f.mine(pl, true)
	before := pl.n.allocated()
	pl.n.truncate(size)
	f.vol.resized(pl.n, before)
	f.vol.touch(pl.n)
	f.changed(pl.path, false)
	return nil
}

// Link makes newname another name of the file oldname. Both names are nodes with one body; mode
// and time are kept in step, see setMode and setTime.
func (f *FS) Link(oldname, newname string) error {
	from, errno := f.walk(oldname, false)
	to, errno2 := f.walk(newname, false)
	switch {
	case errno != 0:
	case from.n == nil:
		errno = linux.ENOENT
	case errno2 != 0:
		errno = errno2
	case to.n != nil:
		errno = linux.EEXIST
	case f.vol.mountOf(f.full(from.path)) != f.vol.mountOf(f.full(to.path)):
		errno = linux.EXDEV
	case from.n.isDir():
		errno = linux.EPERM
	default:
		errno = f.noSpace(from, true, Space{})
	}
	if errno != 0 {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: errno}
	}
	from = f.mine(from, true)
	to = f.mine(to, false)
	e := from.n.extended()
	if len(e.names) == 0 {
		e.names = append(e.names, from.n)
	}
	n := &node{name: shared(to.name), mode: from.n.mode, mtime: from.n.mtime, body: from.n.body, counted: from.n.counted}
	e.names = append(e.names, n)
	to.dir.add(n)
	to.dir.mtime = f.vol.now()
	f.changed(to.path, true)
	return nil
}
