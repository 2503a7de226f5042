package memfs

import (
	"io/fs"
	"slices"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/paths"
)

// mount is a tmpfs or a tree over a directory. point is the directory below, root what is seen
// there instead.
type mount struct {
	point *node
	root  *node
	path  string
	size  int64 // 0 means no limit
}

// MountTmpfs puts an empty tmpfs over a directory, which it makes if there is
// none. What the directory holds is hidden until the tmpfs goes.
func (f *FS) MountTmpfs(name string) error { return f.MountTmpfsSize(name, 0) }

// MountTmpfsSize is MountTmpfs with a limit in bytes, beyond which writing
// gives ENOSPC; 0 means none. The limit is of blocks, as df shows it.
func (f *FS) MountTmpfsSize(name string, size int64) error {
	return mountRoot(f, name, &node{mode: fs.ModeDir | 0o777, mtime: f.vol.now()}, size)
}

// Tree is a directory that is on no disk. Wherever it is mounted the same files are seen, also
// in several file systems, as long as all of them are used on one loop. It outlives mounts. One
// that is mounted nowhere may go to another loop.
type Tree struct {
	root *node
	// Size is its limit in bytes, beyond which writing gives ENOSPC; 0: none. It holds for
	// mounts made from then on.
	Size int64
}

// NewTree returns an empty tree.
func NewTree(perm fs.FileMode) *Tree { return &Tree{root: &node{mode: fs.ModeDir | perm.Perm()}} }

// Mount mounts the tree over a directory, which is made if there is none.
func (t *Tree) Mount(f *FS, name string) error { return mountRoot(f, name, t.root, t.Size) }

// Resize sets the tree's limit, also for the places where it is mounted on a file system.
func (t *Tree) Resize(f *FS, size int64) {
	t.Size = size
	for i := range f.vol.mounts {
		if m := &f.vol.mounts[i]; m.root == t.root {
			m.size = size
		}
	}
}

// Used is what the tree's files and directories take.
func (t *Tree) Used() Space { return t.root.used() }

func (n *node) used() Space {
	s := n.weight()
	for _, k := range n.kids {
		s = s.plus(k.used())
	}
	return s
}

// Merge takes over from a tree what is newer there, or not here.
func (t *Tree) Merge(from *Tree) { t.root.merge(from.root) }

func (n *node) merge(from *node) {
	for _, k := range from.kids {
		switch old := n.child(k.name); {
		case old == nil:
			n.add(k.clone())
		case old.isDir() && k.isDir():
			old.merge(k)
		case k.mtime > old.mtime:
			n.remove(old)
			n.add(k.clone())
		}
	}
}

// Clone returns a tree of its own that holds the same, so that both may be on loops of their own.
func (t *Tree) Clone() *Tree {
	return &Tree{root: t.root.clone(), Size: t.Size}
}

func (n *node) clone() *node {
	c := n.thawed()
	c.mounted = false
	if c.body != nil {
		c.body.data = slices.Clone(c.body.data)
	}
	for i, k := range c.kids {
		c.kids[i] = k.clone()
	}
	return c
}

func mountRoot(f *FS, name string, root *node, size int64) error {
	if err := f.MkdirAll(name, 0o755); err != nil {
		return err
	}
	pl, errno := f.walk(name, true)
	if errno != 0 {
		return pathError("mount", name, errno)
	}
	if pl.dir == nil || pl.n.mounted {
		return pathError("mount", name, linux.EBUSY)
	}
	if errno := f.noSpace(pl, true, Space{}); errno != 0 {
		return pathError("mount", name, errno)
	}
	pl = f.mine(pl, true)
	pl.n.mounted = true
	f.vol.mounts = append(f.vol.mounts, mount{pl.n, root, f.full(pl.path), size})
	f.changed(pl.path, true)
	return nil
}

// Unmount takes a tmpfs away, with what it holds, or a tree.
func (f *FS) Unmount(name string) error {
	pl, errno := f.walk(name, true)
	switch {
	case errno != 0:
	case pl.n == nil:
		errno = linux.ENOENT
	case !pl.n.mounted:
		errno = linux.EINVAL
	}
	if errno != 0 {
		return pathError("unmount", name, errno)
	}
	for _, m := range f.vol.mounts {
		if m.path != f.full(pl.path) && paths.Below(m.path, f.full(pl.path)) {
			return pathError("unmount", name, linux.EBUSY)
		}
	}
	f.vol.mounts = slices.DeleteFunc(f.vol.mounts, func(m mount) bool { return m.point == pl.n })
	pl.n.mounted = false
	f.changed(pl.path, true)
	return nil
}

// Mounted reports whether a tmpfs is mounted at a path. The path leads to the mount point itself.
func (f *FS) Mounted(name string) bool {
	pl, errno := f.walk(name, true)
	return errno == 0 && pl.n != nil && pl.n.mounted
}

// Mounts returns where tmpfs are mounted, in the order of mounting.
func (f *FS) Mounts() []string {
	return lists.Map(f.vol.mounts, func(m mount) string { return m.path })
}

// PowerCut loses what a machine without power loses: every tmpfs, with its
// mount. Those of Options.Tmpfs are there again, empty. Watches stay; whoever
// died stops theirs.
func (f *FS) PowerCut() {
	lost := f.vol.mounts
	f.vol.mounts = nil
	for _, m := range lost {
		m.point.mounted = false
	}
	f.mountBoot()
	for _, m := range lost {
		f.changed(m.path, true)
	}
}

// mountBoot mounts what a machine mounts at its boot.
func (f *FS) mountBoot() {
	for _, p := range f.vol.boot {
		// A file in the way leaves the directory unmounted, as a failed
		// mount unit would.
		_ = f.MountTmpfs(p)
	}
}
