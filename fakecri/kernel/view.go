package kernel

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// info describes what is at a place. Its Sys is always a *memfs.Sys, for files of the machine
// too: programs ask it for owner and inode.
type info struct {
	name string
	mode fs.FileMode
	size int64
	// mtime is in ns since the epoch.
	mtime int64
	sys   *memfs.Sys
	of    fs.FileInfo // of memfs, for the rest
}

func (i *info) Name() string       { return i.name }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) Size() int64        { return i.size }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) ModTime() time.Time { return time.Unix(0, i.mtime).UTC() }
func (i *info) String() string     { return fs.FormatFileInfo(i) }
func (i *info) Sys() any {
	if i.of != nil {
		return i.of.Sys()
	}
	return i.sys
}

// dirSize is what a directory's size shows.
const dirSize = 4096

// info describes a place. A directory's size is Linux's for a small one, and
// devices and pipes have none.
func (v *View) info(at *place, name string) fs.FileInfo {
	if at.syn.real() {
		of := at.syn.info
		// Everything is the machine's own, but the name: a mount point has the name of where it
		// is.
		return &info{name: name, mode: of.Mode(), size: of.Size(), mtime: of.ModTime().UnixNano(), of: of}
	}
	if at.syn != nil {
		return &info{name: name, mode: at.syn.mode, size: int64(len(at.syn.link)), mtime: v.ns.m.l.UnixNano(),
			sys: &memfs.Sys{UID: at.syn.uid, GID: at.syn.gid, Nlink: 1, Ino: at.syn.ino()}}
	}
	of := at.node.Info(name)
	i := &info{name: name, mode: of.Mode(), size: of.Size(), mtime: of.ModTime().UnixNano(), of: of}
	switch {
	case i.mode.IsDir():
		i.size = dirSize
	case i.mode&(fs.ModeDevice|fs.ModeNamedPipe) != 0:
		i.size = 0
	}
	return i
}

// Stat describes what a path leads to; FileInfo.Sys() is a *memfs.Sys. Through a link of
// /proc/PID/fd it describes the open file, which may have no path.
func (v *View) Stat(name string) (fs.FileInfo, error) {
	at, err := v.existing("stat", name, true)
	if err != nil {
		return nil, err
	}
	if at.syn != nil && at.syn.file != nil { // what an open file is
		return &info{name: path.Base(name), mode: at.syn.fileMode(), mtime: v.ns.m.l.UnixNano(), sys: &memfs.Sys{Nlink: 1, UID: at.syn.uid, GID: at.syn.gid}}, nil
	}
	return v.info(&at, path.Base(name)), nil
}

// Lstat is Stat without following a link at the end.
func (v *View) Lstat(name string) (fs.FileInfo, error) {
	at, err := v.existing("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return v.info(&at, path.Base(name)), nil
}

// ReadDir lists a directory, sorted by name. The order is part of what a script prints, so it
// must not be a map's.
func (v *View) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := v.existing("open", name, true)
	if err != nil {
		return nil, err
	}
	switch {
	case !at.mode().IsDir():
		return nil, pathError("readdirent", name, linux.ENOTDIR)
	case !v.may(&at, 4):
		return nil, pathError("open", name, linux.EACCES)
	}
	var out []fs.DirEntry
	// An entry that has gone between the listing and the look is left out, as with files of a
	// real machine.
	for _, n := range v.names(&at) {
		k := v.child(&at, n)
		if k.exists() {
			out = append(out, fs.FileInfoToDirEntry(v.info(&k, n)))
		}
	}
	return out, nil
}

// names lists a directory with the mount points in it. Mount points are entries even if the file
// system has none of that name.
func (v *View) names(at *place) []string {
	var names []string
	if x := v.ns.list[at.mnt]; at.syn != nil {
		names = x.synth.names(v, x.rel(at.path))
	} else {
		names = at.node.Names()
	}
	if more := v.ns.pointsIn(at.path); len(more) > 0 {
		names = append(names, more...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names
}

// Open opens a file; flag is of os.OpenFile (os.O_RDONLY ...). One end of a
// named pipe waits until the other is opened. perm is what a new file gets, before the umask.
// Errors are of kind *fs.PathError.
func (v *View) Open(name string, flag int, perm fs.FileMode) (File, error) {
	f, errno := v.open(name, flag, perm)
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	return f, nil
}

// open is Open without its error's wrapping. Permissions are judged before
// anything is made or emptied.
func (v *View) open(name string, flag int, perm fs.FileMode) (File, linux.Errno) {
	if flag&os.O_CREATE != 0 && len(name) > 1 && name[len(name)-1] == '/' {
		// open(2) with O_CREAT refuses a slash at the end even if the directory is there.
		if _, errno := v.resolve(unslashed(name), false); errno != 0 {
			return nil, errno
		}
		return nil, linux.EISDIR
	}
	excl := flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL
	// With O_EXCL a link is an entry that exists, wherever it leads.
	at, errno := v.resolve(name, !excl)
	switch {
	case errno != 0:
		return nil, errno
	case !at.exists() && flag&os.O_CREATE == 0:
		return nil, linux.ENOENT
	case !at.exists():
		f, rel, errno := v.mayCreate(&at)
		if errno != 0 {
			return nil, errno
		}
		return v.openFile(f, rel, &at, flag, perm&^v.umask(), true)
	case excl:
		return nil, linux.EEXIST
	}
	var want fs.FileMode = 4
	switch {
	case flag&os.O_RDWR != 0:
		want = 6
	case flag&os.O_WRONLY != 0:
		want = 2
	}
	// The order of the checks is Linux's may_open: kind of file, permission, then the read-only
	// mount.
	write := want&2 != 0 || flag&os.O_TRUNC != 0
	switch {
	// /proc/self/fd/1 opens what is open there, also a pipe: a copy, with the offset shared,
	// where Linux opens files anew.
	case at.syn != nil && at.syn.file != nil:
		return at.syn.file.Dup(), 0
	case at.mode().IsDir() && (write || flag&os.O_CREATE != 0):
		return nil, linux.EISDIR
	case !v.may(&at, want):
		return nil, linux.EACCES
	// Devices work on read-only mounts, too, and what they are asked for does not touch the disk.
	case at.mode()&fs.ModeDevice != 0:
		return v.openDevice(at.target(), at.path, flag)
	case at.syn != nil && !at.syn.real():
		return v.openSynth(&at, write)
	case at.mode()&fs.ModeNamedPipe != 0:
		return v.openFifo(&at, flag)
	// Unix sockets can be listed and not connected to.
	case at.mode()&fs.ModeSocket != 0:
		return nil, linux.ENXIO
	// What the mount allows matters only for writing, so reading skips it.
	case !write && at.syn != nil:
		return at.syn.host.open(at.syn.name, at.path, flag, 0)
	case !write:
		return &openFile{h: at.node.Open(name), path: at.path, refs: 1, flag: flag}, 0
	}
	f, rel, errno := v.writable(at.mnt, at.path)
	if errno != 0 {
		return nil, errno
	}
	return v.openFile(f, rel, &at, flag, perm, false)
}

// umask is the process's. A View of the runtime has none: its modes are final.
func (v *View) umask() fs.FileMode {
	if v.p == nil {
		return 0
	}
	return fs.FileMode(v.p.Umask)
}

// openFile opens what is on a mount that can be written to. Exclusive creation
// has been judged, so the flag goes no further. rel is the path in t. O_APPEND is the open file's
// own business: it looks at the size at each write.
func (v *View) openFile(t hostfs.Tree, rel string, at *place, flag int, perm fs.FileMode, create bool) (File, linux.Errno) {
	f, ok := t.(*memfs.FS)
	if !ok {
		return v.openHost(rel, at, flag, perm, create)
	}
	h, err := f.Open(rel, flag&^(os.O_EXCL|os.O_APPEND), perm)
	if err != nil {
		return nil, execError(err)
	}
	if create {
		v.own(f, rel, at)
	}
	return &openFile{h: h, path: at.path, refs: 1, flag: flag, tmpfs: v.ns.list[at.mnt].fstype == "tmpfs"}, 0
}

// own gives a new entry to the process. A directory with setgid hands its group down: that is how
// fsGroup keeps working for new files.
func (v *View) own(f hostfs.Tree, rel string, at *place) {
	cred := v.cred()
	if cred.UID == 0 && cred.GID == 0 {
		// The file system makes entries as root's.
		return
	}
	gid := cred.GID
	if dir := at.dir(); dir.mode()&fs.ModeSetgid != 0 {
		gid = -1
	}
	_ = f.Lchown(rel, cred.UID, gid)
}

// ReadFile returns a file's content. It does not wait: a pipe or terminal gives
// EAGAIN. It is for the runtime and for built-in commands, which have no task that could wait
// here.
func (v *View) ReadFile(name string) ([]byte, error) {
	if at, errno := v.resolve(name, true); errno == 0 && at.exists() && at.mode()&fs.ModeNamedPipe != 0 {
		return nil, pathError("read", name, linux.EAGAIN)
	}
	f, err := v.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	switch f := f.(type) {
	case *openFile:
		out, err := hostfs.ReadAll(f.h)
		if err != nil {
			return nil, pathError("read", name, execError(err))
		}
		return out, nil
	case *synthFile:
		return f.data, nil
	case device:
		if f.name == "null" {
			return nil, nil
		}
	}
	return nil, pathError("read", name, linux.EAGAIN)
}

// WriteFile creates or replaces a file's content.
func (v *View) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if at, errno := v.resolve(name, true); errno == 0 && at.exists() && at.mode()&fs.ModeNamedPipe != 0 {
		return pathError("write", name, linux.EAGAIN)
	}
	f, err := v.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	switch f := f.(type) {
	case *openFile, *synthFile, device:
		_, err = f.Write(context.Background(), data) // these never wait
		return err
	}
	return pathError("write", name, linux.EAGAIN)
}

// Readlink returns what a symbolic link says. It is EINVAL for what is no link, as readlink(2)
// says.
func (v *View) Readlink(name string) (string, error) {
	at, err := v.existing("readlink", name, false)
	if err != nil {
		return "", err
	}
	if at.mode()&fs.ModeSymlink == 0 {
		return "", pathError("readlink", name, linux.EINVAL)
	}
	return at.target(), nil
}

// EvalSymlinks returns the path without symbolic links and dots (realpath).
func (v *View) EvalSymlinks(name string) (string, error) {
	at, err := v.existing("lstat", name, true)
	return at.path, err
}

// Access reports whether the process may read (4), write (2), execute (1) it. It judges by the
// process's credentials, which are the real ones, too.
func (v *View) Access(name string, mode int) error {
	at, err := v.existing("access", name, true)
	if err != nil {
		return err
	}
	if !v.may(&at, fs.FileMode(mode)) {
		return pathError("access", name, linux.EACCES)
	}
	if mode&2 != 0 && v.ns.list[at.mnt].ro && at.mode()&fs.ModeDevice == 0 {
		return pathError("access", name, linux.EROFS)
	}
	return nil
}

// diskOf is the disk that a mount's files are on, or nil. A mount may be a part of the node's
// disk, a share of it with a limit, or nothing of its own.
func (m *Machine) diskOf(x *mount) *memfs.Disk {
	switch {
	case x.fs != nil:
		return x.fs.Disk()
	case x.share != nil:
		return x.share.Disk()
	}
	return m.opts.FS.Disk()
}

// Statfs describes the file system that a path is on. df(1) and the applet stat show it. Sizes
// are bytes; a disk without end shows as Options.Disk.
func (v *View) Statfs(name string) (hostfs.Statfs, error) {
	at, err := v.existing("statfs", name, true)
	if err != nil {
		return hostfs.Statfs{}, err
	}
	x := v.ns.list[at.mnt]
	s := hostfs.Statfs{Source: v.ns.m.device(x), Type: x.fstype, MountPoint: x.path}
	if at.syn.real() {
		of, err := at.syn.host.fs.Statfs(at.syn.name)
		of.Source, of.Type, of.MountPoint = s.Source, s.Type, s.MountPoint
		return of, err
	}
	switch x.fstype {
	// These have no size.
	case "proc", "sysfs", "cgroup", "devpts", "mqueue":
		return s, nil
	case "tmpfs":
		s.Size = x.size
		// An emptyDir with medium Memory has a limit as a size; nothing written yet means an
		// image, and x.size.
		if x.fs != nil {
			if size, used, ok := x.fs.Limit("/"); ok {
				s.Size, s.Used = size, used
			}
		}
		// Linux's default for a tmpfs is half of the memory.
		if s.Size == 0 {
			s.Size = v.ns.m.opts.Memory / 2
		}
	default:
		if d := v.ns.m.diskOf(x); d != nil && d.Size().Bytes > 0 {
			size, used, free := d.Size(), d.Used(), d.Free()
			s.Size, s.Used, s.Avail, s.Files, s.FreeFiles = size.Bytes, used.Bytes, free.Bytes, size.Inodes, free.Inodes
			return s, nil
		}
		s.Size = v.ns.m.opts.Disk
		s.Used, _ = v.ns.m.opts.FS.Usage("/")
	}
	s.Avail = max(s.Size-s.Used, 0)
	// ext4's default is an inode for 16 KiB.
	s.Files = s.Size / 16384
	s.FreeFiles = s.Files
	return s, nil
}
