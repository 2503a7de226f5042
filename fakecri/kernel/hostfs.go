package kernel

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// HostFS are the files of the machine that the program itself runs on, for
// containers that mount real directories: a runtime that real clients talk to.
// Simulations have none; their nodes' files are a memfs.FS.
//
// Paths are absolute and clean. A View resolves symbolic links itself, in the
// container, so that only Canonical and MkdirAll follow them; every other
// method is about what is right there. Nothing is remembered between two
// calls: what others do to the files is seen at once. Calls must be short, as
// the loop waits for them. Errors hold a syscall.Errno.
type HostFS interface {
	// Canonical resolves all symbolic links of a path that exists.
	Canonical(name string) (string, error)
	// Lstat describes a file; FileInfo.Sys() must be a *memfs.Sys.
	Lstat(name string) (fs.FileInfo, error)
	// Readlink returns what a symbolic link says, or, of a device, the name of
	// its driver ("null", "zero", "full", "random", "urandom", "tty"), "" for
	// any other.
	Readlink(name string) (string, error)
	// Names lists a directory, sorted.
	Names(name string) ([]string, error)
	// Open opens a regular file or a directory; flag is of os.OpenFile. It
	// must not wait for anything.
	Open(name string, flag int, perm fs.FileMode) (HostFile, error)
	// MkdirAll makes a directory and its parents.
	MkdirAll(name string, perm fs.FileMode) error
	// Statfs describes the file system of a path, without Source and MountPoint.
	// What is mounted below a directory tells an optional method MountsBelow.
	Statfs(name string) (Statfs, error)
	tree
}

// HostFile is an open file of a HostFS.
type HostFile interface {
	// ReadAt and WriteAt are of io.ReaderAt and io.WriterAt, at any offset,
	// also for a file that was opened for appending.
	ReadAt(b []byte, off int64) (int, error)
	WriteAt(b []byte, off int64) (int, error)
	// WriteZerosAt writes n zeros and returns how many fitted.
	WriteZerosAt(off, n int64) (int64, error)
	Truncate(size int64) error
	// Size returns its size in bytes; 0 for a file of /proc and the like,
	// which has data all the same.
	Size() int64
	Mode() fs.FileMode
	Close() error
}

// StatHost describes what a path leads to on the machine.
func StatHost(h HostFS, name string) (fs.FileInfo, error) {
	top, err := h.Canonical(name)
	if err != nil {
		return nil, err
	}
	return h.Lstat(top)
}

// ReadHost returns the content of a file of the machine's.
func ReadHost(h HostFS, name string) ([]byte, error) {
	top, err := h.Canonical(name)
	if err != nil {
		return nil, err
	}
	f, err := h.Open(top, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out, errno := (&hostOpen{h: f}).all()
	if errno != 0 {
		return nil, pathError("read", name, errno)
	}
	return out, nil
}

// WriteHost creates or replaces the content of a file of the machine's.
func WriteHost(h HostFS, name string, data []byte, perm fs.FileMode) error {
	flag := os.O_WRONLY | os.O_TRUNC
	top, err := h.Canonical(name)
	if errors.Is(err, syscall.ENOENT) {
		top, err, flag = name, nil, flag|os.O_CREATE|os.O_EXCL
	}
	if err != nil {
		return err
	}
	f, err := h.Open(top, flag, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}
