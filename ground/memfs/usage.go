package memfs

import "sort"

// blocks is how many a file of a length has.
func blocks(size int64) int64 { return (size + block - 1) / block }

// endWithin returns how far, from off to end, a file can be written with so many
// more blocks. It is for full disks: what fits is written, to the byte of a block's end.
func (n *node) endWithin(off, end, free int64) int64 {
	// The common case is decided without a look at the runs.
	if off >= end || blocks(end)-off/block+1 <= free {
		return end
	}
	from := off
	if n.sparse() == nil && off-n.size() < block {
		from = min(off, n.size()) // what is between is filled
	}
	if n.newBlocks(from, end) <= free {
		return end
	}
	first := off/block + 1
	// Blocks that the file has already are written to in place.
	fit := sort.Search(int(blocks(end)-first), func(i int) bool { return n.newBlocks(from, (first+int64(i))*block) > free })
	return max((first+int64(fit)-1)*block, off)
}

// newBlocks is how many more blocks a file has when it is written to from off to
// end.
func (n *node) newBlocks(off, end int64) int64 {
	from, to := off/block, blocks(end)
	count := to - from
	runs := []run{{n: n.size()}}
	if s := n.sparse(); s != nil {
		runs = s.runs
	}
	for _, r := range runs {
		if a, b := max(r.off/block, from), min(blocks(r.off+r.n), to); b > a {
			count -= b - a
			from = b // runs may share a block
		}
	}
	return count
}

// LimitAll makes the whole file system a tmpfs of a size in bytes; 0 means
// without limit. The path itself may be a mount point; then what is mounted there counts.
func (f *FS) LimitAll(size int64) { f.vol.tmpfs = &mount{size: size, path: "/"} }

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
	m := f.vol.tmpfsOf(f.full(p))
	if m == nil {
		return 0, 0, false
	}
	return m.size, f.vol.tmpfsUsed(m), true
}

// Usage returns what du(1) says of a path: bytes of the blocks that are taken,
// and inodes. It does not go into what is mounted below; files with several
// names count once. What is not there takes nothing. It walks the tree; Used is the total that is
// kept.
func (f *FS) Usage(name string) (bytes, inodes int64) {
	pl, errno := f.walk(name, false)
	if errno != 0 || pl.n == nil {
		return 0, 0
	}
	// seen is made when the first file with several names comes.
	u := tally{tmpfs: pl.n.mounted || f.vol.tmpfsOf(f.full(pl.path)) != nil}
	u.add(f.vol.shown(pl.n))
	return u.bytes, u.inodes
}

// tally sums up a tree.
type tally struct {
	tmpfs         bool // directories take nothing
	bytes, inodes int64
	seen          map[*body]bool
}

// add counts an entry and what is below it, mount points as empty directories.
func (u *tally) add(n *node) {
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
	for _, g := range n.ghosts() {
		u.bytes += g.used.Bytes
		u.inodes += g.used.Inodes
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
