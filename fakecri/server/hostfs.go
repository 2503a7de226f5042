//go:build linux

package server

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// hostFS are the files of this machine, as containers that mount them see and
// change them. It keeps nothing: each call is a system call or two. Calls are made on the loop,
// which waits for the disk meanwhile: files that containers mount are few and small.
type hostFS struct{}

var _ hostfs.FS = (*hostFS)(nil)

// newHostFS returns the machine's files.
func newHostFS() *hostFS { return &hostFS{} }

// apply has the runtime's containers mount this machine's files, and see its
// name where they see the machine's.
func (h *hostFS) apply(o *fakecri.Options) {
	if o.Host == nil {
		// Options that name a Host keep it: tests do.
		o.Host = h
	}
	if name, err := os.Hostname(); err == nil && o.Hostname == "" {
		o.Hostname = name
	}
}

// Canonical is filepath.EvalSymlinks. It is an error if the path does not exist.
func (*hostFS) Canonical(name string) (string, error) { return filepath.EvalSymlinks(name) }

// Lstat implements hostfs.FS.
func (*hostFS) Lstat(name string) (fs.FileInfo, error) {
	i, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	return hostInfo{i}, nil
}

// hostInfo is a FileInfo whose Sys is memfs's.
type hostInfo struct{ fs.FileInfo }

// Sys returns a *memfs.Sys.
func (i hostInfo) Sys() any {
	st, ok := i.FileInfo.Sys().(*syscall.Stat_t)
	if !ok {
		return &memfs.Sys{Nlink: 1}
	}
	return &memfs.Sys{UID: int(st.Uid), GID: int(st.Gid), Ino: st.Ino, Nlink: int(st.Nlink), Blocks: st.Blocks}
}

// Readlink implements hostfs.FS.
func (*hostFS) Readlink(name string) (string, error) {
	target, err := os.Readlink(name)
	// Not a link: then it may be a device, whose driver is asked for in this way.
	if !errors.Is(err, linux.EINVAL) {
		return target, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return "", nil
	}
	return drivers[unix.Mkdev(unix.Major(st.Rdev), unix.Minor(st.Rdev))], nil
}

// drivers are the character devices that an interpreted program can use, by
// their numbers.
var drivers = map[uint64]string{
	unix.Mkdev(1, 3): "null", unix.Mkdev(1, 5): "zero", unix.Mkdev(1, 7): "full",
	unix.Mkdev(1, 8): "random", unix.Mkdev(1, 9): "urandom", unix.Mkdev(5, 0): "tty",
}

// Names implements hostfs.FS. O_NOFOLLOW, since what the caller resolved may have been replaced
// by a link.
func (*hostFS) Names(name string) ([]string, error) {
	d, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	_ = d.Close()
	slices.Sort(names)
	return names, err
}

// Open implements hostfs.FS. What became a pipe or a device since the
// caller looked is opened without waiting and refused. Paths have been resolved by the view, so a
// link at the end is a race, and refused.
func (*hostFS) Open(name string, flag int, perm fs.FileMode) (hostfs.File, error) {
	// The kernel's open files write by offset, which O_APPEND would override.
	flag = flag&^os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY
	f, err := os.OpenFile(name, flag, perm.Perm())
	if err != nil {
		return nil, err
	}
	i, err := f.Stat()
	if err == nil && !i.Mode().IsRegular() && !i.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: linux.ENXIO}
	}
	// Exclusive means that this call has made the file.
	if err == nil && flag&os.O_EXCL != 0 {
		err = f.Chmod(perm.Perm()) // the view has an umask of its own
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return hostFile{f}, nil
}

// hostFile is an open file of the machine's.
type hostFile struct{ *os.File }

// Size is in bytes, as the file is now.
func (f hostFile) Size() int64 {
	if i, err := f.Stat(); err == nil {
		return i.Size()
	}
	return 0
}

// Mode has the type of the file too.
func (f hostFile) Mode() fs.FileMode {
	if i, err := f.Stat(); err == nil {
		return i.Mode()
	}
	return 0
}

// WriteZerosAt implements hostfs.File. Zeros at the end are allocated, not
// written, as the loop waits for them. The result is how many bytes were written, also with an
// error.
func (f hostFile) WriteZerosAt(off, n int64) (int64, error) {
	if size := f.Size(); off >= size {
		if err := unix.Fallocate(int(f.Fd()), 0, off, n); err == nil {
			return n, nil
			// Other errors mean that the file system can't allocate: then it writes.
		} else if err == unix.ENOSPC {
			return 0, err
		}
	}
	zeros := make([]byte, min(n, 1<<20))
	for done := int64(0); done < n; {
		m, err := f.WriteAt(zeros[:min(n-done, int64(len(zeros)))], off+done)
		if done += int64(m); err != nil {
			return done, err
		}
	}
	return n, nil
}

// Mkdir implements hostfs.FS; this process's umask doesn't count. The view has applied the
// container's umask already.
func (*hostFS) Mkdir(name string, perm fs.FileMode) error {
	if err := os.Mkdir(name, perm); err != nil {
		return err
	}
	return os.Chmod(name, perm)
}

// MkdirAll is os.MkdirAll.
func (*hostFS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }

// Symlink is os.Symlink.
func (*hostFS) Symlink(target, name string) error { return os.Symlink(target, name) }

// Link is os.Link.
func (*hostFS) Link(old, name string) error { return os.Link(old, name) }

// Mknod makes a named pipe; nothing else is made. A device of the machine would need privileges,
// and harm if it had them.
func (*hostFS) Mknod(name string, mode fs.FileMode, _ string) error {
	if mode&fs.ModeNamedPipe == 0 {
		return &fs.PathError{Op: "mknod", Path: name, Err: linux.EPERM}
	}
	if err := unix.Mkfifo(name, uint32(mode.Perm())); err != nil {
		return &fs.PathError{Op: "mknod", Path: name, Err: err}
	}
	return os.Chmod(name, mode.Perm())
}

// Remove is os.Remove.
func (*hostFS) Remove(name string) error { return os.Remove(name) }

// RemoveAll is os.RemoveAll.
func (*hostFS) RemoveAll(name string) error { return os.RemoveAll(name) }

// Rename is rename(2).
func (*hostFS) Rename(old, name string) error { return os.Rename(old, name) }

// Chmod is os.Chmod.
func (*hostFS) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

// Chown and Lchown are os.Lchown: the caller has resolved links.
func (*hostFS) Chown(name string, uid, gid int) error { return os.Lchown(name, uid, gid) }

// Lchown is os.Lchown.
func (*hostFS) Lchown(name string, uid, gid int) error { return os.Lchown(name, uid, gid) }

// Chtimes is os.Chtimes.
func (*hostFS) Chtimes(name string, atime, mtime time.Time) error {
	return os.Chtimes(name, atime, mtime)
}

// Truncate is os.Truncate.
func (*hostFS) Truncate(name string, size int64) error { return os.Truncate(name, size) }

// Statfs implements hostfs.FS. Sizes are in bytes; a type that is not in fsTypes shows as ext4.
func (*hostFS) Statfs(name string) (hostfs.Statfs, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return hostfs.Statfs{}, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	out := hostfs.Statfs{
		Type: fsTypes[int64(st.Type)], Size: int64(st.Blocks) * st.Bsize, Used: int64(st.Blocks-st.Bfree) * st.Bsize,
		Avail: int64(st.Bavail) * st.Bsize, Files: int64(st.Files), FreeFiles: int64(st.Ffree),
	}
	out.Type = cmp.Or(out.Type, "ext4")
	return out, nil
}

// fsTypes are the names of file systems, as mount(8) shows them, by their
// magic numbers.
var fsTypes = map[int64]string{
	unix.TMPFS_MAGIC: "tmpfs", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.NFS_SUPER_MAGIC: "nfs", unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs",
}

// MountsBelow returns the mount points of this machine below a directory, each
// once, parents first. Where there is no /proc there are none. The kernel finds it by an
// interface that it asks for, see BindHostBelow there.
func (*hostFS) MountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading mounts: %w", err)
	}
	defer func() { _ = f.Close() }()
	return mountsBelow(f, dir)
}

// mountinfoText is how the kernel writes what would break a line apart.
var mountinfoText = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountsBelow reads a file in the form of /proc/self/mountinfo. The fifth field is the mount
// point; see proc(5).
func mountsBelow(f io.Reader, dir string) ([]string, error) {
	dir = strings.TrimSuffix(dir, "/") + "/"
	var points []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // the options of an overlay can be long
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if p := mountinfoText.Replace(fields[4]); len(p) > len(dir) && strings.HasPrefix(p, dir) {
			points = append(points, p)
		}
	}
	slices.Sort(points) // which puts parents first
	return slices.Compact(points), lines.Err()
}
