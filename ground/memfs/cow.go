package memfs

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// Image is a tree that never changes any more, so that many file systems, on
// any loop, can start from it: see FS.Freeze and NewFrom. Its nodes are frozen: whatever would
// write to one copies it first (thaw). So an image may be read on many loops at once without
// locks.
type Image struct {
	root *node
	vol  *volume // for who asks about its files without a file system
	// inos are the inode numbers: frozen nodes have no place for them.
	inos map[*node]uint64
}

// Freeze makes an image of what the file system holds. The file system goes on:
// what it changes from then on is its own. What is mounted goes. It takes no time that grows with
// contents: only nodes are gone through.
func (f *FS) Freeze() *Image {
	for _, m := range f.vol.mounts {
		m.point.mounted = false
	}
	f.vol.mounts = nil
	img := &Image{root: f.root, inos: map[*node]uint64{}}
	img.vol = &volume{image: img}
	img.freeze(f.root)
	f.vol.image = img
	// What is frozen takes no space of the file system any more: it is the image's.
	f.vol.share.Clear()
	return img
}

// freeze marks a tree and numbers its files; names of one file get one number. Hard links are
// several nodes with one body.
func (i *Image) freeze(n *node) {
	if _, ok := i.inos[n]; ok {
		return
	}
	n.frozen = true
	if e := n.exts(); e != nil && e.ino != 0 {
		i.inos[n] = e.ino
	} else if e != nil && len(e.names) > 0 && i.inos[e.names[0]] != 0 {
		i.inos[n] = i.inos[e.names[0]]
	} else {
		i.inos[n] = imageInodes + uint64(len(i.inos))
	}
	for _, k := range n.kids {
		i.freeze(k)
	}
}

// imageInodes is where the inode numbers of images begin, so that a container's
// own files, which count from 1, don't meet them.
const imageInodes = 1 << 20

// NewFrom returns a file system that holds what the image does. The two share
// what it does not change: a directory is copied (its entries, not what is in
// them) when something in it changes, a file when it is opened for writing. Making one costs
// nothing until something changes.
func NewFrom(opts Options, img *Image) *FS {
	opts.Tmpfs = nil
	v := newVolume(opts, img.root)
	// An image may have links, so paths can't be taken for canonical.
	v.image, v.symlinks = img, 1
	return &v.fs
}

// thawed returns a copy that may be written to. Hard links to it part. Each copy is a file of its
// own with a number of its own.
func (n *node) thawed() *node {
	c := *n
	c.frozen = false
	c.kids = slices.Clone(n.kids)
	if n.body != nil {
		b := *n.body
		// Clipped, so that an append copies the bytes and leaves the image's alone.
		b.data = slices.Clip(b.data)
		if n.body.ext != nil {
			e := *n.body.ext
			e.ino, e.names, e.ghosts = 0, nil, nil
			e.sparse = e.sparse.clone()
			b.ext = &e
		}
		c.body = &b
	}
	return &c
}

// Sub returns the part of the file system at a path, which is resolved now: a
// rename of the directory, or a link that leads elsewhere later, does not
// matter, as with a bind mount. If it is a file, "/" names that. Symbolic links
// are resolved within the part. The calls on both see each other's changes.
func (f *FS) Sub(name string) (*FS, error) {
	pl, errno := f.walk(name, true)
	if errno == 0 && pl.n == nil {
		errno = linux.ENOENT
	}
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	if errno := f.noSpace(pl, true, Space{}); errno != 0 {
		return nil, pathError("open", name, errno)
	}
	pl = f.mine(pl, true)
	// What is mounted there counts, as for a bind mount.
	return &FS{part: &part{vol: f.vol, root: f.vol.shown(pl.n), prefix: strings.TrimSuffix(f.full(pl.path), "/")}}, nil
}

// Node is a place in the tree, for who walks it by himself, following links and
// judging permissions in his own way. The zero Node is none. It is of the
// moment: after a change to the tree, walk again. Package kernel walks so, with the container's
// mounts in between.
type Node struct {
	vol *volume // of an image's: one that has nothing but the image
	n   *node
}

// Top returns the root directory (or, of a part that is a file, that). settle brings growths up
// to date, as every look from outside does.
func (f *FS) Top() Node {
	if d := f.vol.share.d; d != nil {
		d.settle()
	}
	return Node{vol: f.vol, n: f.vol.shown(f.root)}
}

// Top returns the root directory of an image.
func (i *Image) Top() Node { return Node{vol: i.vol, n: i.root} }

// Exists reports whether there is something.
func (n Node) Exists() bool { return n.n != nil }

// Lookup returns the entry of a directory, what is mounted there if so; a Node
// that does not exist if there is none.
func (n Node) Lookup(name string) Node {
	k := n.n.child(name)
	if k != nil {
		k = n.vol.shown(k)
	}
	return Node{n.vol, k}
}

// Mode returns its type and permissions.
func (n Node) Mode() fs.FileMode { return n.n.mode }

// Owner returns whom it belongs to. They are of root unless somebody was given the file.
func (n Node) Owner() (uid, gid int) {
	u, g := n.n.owner()
	return int(u), int(g)
}

// Target returns what a symbolic link says.
func (n Node) Target() string {
	if n.n.body == nil {
		return ""
	}
	return n.n.body.target
}

// Head returns the first bytes of a file that holds data, up to max. Of a sparse file zeros are
// made up.
func (n Node) Head(max int) []byte {
	if n.n.body == nil || n.n.isDir() {
		return nil
	}
	b := make([]byte, min(n.n.size(), int64(max)))
	return b[:n.n.readAt(b, 0)]
}

// Same reports whether two are one file. Two nodes with one body are hard links of one file.
func (n Node) Same(o Node) bool {
	return n.n == o.n || n.n != nil && o.n != nil && n.n.body != nil && n.n.body == o.n.body
}

// Info describes it under a name.
func (n Node) Info(name string) fs.FileInfo {
	return &info{name: name, mode: n.n.mode, mtime: n.n.mtime, size: n.n.size(), vol: n.vol, n: n.n}
}

// Names returns the names of a directory's entries, sorted.
func (n Node) Names() []string {
	out := make([]string, len(n.n.kids))
	for i, k := range n.n.kids {
		out[i] = k.name
	}
	return out
}

// Open opens a file for reading.
func (n Node) Open(name string) *File {
	return &File{vol: n.vol, n: n.n, name: name}
}

// Mknod makes a device, or whatever else mode says; driver is told by
// Node.Target. It does what the kernel package makes of it: here a device is a name.
func (f *FS) Mknod(name string, mode fs.FileMode, driver string) error {
	pl, errno := f.walk(name, false)
	if errno == 0 && pl.n != nil {
		errno = linux.EEXIST
	}
	if errno == 0 {
		errno = f.noSpace(pl, false, Space{Inodes: 1})
	}
	if errno != 0 {
		return pathError("mknod", name, errno)
	}
	f.create(pl, mode, &body{target: driver})
	f.changed(pl.path, false)
	return nil
}
