package kernel

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/memfs"
)

const maxLinks = 40 // as Linux

// place is where a path leads in a View: what is there, if anything, and the
// directory that holds it, or would.
type place struct {
	mnt  int    // index in mounts.list
	path string // canonical in the container
	node memfs.Node
	syn  *synth
	// point says that something is mounted right there.
	point bool
	// The directory around; nothing for the root.
	dirMnt  int
	dirNode memfs.Node
	dirSyn  *synth
	name    string
}

func (at *place) exists() bool { return at.syn != nil || at.node.Exists() }

func (at *place) mode() fs.FileMode {
	if at.syn != nil {
		return at.syn.mode
	}
	return at.node.Mode()
}

func (at *place) owner() (uid, gid int) {
	if at.syn != nil {
		return at.syn.uid, at.syn.gid
	}
	return at.node.Owner()
}

func (at *place) target() string {
	if at.syn != nil {
		return at.syn.link
	}
	return at.node.Target()
}

// head returns the first bytes of a file that has any of its own.
func (at *place) head(n int) []byte {
	switch {
	case at.syn.real():
		return at.syn.head(n)
	case at.syn != nil:
		return nil
	}
	return at.node.Head(n)
}

// dir is the directory around as a place.
func (at *place) dir() place {
	return place{mnt: at.dirMnt, path: path.Dir(at.path), node: at.dirNode, syn: at.dirSyn}
}

// cred is whom the View looks as; root, without a process.
func (v *View) cred() Cred {
	if v.p == nil {
		return Cred{}
	}
	return v.p.Cred
}

// may reports whether the process may read (4), write (2), execute or search (1)
// what is there.
func (v *View) may(at *place, bits fs.FileMode) bool {
	cred := v.cred()
	mode := at.mode()
	if v.can(capDACOverride) {
		return bits&1 == 0 || mode.IsDir() || mode&0o111 != 0
	}
	uid, gid := at.owner()
	perm := mode.Perm()
	switch {
	case uid == cred.UID:
		perm >>= 6
	case gid == cred.GID || slices.Contains(cred.Groups, gid):
		perm >>= 3
	}
	return perm&bits == bits
}

// resolve follows a path; follow says whether also a symbolic link at its end
// is followed. The errno is not 0 if the way there is missing or closed.
func (v *View) resolve(name string, follow bool) (place, syscall.Errno) {
	if name == "" {
		return place{}, syscall.ENOENT
	}
	w := walker{v: v, follow: follow || strings.HasSuffix(name, "/")}
	m := v.ns.m
	w.stack = append(m.walked[:0], v.rootPlace())
	defer func() { m.walked = w.stack[:0] }()
	if name[0] != '/' && v.p != nil && v.p.Dir != "/" {
		// The way to the working directory is open, whatever it says.
		w.free = true
		if errno := w.walk(v.p.Dir); errno != 0 {
			return place{}, errno
		}
		if !w.top().exists() {
			return place{}, syscall.ENOENT
		}
		w.free = false
	}
	if errno := w.walk(name); errno != 0 {
		return place{}, errno
	}
	at := *w.top()
	if strings.HasSuffix(name, "/") && at.exists() && !at.mode().IsDir() {
		return place{}, syscall.ENOTDIR
	}
	return at, 0
}

func (v *View) rootPlace() place {
	i := v.ns.at("/")
	return place{mnt: i, path: "/", node: v.ns.list[i].top(), point: true}
}

// walker is a walk along a path.
type walker struct {
	v      *View
	stack  []place
	links  int
	follow bool
	free   bool // permissions don't matter
}

func (w *walker) top() *place { return &w.stack[len(w.stack)-1] }

// walk goes along a path, from where the stack ends. The stack is the way
// there, so that .. goes back the way it came, also out of a mount.
func (w *walker) walk(rest string) syscall.Errno {
	for rest != "" {
		if rest[0] == '/' {
			if len(rest) > 1 || len(w.stack) == 0 {
				rest = rest[1:]
				continue
			}
			return 0
		}
		var name string
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			name, rest = rest[:i], rest[i:]
		} else {
			name, rest = rest, ""
		}
		at := w.top()
		switch {
		case !at.exists():
			return syscall.ENOENT
		case !at.mode().IsDir():
			return syscall.ENOTDIR
		case !w.free && !w.v.may(at, 1):
			return syscall.EACCES
		case name == ".":
			continue
		case name == "..":
			if len(w.stack) > 1 {
				w.stack = w.stack[:len(w.stack)-1]
			}
			continue
		}
		next := w.v.child(at, name)
		last := strings.Trim(rest, "/") == ""
		if !next.exists() && !last {
			return syscall.ENOENT
		}
		if next.exists() && next.mode()&fs.ModeSymlink != 0 && (!last || w.follow) && !(last && next.syn != nil && next.syn.file != nil) {
			if w.links++; w.links > maxLinks {
				return syscall.ELOOP
			}
			target := next.target()
			if target == "" {
				return syscall.ENOENT
			}
			if target[0] == '/' {
				w.stack = w.stack[:1]
			}
			rest = target + rest
			continue
		}
		w.stack = append(w.stack, next)
	}
	return 0
}

// child returns the entry of a directory.
func (v *View) child(at *place, name string) place {
	p := at.path + "/" + name
	if at.path == "/" {
		p = p[1:]
	}
	next := place{mnt: at.mnt, path: p, name: name, dirMnt: at.mnt, dirNode: at.node, dirSyn: at.syn}
	if i := v.ns.at(p); i >= 0 {
		x := v.ns.list[i]
		next.mnt, next.point = i, true
		if x.synth != nil {
			next.syn = x.synth.lookup(v, "/")
		} else {
			next.node = x.top()
		}
		return next
	}
	if at.syn != nil {
		x := v.ns.list[at.mnt]
		next.syn = x.synth.lookup(v, x.rel(p))
	} else {
		next.node = at.node.Lookup(name)
	}
	return next
}

// existing is resolve for what must be there.
func (v *View) existing(op, name string, follow bool) (place, error) {
	at, errno := v.resolve(name, follow)
	if errno == 0 && !at.exists() {
		errno = syscall.ENOENT
	}
	if errno != 0 {
		return at, pathError(op, name, errno)
	}
	return at, nil
}

// writable returns the files of the mount that a place is on and the path there,
// or EROFS.
func (v *View) writable(i int, p string) (hostfs.Tree, string, syscall.Errno) {
	x := v.ns.list[i]
	if x.ro {
		return nil, "", syscall.EROFS
	}
	if h, ok := x.synth.(*hostMount); ok {
		return h.fs, h.at(x.rel(p)), 0
	}
	f := v.ns.files(i)
	if f == nil {
		return nil, "", syscall.ENOENT // nothing can be made in /proc
	}
	return f, v.ns.list[i].rel(p), 0
}

// mayCreate reports whether an entry can be made at a place where none is.
func (v *View) mayCreate(at *place) (hostfs.Tree, string, syscall.Errno) {
	dir := at.dir()
	if !v.may(&dir, 3) {
		return nil, "", syscall.EACCES
	}
	return v.writable(at.dirMnt, at.path)
}

// mayRemove reports whether the entry at a place can be taken away.
func (v *View) mayRemove(at *place) (hostfs.Tree, string, syscall.Errno) {
	if at.point {
		return nil, "", syscall.EBUSY
	}
	dir := at.dir()
	if !v.may(&dir, 3) {
		return nil, "", syscall.EACCES
	}
	if cred := v.cred(); !v.can(capFowner) && dir.mode()&fs.ModeSticky != 0 {
		mine, _ := at.owner()
		its, _ := dir.owner()
		if mine != cred.UID && its != cred.UID {
			return nil, "", syscall.EPERM
		}
	}
	return v.writable(at.mnt, at.path)
}
