package kernel

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

const maxLinks = 40 // as Linux

// place is where a path leads in a View: what is there, if anything, and the
// directory that holds it, or would. It is found once by resolve and used within one call:
// nothing waits in between, so it can't be out of date. Exactly one of node and syn says what is
// there.
type place struct {
	mnt int // index in mounts.list
	// path has no symbolic links and no dots.
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

// exists reports whether something is there: a path may lead to a free place in a directory.
func (at *place) exists() bool { return at.syn != nil || at.node.Exists() }

// mode, owner and target are of what is there, which must exist.
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

// head returns the first bytes of a file that has any of its own. Programs are recognized by it;
// a made-up file is none.
func (at *place) head(n int) []byte {
	switch {
	case at.syn.real():
		return at.syn.head(n)
	case at.syn != nil:
		return nil
	}
	return at.node.Head(n)
}

// dir is the directory around as a place. It has no directory of its own: that is one step more
// than anybody asks for.
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
//
// bits can be added up, and all of them must be allowed. The first class that fits decides, as in
// POSIX: an owner without a bit does not get it from his group. Root needs an execute bit of
// anybody.
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
// is followed. The errno is not 0 if the way there is missing or closed. A relative name starts
// at the process's directory. A slash at the end asks for a directory, and follows a link there.
// The place may be free, if only the last element is missing.
func (v *View) resolve(name string, follow bool) (place, linux.Errno) {
	if name == "" {
		return place{}, linux.ENOENT
	}
	w := walker{v: v, follow: follow || strings.HasSuffix(name, "/")}
	m := v.ns.m
	// The machine's stack is lent, so that a path of any length costs no allocation.
	w.stack = append(m.walked[:0], v.rootPlace())
	defer func() { m.walked = w.stack[:0] }()
	if name[0] != '/' && v.p != nil && v.p.Dir != "/" {
		// The way to the working directory is open, whatever it says. A process may stay in a
		// directory that it could not enter any more.
		w.free = true
		if errno := w.walk(v.p.Dir); errno != 0 {
			return place{}, errno
		}
		if !w.top().exists() {
			return place{}, linux.ENOENT
		}
		w.free = false
	}
	if errno := w.walk(name); errno != 0 {
		return place{}, errno
	}
	at := *w.top()
	if strings.HasSuffix(name, "/") && at.exists() && !at.mode().IsDir() {
		return place{}, linux.ENOTDIR
	}
	return at, 0
}

// rootPlace is the container's root, which is never missing.
func (v *View) rootPlace() place {
	i := v.ns.at("/")
	return place{mnt: i, path: "/", node: v.ns.list[i].top(), point: true}
}

// walker is a walk along a path. links counts symbolic links on the whole way, against maxLinks.
type walker struct {
	v      *View
	stack  []place
	links  int
	follow bool
	free   bool // permissions don't matter
}

// top is where the walk has come to.
func (w *walker) top() *place { return &w.stack[len(w.stack)-1] }

// walk goes along a path, from where the stack ends. The stack is the way
// there, so that .. goes back the way it came, also out of a mount. rest shrinks from the front,
// and grows by the targets of links. A missing last element ends the walk with a place that does
// not exist; a missing one before it is ENOENT.
func (w *walker) walk(rest string) linux.Errno {
	for rest != "" {
		if rest[0] == '/' {
			if len(rest) > 1 || len(w.stack) == 0 {
				// Slashes are skipped one by one; a single last one is kept for the caller, who
				// looks at it.
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
			return linux.ENOENT
		case !at.mode().IsDir():
			return linux.ENOTDIR
		case !w.free && !w.v.may(at, 1):
			return linux.EACCES
		case name == ".":
			continue
		case name == "..":
			// .. of the root is the root.
			if len(w.stack) > 1 {
				w.stack = w.stack[:len(w.stack)-1]
			}
			continue
		}
		next := w.v.child(at, name)
		last := strings.Trim(rest, "/") == ""
		if !next.exists() && !last {
			return linux.ENOENT
		}
		// A link of /proc/PID/fd at the end is not followed by its text: it is the open file.
		if next.exists() && next.mode()&fs.ModeSymlink != 0 && (!last || w.follow) && !(last && next.syn != nil && next.syn.file != nil) {
			if w.links++; w.links > maxLinks {
				return linux.ELOOP
			}
			target := next.target()
			if target == "" {
				return linux.ENOENT
			}
			if target[0] == '/' {
				// An absolute target starts at the container's root, not at the mount's.
				w.stack = w.stack[:1]
			}
			rest = target + rest
			continue
		}
		w.stack = append(w.stack, next)
	}
	return 0
}

// child returns the entry of a directory. It looks into the mount table first: what is mounted on
// an entry hides it, entry or not.
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

// existing is resolve for what must be there. op is for the error alone.
func (v *View) existing(op, name string, follow bool) (place, error) {
	at, errno := v.resolve(name, follow)
	if errno == 0 && !at.exists() {
		errno = linux.ENOENT
	}
	if errno != 0 {
		return at, pathError(op, name, errno)
	}
	return at, nil
}

// writable returns the files of the mount that a place is on and the path there,
// or EROFS. The first write to an image's tree makes files of it (files); that is why reading
// does not come here.
func (v *View) writable(i int, p string) (hostfs.Tree, string, linux.Errno) {
	x := v.ns.list[i]
	if x.ro {
		return nil, "", linux.EROFS
	}
	if h, ok := x.synth.(*hostMount); ok {
		return h.fs, h.at(x.rel(p)), 0
	}
	f := v.ns.files(i)
	if f == nil {
		return nil, "", linux.ENOENT // nothing can be made in /proc
	}
	return f, v.ns.list[i].rel(p), 0
}

// mayCreate reports whether an entry can be made at a place where none is. 3 is write and search:
// both are needed in a directory.
func (v *View) mayCreate(at *place) (hostfs.Tree, string, linux.Errno) {
	dir := at.dir()
	if !v.may(&dir, 3) {
		return nil, "", linux.EACCES
	}
	return v.writable(at.dirMnt, at.path)
}

// mayRemove reports whether the entry at a place can be taken away. In a sticky directory, as
// /tmp, only owners of the entry or of the directory may.
func (v *View) mayRemove(at *place) (hostfs.Tree, string, linux.Errno) {
	if at.point {
		return nil, "", linux.EBUSY
	}
	dir := at.dir()
	if !v.may(&dir, 3) {
		return nil, "", linux.EACCES
	}
	if cred := v.cred(); !v.can(capFowner) && dir.mode()&fs.ModeSticky != 0 {
		mine, _ := at.owner()
		its, _ := dir.owner()
		if mine != cred.UID && its != cred.UID {
			return nil, "", linux.EPERM
		}
	}
	return v.writable(at.mnt, at.path)
}
