//go:build linux

// Package filesystem is the kubelet's file system on the machine's own files.
// It mirrors upstream's pkg/util/filesystem and what the kubelet does
// with package os.
package filesystem

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// permBits are what Chmod and the making of files and directories set.
const permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// FS is the machine's file system. What it makes has the mode that is asked for,
// whatever the process's umask; what is there keeps its mode. All methods but
// Watch may be called from any goroutine.
type FS struct {
	l *loop.Loop
}

var (
	_ filesystem.FS          = (*FS)(nil)
	_ filesystem.Replacer    = (*FS)(nil)
	_ filesystem.Tailer      = (*FS)(nil)
	_ filesystem.UsageWaiter = (*FS)(nil)
	_ filesystem.Compressor  = (*FS)(nil)
)

// New returns the machine's file system for a kubelet on l, a loop of
// loop.NewReal, on which watches call back.
func New(l *loop.Loop) *FS { return &FS{l: l} }

// ReadFile implements filesystem.FS.
func (f *FS) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// WriteFile implements filesystem.FS. A file that exists is written in place, so
// that a container in which it is mounted sees the new content.
func (f *FS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	file, err := create(name, os.O_WRONLY|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Append implements filesystem.FS.
func (f *FS) Append(name string, data []byte, perm fs.FileMode) error {
	file, err := create(name, os.O_WRONLY|os.O_APPEND, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// create opens a file, which it makes with exactly these permissions if there
// is none.
func create(name string, flag int, perm fs.FileMode) (*os.File, error) {
	for range 2 {
		file, err := os.OpenFile(name, flag|os.O_CREATE|os.O_EXCL, perm.Perm())
		if err == nil {
			if err := file.Chmod(perm & permBits); err != nil {
				return nil, errors.Join(err, file.Close())
			}
			return file, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		file, err = os.OpenFile(name, flag, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		// It went between the two calls, or is a link to nothing.
	}
	return os.OpenFile(name, flag|os.O_CREATE, perm.Perm())
}

// ReplaceFile implements filesystem.Replacer: a temporary file beside it,
// written to the disk, and a rename.
func (f *FS) ReplaceFile(name string, data []byte, perm fs.FileMode) (err error) {
	dir, base := filepath.Split(name)
	tmp, err := os.CreateTemp(dir, "."+base)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(perm&permBits), tmp.Sync(), tmp.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(tmp.Name(), name)
}

// ReadTail implements filesystem.Tailer.
func (f *FS) ReadTail(name string, n int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from := max(info.Size()-n, 0)
	return io.ReadAll(io.NewSectionReader(file, from, n))
}

// ReadDir implements filesystem.FS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Stat implements filesystem.FS.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Lstat implements filesystem.FS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Mkdir implements filesystem.FS.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	if err := os.Mkdir(name, perm.Perm()); err != nil {
		return err
	}
	return os.Chmod(name, perm&permBits)
}

// MkdirAll implements filesystem.FS.
func (f *FS) MkdirAll(path string, perm fs.FileMode) error {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return nil
		}
		return os.MkdirAll(path, perm.Perm()) // its error
	}
	if parent := filepath.Dir(path); parent != path {
		if err := f.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if err := f.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Remove implements filesystem.FS.
func (f *FS) Remove(name string) error { return os.Remove(name) }

// RemoveAll implements filesystem.FS. It does not go into what is mounted below
// the path; that is an error.
func (f *FS) RemoveAll(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		if at := mountBelow(path, info); at != "" {
			return fmt.Errorf("remove %s: %s is a mount point", path, at)
		}
	}
	return os.RemoveAll(path)
}

// Rename implements filesystem.FS.
func (f *FS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// Symlink implements filesystem.FS.
func (f *FS) Symlink(oldname, newname string) error { return os.Symlink(oldname, newname) }

// Readlink implements filesystem.FS.
func (f *FS) Readlink(name string) (string, error) { return os.Readlink(name) }

// Chmod implements filesystem.FS.
func (f *FS) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode&permBits) }

// Owner implements filesystem.FS.
func (f *FS) Owner(name string) (uid, gid int, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("owner of %s: %w", name, errors.ErrUnsupported)
	}
	return int(st.Uid), int(st.Gid), nil
}

// Lchown implements filesystem.FS.
func (f *FS) Lchown(name string, uid, gid int) error { return os.Lchown(name, uid, gid) }
