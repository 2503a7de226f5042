package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// hostMount is a file or directory of the machine's, mounted. It follows its
// path: whatever is there when a process looks, is what it sees. It is never written through
// memfs: changes go to the real file system, with the rights of the simulator's own user.
type hostMount struct {
	fs  hostfs.FS
	top string // canonical on the machine
}

// BindHost mounts a file or directory of the machine's, as Bind does one of the
// node's. Symbolic links in hostPath are resolved now, on the machine; those
// below it lead where they lead in the container.
func (ns *Namespace) BindHost(containerPath string, host hostfs.FS, hostPath string, ro bool) error {
	// top was resolved when it was mounted, so a link that is changed later leads where it led.
	top, err := host.Canonical(path.Clean("/" + hostPath))
	if err != nil {
		return pathError("mount", hostPath, execError(err))
	}
	info, err := host.Lstat(top)
	if err != nil {
		return pathError("mount", hostPath, execError(err))
	}
	x := &mount{path: path.Clean("/" + containerPath), source: top, fstype: "ext4", ro: ro, synth: &hostMount{host, top}, bind: true}
	if s, err := host.Statfs(top); err == nil {
		x.fstype, x.size = s.Type, s.Size
	}
	return ns.bind(x, info.IsDir())
}

// BindHostBelow mounts what is mounted below a directory of the machine's once
// more, below where that directory was bound read-only: without being recursive,
// that leaves the file systems inside as they are. A hostfs.FS that doesn't know of
// any has none. The kubelet's recursiveReadOnly (KEP-3857) is what makes the difference visible.
func (ns *Namespace) BindHostBelow(containerPath string, host hostfs.FS, hostPath string) error {
	known, ok := host.(interface {
		MountsBelow(dir string) ([]string, error)
	})
	// An in-memory FS has no mounts below.
	if !ok {
		return nil
	}
	top, err := host.Canonical(path.Clean("/" + hostPath))
	if err != nil {
		return pathError("mount", hostPath, execError(err))
	}
	points, err := known.MountsBelow(top)
	if err != nil {
		return pathError("mount", hostPath, execError(err))
	}
	for _, p := range points {
		err := ns.BindHost(path.Join("/", containerPath, strings.TrimPrefix(p, top)), host, p, false)
		if err != nil && !errors.Is(err, linux.ENOENT) && !errors.Is(err, linux.EACCES) {
			return err // and what is hidden can't be reached anyway
		}
	}
	return nil
}

// OnHost reports whether what is at a path, or would be made there, is a file of
// the machine's. A program that is missing on the machine's files has no stand-in: what is there
// is meant as it is.
func (v *View) OnHost(name string) bool {
	at, errno := v.resolve(name, true)
	if errno != 0 {
		return false
	}
	i := at.mnt
	if !at.exists() {
		i = at.dirMnt
	}
	_, ok := v.ns.list[i].synth.(*hostMount)
	return ok
}

// at is a path in the mount as the machine has it. rel is "/" for the top itself.
func (h *hostMount) at(rel string) string {
	switch {
	case rel == "/":
		return h.top
	case h.top == "/":
		return rel
	}
	return h.top + rel
}

// lookup looks at the machine at each call: files change behind the simulator's back.
func (h *hostMount) lookup(_ *View, rel string) *synth {
	name := h.at(rel)
	info, err := h.fs.Lstat(name)
	if err != nil {
		return nil
	}
	s := &synth{host: h, name: name, info: info, mode: info.Mode()}
	if sys, ok := info.Sys().(*memfs.Sys); ok {
		s.uid, s.gid = sys.UID, sys.GID
	}
	// Of a device the link is the driver's name, as in memfs.
	if s.mode&(fs.ModeSymlink|fs.ModeDevice) != 0 {
		s.link, _ = h.fs.Readlink(name)
	}
	return s
}

func (h *hostMount) names(_ *View, rel string) []string {
	names, _ := h.fs.Names(h.at(rel))
	return names
}

// head returns the first bytes of a real file. Any error is an empty head: then the file is no
// program.
func (s *synth) head(n int) []byte {
	if !s.mode.IsRegular() {
		return nil
	}
	f, err := s.host.fs.Open(s.name, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	b := make([]byte, n)
	n, _ = f.ReadAt(b, 0)
	_ = f.Close()
	return b[:n]
}

// open opens a file by its name on the machine; shown is its path in the
// container. O_APPEND is done by openFile, as writes are by offset.
func (h *hostMount) open(name, shown string, flag int, perm fs.FileMode) (*openFile, linux.Errno) {
	f, err := h.fs.Open(name, flag&^os.O_APPEND, perm)
	if err != nil {
		return nil, execError(err)
	}
	return &openFile{h: f, path: shown, refs: 1, flag: flag}, 0
}

// openHost opens a real file for writing, which it makes if create says so. A program of the
// machine may make or remove the file meanwhile, so the errors of a race are handled: O_EXCL says
// who made it, and so who owns it.
func (v *View) openHost(name string, at *place, flag int, perm fs.FileMode, create bool) (File, linux.Errno) {
	x := v.ns.list[at.mnt]
	h := x.synth.(*hostMount)
	const making = os.O_CREATE | os.O_EXCL
	excl := flag&os.O_EXCL != 0
	if create {
		flag |= making
	} else {
		flag &^= making
	}
	f, errno := h.open(name, at.path, flag, perm)
	if errno == linux.EEXIST && create && !excl { // somebody outside was faster
		create = false
		f, errno = h.open(name, at.path, flag&^making, perm)
	}
	if errno != 0 {
		return nil, errno
	}
	f.tmpfs = x.fstype == "tmpfs"
	if create {
		v.own(h.fs, name, at)
	}
	return f, 0
}
