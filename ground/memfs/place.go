package memfs

import (
	"cmp"
	"io/fs"
	"path"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// part is a file system as seen from one of its directories (or files): the
// whole, or what Sub returns. It turns paths into places, and makes places of
// an image its own before they are written to. The root of a part may be copied from an image, so
// it is a field and not fixed.
type part struct {
	vol    *volume
	root   *node
	prefix string // of root in the whole file system, "" for the whole
}

// full returns what a path of the part is in the whole file system.
func (t *part) full(p string) string {
	if t.prefix == "" {
		return p
	}
	if p == "/" {
		return t.prefix
	}
	return t.prefix + p
}

// place is where a path leads: the directory that holds (or would hold) its
// last element, and the entry, nil if there is none. dir is nil for the root. It is of the
// moment, like a Node: any change may make it out of date.
type place struct {
	dir  *node
	name string
	n    *node
	// path is the path without symbolic links in it.
	path string
}

// walk follows a path; follow says whether also a symbolic link that is its
// last element is followed. The errno is not 0 if the way there is missing or
// leads through something that is no directory. It settles growths first, so whatever is looked
// at afterwards is of now.
func (t *part) walk(name string, follow bool) (place, linux.Errno) {
	if !strings.HasPrefix(name, "/") {
		return place{}, linux.EINVAL
	}
	if d := t.vol.share.d; d != nil {
		d.settle()
	}
	p := path.Clean(name)
	for range maxLinks {
		pl, next, errno := t.walkOnce(p, follow)
		if errno != 0 || next == "" {
			return pl, errno
		}
		p = next
	}
	return place{}, linux.ELOOP
}

// walkOnce follows a clean path up to its end or up to the first symbolic
// link, and then returns the path with the link replaced. A relative target counts from the
// directory of the link.
func (t *part) walkOnce(p string, follow bool) (pl place, next string, errno linux.Errno) {
	at := t.vol.shown(t.root)
	if p == "/" {
		return place{n: at, name: "/", path: "/"}, "", 0
	}
	for start := 1; ; {
		end := len(p)
		if i := strings.IndexByte(p[start:], '/'); i >= 0 {
			end = start + i
		}
		if !at.isDir() {
			return place{}, "", linux.ENOTDIR
		}
		name, last := p[start:end], end == len(p)
		k := at.child(name)
		if k != nil && k.isLink() && (!last || follow) {
			target := k.body.target
			if !strings.HasPrefix(target, "/") {
				target = p[:start] + target
			}
			return place{}, path.Clean(target + p[end:]), 0
		}
		if last {
			return place{dir: at, name: name, n: k, path: p}, "", 0
		}
		if k == nil {
			return place{}, "", linux.ENOENT
		}
		at = t.vol.shown(k)
		start = end + 1
	}
}

// create puts a new entry where pl leads. In a setgid directory it gets that
// one's group. The time of the directory is that of the change.
func (t *part) create(pl place, mode fs.FileMode, b *body) *node {
	pl = t.mine(pl, false)
	now := t.vol.now()
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
		t.vol.share.Add(n.weight())
	}
	return n
}

// drop takes an entry out of its directory.
func (t *part) drop(pl place) {
	// The copies go up to the root: a frozen directory can't be given a copied entry.
	pl = t.mine(pl, false)
	t.vol.forget(pl.n)
	pl.dir.remove(pl.n)
	pl.dir.mtime = t.vol.now()
}

// mine has a file system that started from an image own the directory that pl
// is in, and with self also the entry, so that they may be written to. pl must
// be of this moment.
func (t *part) mine(pl place, self bool) place {
	if t.vol.image == nil {
		return pl
	}
	if pl.dir == nil {
		if self && pl.n.frozen {
			t.root = t.vol.thaw(pl.n)
			pl.n = t.root
		}
		return pl
	}
	if pl.dir.frozen {
		pl.dir = t.ownDir(path.Dir(pl.path))
	}
	if self && pl.n != nil && pl.n.frozen {
		i, _ := pl.dir.search(pl.name)
		pl.n = t.vol.thaw(pl.n)
		pl.dir.kids[i] = pl.n
	}
	return pl
}

// ownDir owns a directory and those above it. The path must be canonical.
func (t *part) ownDir(p string) *node {
	if t.root.frozen {
		t.root = t.vol.thaw(t.root)
	}
	at := t.vol.shown(t.root)
	for p = strings.TrimPrefix(p, "/"); p != ""; {
		name, rest, _ := strings.Cut(p, "/")
		i, _ := at.search(name)
		k := at.kids[i]
		if k.frozen {
			k = t.vol.thaw(k)
			at.kids[i] = k
		}
		at, p = t.vol.shown(k), rest
	}
	return at
}

// noSpace is the errno of a change where pl leads that takes need, besides what is
// copied from the image for it; self tells that the entry is written to. Copies are estimated
// first from below, and counted only where space is short, since that walks the path.
func (t *part) noSpace(pl place, self bool, need Space) linux.Errno {
	v := t.vol
	if v.share.d == nil {
		return 0
	}
	if v.image != nil {
		copied := Space{}
		if self && pl.n != nil && pl.n.frozen {
			copied = Space{pl.n.allocated(), 1}
		}
		if free := v.share.d.free(); free.Bytes < need.Bytes+copied.Bytes+nearBytes || free.Inodes < need.Inodes+copied.Inodes+nearInodes {
			copied = copied.plus(t.frozenAbove(pl))
		}
		need = need.plus(copied)
	}
	dir := cmp.Or(pl.dir, pl.n)
	return v.share.noSpace(dir, need)
}

// frozenAbove is what copies of the directories above an entry will take. Each copied directory
// takes a block.
func (t *part) frozenAbove(pl place) (need Space) {
	at := t.root
	for p := strings.TrimPrefix(pl.path, "/"); at != nil && p != ""; {
		if at.frozen {
			need = need.plus(Space{block, 1})
		}
		var name string
		name, p, _ = strings.Cut(p, "/")
		if at = at.child(name); at != nil {
			at = t.vol.shown(at)
		}
	}
	return need
}

// changed tells the watches of a change at a canonical path; tree says that
// what is below it came or went with it.
func (t *part) changed(p string, tree bool) { t.vol.changed(t.full(p), tree) }
