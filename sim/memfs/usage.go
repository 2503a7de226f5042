package memfs

// room returns up to which offset, at most end, a file at a canonical path can
// be written, by the size of the tmpfs that it is on.
func (f *FS) room(p string, n *node, end int64) int64 {
	m := f.tmpfsOf(p)
	if m == nil || m.size == 0 {
		return end
	}
	// What the file has may be holes: count its whole length, to be simple.
	have := (n.size() + block - 1) / block * block
	free := m.size - f.tmpfsUsed(m) - (have - n.allocated())
	return min(end, max(have+max(free, 0), n.size()))
}

// LimitAll makes the whole file system a tmpfs of a size in bytes; 0 means
// without limit.
func (f *FS) LimitAll(size int64) { f.tmpfs = &mount{size: size, path: "/"} }

// tmpfsUsed is what a tmpfs holds.
func (f *FS) tmpfsUsed(m *mount) int64 {
	root := m.root
	if root == nil {
		root = f.all().root
	}
	u := usage{f: f, tmpfs: true}
	u.add(root)
	return u.bytes
}

// Limit returns the size of the tmpfs that a path is on and what of that is
// used; ok is false for the disk. A limit of 0 means none.
func (f *FS) Limit(name string) (size, used int64, ok bool) {
	pl, errno := f.walk(name, true)
	if errno != 0 {
		return 0, 0, false
	}
	p := pl.path
	if pl.n != nil && pl.n.isDir() {
		p += "/." // also of what is mounted there
	}
	m := f.tmpfsOf(p)
	if m == nil {
		return 0, 0, false
	}
	return m.size, f.tmpfsUsed(m), true
}

// Usage returns what du(1) says of a path: bytes of the blocks that are taken,
// and inodes. It does not go into what is mounted below; files with several
// names count once. What is not there takes nothing.
func (f *FS) Usage(name string) (bytes, inodes int64) {
	pl, errno := f.walk(name, false)
	if errno != 0 || pl.n == nil {
		return 0, 0
	}
	u := usage{f: f, tmpfs: pl.n.mounted || f.tmpfsOf(pl.path) != nil}
	u.add(f.shown(pl.n))
	return u.bytes, u.inodes
}

// usage sums up a tree.
type usage struct {
	f             *FS
	tmpfs         bool // directories take nothing
	skipFrozen    bool
	bytes, inodes int64
	seen          map[*body]bool
}

func (u *usage) add(n *node) {
	if u.skipFrozen && n.frozen {
		return
	}
	if e := n.exts(); e != nil && len(e.names) > 1 {
		if u.seen[n.body] {
			return
		}
		if u.seen == nil {
			u.seen = map[*body]bool{}
		}
		u.seen[n.body] = true
	}
	u.inodes++
	if !u.tmpfs || !n.isDir() {
		u.bytes += n.allocated()
	}
	for _, k := range n.kids {
		if !k.mounted {
			u.add(k)
			continue
		}
		u.inodes++
		if !u.tmpfs {
			u.bytes += block
		}
	}
}
