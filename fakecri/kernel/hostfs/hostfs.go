// Package hostfs says what the kernel needs of the files of the machine that the
// program itself runs on, for containers that mount real directories: an
// interface, for whoever has such files, and what is done through it.
package hostfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
)

// FS are the files of the machine that the program itself runs on, for
// containers that mount real directories: a runtime that real clients talk to.
// Simulations have none; their nodes' files are a memfs.FS.
//
// Paths are absolute and clean. A View resolves symbolic links itself, in the
// container, so that only Canonical and MkdirAll follow them; every other
// method is about what is right there. Nothing is remembered between two
// calls: what others do to the files is seen at once. Calls must be short, as
// the loop waits for them. Errors hold a linux.Errno.
type FS interface {
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
	Open(name string, flag int, perm fs.FileMode) (File, error)
	// MkdirAll makes a directory and its parents.
	MkdirAll(name string, perm fs.FileMode) error
	// Statfs describes the file system of a path, without Source and MountPoint.
	// What is mounted below a directory tells an optional method MountsBelow.
	Statfs(name string) (Statfs, error)
	Tree
}

// File is an open file of a FS.
type File interface {
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

// Stat describes what a path leads to on the machine.
func Stat(h FS, name string) (fs.FileInfo, error) {
	top, err := h.Canonical(name)
	if err != nil {
		return nil, err
	}
	return h.Lstat(top)
}

// ReadFile returns the content of a file of the machine's.
func ReadFile(h FS, name string) ([]byte, error) {
	top, err := h.Canonical(name)
	if err != nil {
		return nil, err
	}
	f, err := h.Open(top, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out, err := ReadAll(f)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return out, nil
}

// WriteFile creates or replaces the content of a file of the machine's.
func WriteFile(h FS, name string, data []byte, perm fs.FileMode) error {
	flag := os.O_WRONLY | os.O_TRUNC
	top, err := h.Canonical(name)
	if errors.Is(err, linux.ENOENT) {
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

// Statfs is what df(1) shows.
type Statfs struct {
	Source, Type, MountPoint string
	// In bytes.
	Size, Used, Avail int64
	Files, FreeFiles  int64
}

// Tree is what can be changed of the files of a mount: a memfs.FS, with the
// paths that it has, or a directory of the machine's.
type Tree interface {
	Mkdir(name string, perm fs.FileMode) error
	Symlink(target, name string) error
	Link(old, name string) error
	Mknod(name string, mode fs.FileMode, driver string) error
	Remove(name string) error
	RemoveAll(name string) error
	Rename(old, name string) error
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, uid, gid int) error
	Lchown(name string, uid, gid int) error
	Chtimes(name string, atime, mtime time.Time) error
	Truncate(name string, size int64) error
}

// ReadAll reads a file to its end, whatever size it shows. The error is EISDIR
// for a directory, or what reading gave.
func ReadAll(f File) ([]byte, error) {
	if f.Mode().IsDir() {
		return nil, linux.EISDIR
	}
	size := f.Size()
	if size == 0 { // of /proc and the like
		size = 4095
	}
	out := make([]byte, 0, size+1)
	for {
		if len(out) == cap(out) {
			out = append(out, make([]byte, len(out))...)[:len(out)]
		}
		n, err := f.ReadAt(out[len(out):cap(out)], int64(len(out)))
		out = out[:len(out)+n]
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		}
	}
}
