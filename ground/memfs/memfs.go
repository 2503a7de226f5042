package memfs

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Options configure a file system. The zero value, with a Loop, is a disk without end and a tmpfs
// at /run.
type Options struct {
	// Loop is the node's loop: it gives modification times and runs what
	// watches call. Nil is for trees that become an Image: all their times are
	// loop.Epoch, and Watch is not for them.
	Loop *loop.Loop
	// Tmpfs are the directories that are a tmpfs whenever the node runs, as
	// by /etc/fstab: after a power cut they are there, and empty. Nil means
	// /run.
	Tmpfs []string
	// Share is what the space comes from that files take, but for those on a
	// tmpfs; nil means that there is no end of it. On a full disk writing gives
	// ENOSPC.
	Share *Share
}

// FS is a file system, or a part of one (see [FS.Sub]): the calls of package os. Its methods are
// not for use by several goroutines at once, reading ones included: growths settle.
type FS struct {
	*part
	absent *fs.PathError // see missing
}

// New returns a file system with nothing in it but its root and Options.Tmpfs.
func New(opts Options) *FS {
	if opts.Tmpfs == nil {
		opts.Tmpfs = []string{"/run"}
	}
	v := newVolume(opts, &node{name: "/", mode: fs.ModeDir | 0o755, counted: true})
	v.whole.root.mtime = v.now()
	v.share.Add(v.whole.root.weight())
	v.fs.mountBoot()
	return &v.fs
}

// node is a file, a directory or a symbolic link. A parked pod has three, so
// it is kept to 64 bytes. Names are in the parent's order, so a directory is found by binary
// search and listed sorted.
type node struct {
	name    string
	mtime   int64 // ns since the Unix epoch
	mode    fs.FileMode
	mounted bool // what is shown is in volume.mounts
	frozen  bool // of an Image, as all below it: never written to
	counted bool // in volume.share, unless frozen: not on a tmpfs, and not removed
	// Directories have one only for ext.
	body *body   // of files and links, and of what ext says
	kids []*node // of directories, by name
}

// body is what a file or a symbolic link holds.
type body struct {
	data   []byte // unless ext.sparse
	target string
	// Owner, number, runs and links: with them a node would be twice the size.
	ext *ext
}

// ext is what few files have.
type ext struct {
	uid, gid uint32
	ino      uint64 // 0 until somebody asks
	sparse   *sparse
	names    []*node // of a file with hard links: all its entries
	ghosts   *[]*ghost
}

// isDir and isLink are by type.
func (n *node) isDir() bool  { return n.mode.IsDir() }
func (n *node) isLink() bool { return n.mode&fs.ModeSymlink != 0 }

// search is slices.BinarySearchFunc, whose comparing function costs more than
// the comparing.
func (n *node) search(name string) (int, bool) {
	lo, hi := 0, len(n.kids)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.kids[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(n.kids) && n.kids[lo].name == name
}

// child returns the entry of that name, or nil.
func (n *node) child(name string) *node {
	if i, ok := n.search(name); ok {
		return n.kids[i]
	}
	return nil
}

// add puts an entry in its place among the directory's.
func (n *node) add(k *node) {
	i, _ := n.search(k.name)
	if n.kids == nil {
		n.kids = make([]*node, 0, 2) // most directories stay small
	}
	n.kids = slices.Insert(n.kids, i, k)
}

// remove takes an entry out; an empty directory keeps no list.
func (n *node) remove(k *node) {
	i, _ := n.search(k.name)
	n.kids = slices.Delete(n.kids, i, i+1)
	if len(n.kids) == 0 {
		n.kids = nil
	}
}

// shared returns a copy of a name that does not keep the path alive that it
// was cut from; names that every pod has are the same string everywhere. A substring would keep a
// whole manifest path alive for each file.
func shared(name string) string {
	switch name {
	case "0.log":
		return "0.log"
	case "containers":
		return "containers"
	case "etc-hosts":
		return "etc-hosts"
	case "plugins":
		return "plugins"
	case "pods":
		return "pods"
	case "volumes":
		return "volumes"
	case "kubernetes.io~configmap":
		return "kubernetes.io~configmap"
	case "kubernetes.io~empty-dir":
		return "kubernetes.io~empty-dir"
	case "kubernetes.io~projected":
		return "kubernetes.io~projected"
	case "kubernetes.io~secret":
		return "kubernetes.io~secret"
	}
	return strings.Clone(name)
}

const maxLinks = 40 // as Linux

// missing is the error of opening what is not there. Who polls a file that is
// not there gets the same error again. The error is shared, and nobody writes to it.
func (f *FS) missing(name string, errno linux.Errno) error {
	if last := f.absent; last == nil || last.Path != name || last.Err != error(errno) {
		f.absent = &fs.PathError{Op: "open", Path: name, Err: errno}
	}
	return f.absent
}

// pathError is an error as package os returns it.
func pathError(op, name string, errno linux.Errno) error {
	return &fs.PathError{Op: op, Path: name, Err: errno}
}
