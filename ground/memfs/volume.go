package memfs

import (
	"cmp"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/paths"
)

// volume is what all parts of one file system share: what is mounted, who
// watches, and what space is taken. It speaks of nodes, and of paths in the
// whole file system; how a path leads to a node is [part]'s. Paths are the part's business, so
// that a volume can have many parts.
type volume struct {
	l        *loop.Loop
	whole    part
	fs       FS       // of whole: New returns it, so that a file system is one object
	boot     []string // Options.Tmpfs
	mounts   []mount
	watches  []*watch
	symlinks int // ever made: while it is 0, a clean path is canonical
	inodes   uint64

	image *Image // what it started from: nodes of it are frozen
	tmpfs *mount // the whole is a tmpfs: see LimitAll
	share Share  // what is taken, without what is frozen
}

// newVolume returns a volume with a root, and no space taken by it yet.
func newVolume(opts Options, root *node) *volume {
	v := &volume{l: opts.Loop, boot: opts.Tmpfs}
	v.whole = part{vol: v, root: root}
	v.fs.part = &v.whole
	v.share.join(opts.Share)
	return v
}

// now returns the time for what is written. Without a loop all times are the same, as an image
// must not depend on when it was made.
func (v *volume) now() int64 {
	if v.l == nil {
		return loop.Epoch().UnixNano()
	}
	return v.l.UnixNano()
}

// shown is the directory that is seen at n: n, or what is mounted on it. The youngest mount is on
// top.
func (v *volume) shown(n *node) *node {
	if n.mounted {
		mounts := v.mounts
		for i := len(mounts) - 1; i >= 0; i-- {
			if mounts[i].point == n {
				return mounts[i].root
			}
		}
	}
	return n
}

// thaw returns a copy that may be written to, which takes space of its own.
func (v *volume) thaw(n *node) *node {
	c := n.thawed()
	if c.counted {
		v.share.Add(c.weight())
	}
	return c
}

// disk is that of all; one without end if there is none yet. A growth needs a disk to be counted
// by, even if that has no end.
func (v *volume) disk() *Disk {
	if v.share.d == nil {
		d := NewDisk(DiskOptions{Loop: v.l})
		v.share.up, v.share.d = &d.share, d
		d.share.used = v.share.used
	}
	return v.share.d
}

// resized is called after each change of a file that took so many bytes before. before is
// n.allocated from before the change.
func (v *volume) resized(n *node, before int64) {
	if by := n.allocated() - before; by != 0 && n.linked() {
		v.share.Add(Space{Bytes: by})
	}
}

// forget takes an entry off the names of its file, and with the last one what it
// takes off the disk. Names that are left keep the file and its blocks.
func (v *volume) forget(n *node) {
	if n.frozen {
		return
	}
	if n.counted {
		n.counted = false
		if e := n.exts(); e == nil || len(e.names) <= 1 {
			w := n.weight()
			v.share.Add(Space{}.minus(w))
		}
	}
	n.unname()
}

// touch says that a file was changed now.
func (v *volume) touch(n *node) { n.setTime(v.now()) }

// clearTree removes what is below n and reports whether a mount point was in the
// way. The names that were mount points stay, as rm -rf leaves them.
func (v *volume) clearTree(n *node) (busy bool) {
	if n.frozen {
		return false // it goes as a whole, and is not written to
	}
	if !n.isDir() {
		return false
	}
	at := v.shown(n)
	kept := at.kids[:0]
	for _, k := range at.kids {
		if v.clearTree(k) {
			kept = append(kept, k)
			continue
		}
		v.forget(k)
	}
	clear(at.kids[len(kept):])
	if at.kids = kept; len(kept) == 0 {
		at.kids = nil
	}
	return n.mounted || len(kept) > 0
}

// room returns up to which offset, from off to end, a file at a canonical path
// can be written, by what is free on the disk or the tmpfs that it is on. A file that nobody
// links takes nothing, and has all the room.
func (v *volume) room(p string, n *node, off, end int64) int64 {
	if d := v.share.d; d != nil && n.linked() {
		return n.endWithin(off, end, d.Free().Bytes/block)
	}
	m := v.tmpfsOf(p)
	if m == nil || m.size == 0 {
		return end
	}
	// What the file has may be holes: count its whole length, to be simple.
	have := blocks(n.size()) * block
	// tmpfsUsed walks the tmpfs: those are small.
	free := m.size - v.tmpfsUsed(m) - (have - n.allocated())
	return min(end, max(have+max(free, 0), n.size()))
}

// tmpfsUsed is what a tmpfs holds.
func (v *volume) tmpfsUsed(m *mount) int64 {
	root := cmp.Or(m.root, v.whole.root)
	u := tally{tmpfs: true}
	u.add(root)
	return u.bytes
}

// mountOf returns the root of the mount that holds what is at a canonical path,
// or nil for the disk. Renames and links don't cross mounts, for which this is compared.
func (v *volume) mountOf(p string) *node {
	if m := v.tmpfsOf(p); m != nil {
		return m.root
	}
	return nil
}

// tmpfsOf is mountOf for the mount itself. What is mounted at the path counts
// as held by what is around it.
func (v *volume) tmpfsOf(p string) *mount {
	var best *mount
	mounts := v.mounts
	for i := range mounts {
		m := &mounts[i]
		if p != m.path && paths.Below(p, m.path) && (best == nil || len(m.path) > len(best.path)) {
			best = m
		}
	}
	if best == nil {
		return v.tmpfs
	}
	return best
}

// sys is what FileInfo.Sys says. The inode number is given when it is asked for, since few ask.
func (v *volume) sys(n *node) *Sys {
	s := &Sys{Nlink: 1, Blocks: n.weight().Bytes / 512}
	uid, gid := n.owner()
	s.UID, s.GID = int(uid), int(gid)
	if e := n.exts(); e != nil && len(e.names) > 0 {
		s.Nlink = len(e.names)
	}
	if n.frozen {
		if v.image != nil {
			s.Ino = v.image.inos[n]
		}
		return s
	}
	e := n.extended()
	if e.ino == 0 {
		v.inodes++
		e.ino = v.inodes
	}
	s.Ino = e.ino
	return s
}

// infoOf describes an entry, what is mounted there if so.
func (v *volume) infoOf(n *node) info {
	s := v.shown(n)
	return info{name: n.name, mode: s.mode, mtime: s.mtime, size: s.size(), vol: v, n: s}
}

// changed tells the watches of a change at a canonical path; tree says that
// what is below it came or went with it. A watch whose timer is set already will be called
// anyway.
func (v *volume) changed(p string, tree bool) {
	for _, w := range v.watches {
		if w.timer.Set() && paths.Below(p, w.changed) && (!tree || w.removed != "" && paths.Below(p, w.removed)) {
			continue
		}
		// Links are resolved at each change, as they may lead elsewhere by then.
		direct := touches(w.path, p, tree)
		if direct || v.symlinks > 0 && v.touchesThroughLink(w.path, p, tree) {
			at := p
			if !direct {
				at = "/" // it has another path, too
			}
			w.changed = paths.Around(w.changed, at)
			if tree {
				w.removed = paths.Around(w.removed, at)
			}
			if !w.timer.Set() {
				w.timer.Reset(0)
			}
		}
	}
}

// touchesThroughLink is touches for a watched path with symbolic links in it.
func (v *volume) touchesThroughLink(watched, p string, tree bool) bool {
	pl, errno := v.whole.walk(watched, true)
	return errno == 0 && pl.path != watched && touches(pl.path, p, tree)
}
