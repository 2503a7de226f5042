package memfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Options configure a file system.
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

// FS is a file system.
type FS struct {
	l        *loop.Loop
	root     *node
	boot     []string // Options.Tmpfs
	mounts   []mount
	watches  []*watch
	symlinks int // ever made: while it is 0, a clean path is canonical
	linked   int // hard links ever made: while it is 0, no node counts its names
	inodes   uint64
	absent   *fs.PathError // see missing

	image *Image // what it started from: nodes of it are frozen
	tmpfs *mount // the whole is a tmpfs: see LimitAll
	share Share  // what is taken, without what is frozen

	// Of what Sub returns: the whole file system, and where this root is in it.
	whole  *FS
	prefix string
}

// New returns a file system with nothing in it but its root and Options.Tmpfs.
func New(opts Options) *FS {
	f := &FS{l: opts.Loop, boot: opts.Tmpfs}
	if f.boot == nil {
		f.boot = []string{"/run"}
	}
	f.root = &node{name: "/", mode: fs.ModeDir | 0o755, mtime: f.now(), counted: true}
	f.share.join(opts.Share)
	f.share.Add(f.root.weight())
	f.mountBoot()
	return f
}

// node is a file, a directory or a symbolic link. A parked pod has three, so
// it is kept to 64 bytes.
type node struct {
	name    string
	mtime   int64 // ns since the Unix epoch
	mode    fs.FileMode
	mounted bool    // what is shown is in FS.mounts
	frozen  bool    // of an Image, as all below it: never written to
	counted bool    // in FS.share, unless frozen: not on a tmpfs, and not removed
	body    *body   // of files and links, and of what ext says
	kids    []*node // of directories, by name
}

// body is what a file or a symbolic link holds.
type body struct {
	data   []byte // unless ext.sparse
	target string
	ext    *ext
}

// ext is what few files have.
type ext struct {
	uid, gid uint32
	ino      uint64 // 0 until somebody asks
	sparse   *sparse
	names    []*node // of a file with hard links: all its entries
	ghosts   *[]*ghost
}

// now is the time for what is written.
func (f *FS) now() int64 {
	if f.l == nil {
		return loop.Epoch().UnixNano()
	}
	return f.l.UnixNano()
}

// all is the whole file system, if f is a part of one.
func (f *FS) all() *FS {
	if f.whole != nil {
		return f.whole
	}
	return f
}

// full is a path of f in the whole file system.
func (f *FS) full(p string) string {
	if f.prefix == "" {
		return p
	}
	if p == "/" {
		return f.prefix
	}
	return f.prefix + p
}

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

func (n *node) add(k *node) {
	i, _ := n.search(k.name)
	if n.kids == nil {
		n.kids = make([]*node, 0, 2) // most directories stay small
	}
	n.kids = slices.Insert(n.kids, i, k)
}

func (n *node) remove(k *node) {
	i, _ := n.search(k.name)
	n.kids = slices.Delete(n.kids, i, i+1)
	if len(n.kids) == 0 {
		n.kids = nil
	}
}

// shared returns a copy of a name that does not keep the path alive that it
// was cut from; names that every pod has are the same string everywhere.
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

// place is where a path leads: the directory that holds (or would hold) its
// last element, and the entry, nil if there is none. dir is nil for the root.
type place struct {
	dir  *node
	name string
	n    *node
	// path is the path without symbolic links in it.
	path string
}

// shown is the directory that is seen at n: n, or what is mounted on it.
func (f *FS) shown(n *node) *node {
	if n.mounted {
		mounts := f.all().mounts
		for i := len(mounts) - 1; i >= 0; i-- {
			if mounts[i].point == n {
				return mounts[i].root
			}
		}
	}
	return n
}

const maxLinks = 40 // as Linux

// walk follows a path; follow says whether also a symbolic link that is its
// last element is followed. The errno is not 0 if the way there is missing or
// leads through something that is no directory.
func (f *FS) walk(name string, follow bool) (place, syscall.Errno) {
	if !strings.HasPrefix(name, "/") {
		return place{}, syscall.EINVAL
	}
	if d := f.all().share.d; d != nil {
		d.settle()
	}
	p := path.Clean(name)
	for range maxLinks {
		pl, next, errno := f.walkOnce(p, follow)
		if errno != 0 || next == "" {
			return pl, errno
		}
		p = next
	}
	return place{}, syscall.ELOOP
}

// walkOnce follows a clean path up to its end or up to the first symbolic
// link, and then returns the path with the link replaced.
func (f *FS) walkOnce(p string, follow bool) (pl place, next string, errno syscall.Errno) {
	at := f.shown(f.root)
	if p == "/" {
		return place{n: at, name: "/", path: "/"}, "", 0
	}
	for start := 1; ; {
		end := len(p)
		if i := strings.IndexByte(p[start:], '/'); i >= 0 {
			end = start + i
		}
		if !at.isDir() {
			return place{}, "", syscall.ENOTDIR
		}
		name, last := p[start:end], end == len(p)
		k := at.child(name)
		if k != nil && k.isLink() && (!last || follow) {
			t := k.body.target
			if !strings.HasPrefix(t, "/") {
				t = p[:start] + t
			}
			return place{}, path.Clean(t + p[end:]), 0
		}
		if last {
			return place{dir: at, name: name, n: k, path: p}, "", 0
		}
		if k == nil {
			return place{}, "", syscall.ENOENT
		}
		at = f.shown(k)
		start = end + 1
	}
}

// create puts a new entry where pl leads. In a setgid directory it gets that
// one's group.
func (f *FS) create(pl place, mode fs.FileMode, b *body) *node {
	pl = f.mine(pl, false)
	now := f.now()
	n := &node{name: shared(pl.name), mode: mode, mtime: now, body: b, counted: pl.dir.counted}
	if pl.dir.mode&fs.ModeSetgid != 0 {
		if _, gid := pl.dir.owner(); gid != 0 {
			n.extended().gid = gid
		}
		if n.isDir() {
			n.mode |= fs.ModeSetgid
		}
	}
	pl.dir.add(n)
	pl.dir.mtime = now
	if n.counted {
		f.all().share.Add(n.weight())
	}
	return n
}

// drop takes an entry out of its directory.
func (f *FS) drop(pl place) {
	pl = f.mine(pl, false)
	f.forget(pl.n)
	pl.dir.remove(pl.n)
	pl.dir.mtime = f.now()
}

// missing is the error of opening what is not there. Who polls a file that is
// not there gets the same error again.
func (f *FS) missing(name string, errno syscall.Errno) error {
	if last := f.absent; last == nil || last.Path != name || last.Err != error(errno) {
		f.absent = &fs.PathError{Op: "open", Path: name, Err: errno}
	}
	return f.absent
}

func pathError(op, name string, errno syscall.Errno) error {
	return &fs.PathError{Op: op, Path: name, Err: errno}
}
