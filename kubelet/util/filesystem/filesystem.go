// Package filesystem declares the files of a node as the kubelet sees them:
// static pod manifests, pod directories, volumes, logs, checkpoints. In a
// simulation they are in memory (ground/memfs), on a machine they are the OS's. It
// mirrors upstream's pkg/util/filesystem.
package filesystem

import (
	"context"
	"io/fs"
	"iter"
)

// FS is a file system with absolute, slash-separated paths. Its calls take no
// time and never wait. Errors match fs.ErrNotExist, fs.ErrExist and the like
// with errors.Is.
type FS interface {
	// ReadFile returns a file's content, which must not be written to.
	ReadFile(name string) ([]byte, error)
	// WriteFile creates or replaces a file; its directory must exist.
	WriteFile(name string, data []byte, perm fs.FileMode) error
	// Append adds to the end of a file, or creates it.
	Append(name string, data []byte, perm fs.FileMode) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// Lstat is Stat, but does not follow a symbolic link at the path's end.
	Lstat(name string) (fs.FileInfo, error)
	Mkdir(name string, perm fs.FileMode) error
	// MkdirAll makes a directory and its parents; one that exists is no error.
	MkdirAll(path string, perm fs.FileMode) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes a path and what is below it; nothing there is no error.
	RemoveAll(path string) error
	// Rename moves a file, a link or a directory; a file or link in the place
	// is replaced.
	Rename(oldname, newname string) error
	// Symlink makes newname a symbolic link to oldname, which need not exist.
	Symlink(oldname, newname string) error
	Readlink(name string) (string, error)
	// Chmod sets the permission bits, and setuid, setgid and sticky.
	Chmod(name string, mode fs.FileMode) error
	// Lchown sets the owner and group of a file, or of a symbolic link itself;
	// -1 leaves one as it is.
	Lchown(name string, uid, gid int) error
	// Owner returns the owner and group of a file.
	Owner(name string) (uid, gid int, err error)
	// Usage returns the bytes and the number of inodes at and below a path, as
	// du counts them, without other mounts below it.
	Usage(name string) (bytes, inodes int64)
	// Watch has fn called after each change at or below path, also when path
	// does not exist yet, until stop is called. fn must not wait.
	Watch(path string, fn func()) (stop func())
}

// Mounter mounts what volumes need on a node. It mirrors the part of
// k8s.io/mount-utils that the volume plugins in the tree use.
type Mounter interface {
	// MountTmpfs puts an empty tmpfs over a directory that exists; size is its
	// limit in bytes, 0 for none.
	MountTmpfs(path string, size int64) error
	// Unmount takes away what is mounted at path.
	Unmount(path string) error
	// IsMountPoint reports whether something is mounted at path.
	IsMountPoint(path string) bool
}

// RemoteMounter mounts what other machines export: a Mounter of a node that can. Its
// mounts may wait, for use in a task.
type RemoteMounter interface {
	// MountRemote mounts source over a directory that exists. The error's text is that of
	// k8s.io/mount-utils.
	MountRemote(ctx context.Context, source, target, fstype string, options []string) error
	// UnmountRemote takes it away, by force when the other machine doesn't answer.
	UnmountRemote(ctx context.Context, target string) error
	// IsRemoteMountPoint is IsMountPoint without asking the other machine.
	IsRemoteMountPoint(path string) bool
}

// SubPather mounts parts of volumes: a Mounter of a machine on which containers
// write to volumes while others are made, and could lead a path elsewhere. sub is
// a clean path below volume, without symbolic links by the time it was looked at.
type SubPather interface {
	// MakeSubPath makes the directories of sub that are missing, with exactly
	// this mode.
	MakeSubPath(volume, sub string, perm fs.FileMode) error
	// BindSubPath has target, whose directory exists, show what sub leads to
	// now, also when its name goes. Over a symbolic link it leads nowhere.
	BindSubPath(volume, sub, target string) error
	// CleanSubPaths takes away all that is mounted below dir, and dir; nothing
	// there is no error.
	CleanSubPaths(dir string) error
}

// What a file system on a disk has besides, where its calls take time or a crash
// can come between.
type (
	// Replacer puts a file in place in one step, so that after a crash there is
	// the old content or the new.
	Replacer interface {
		ReplaceFile(name string, data []byte, perm fs.FileMode) error
	}
	// Tailer reads at most the last n bytes of a file.
	Tailer interface {
		ReadTail(name string, n int64) ([]byte, error)
	}
	// Compressor makes a gzipped copy of a file, for use in a task; it waits.
	Compressor interface {
		CompressFile(ctx context.Context, from, to string) error
	}
	// UsageWaiter is Usage for use in a task; it waits.
	UsageWaiter interface {
		UsageWait(ctx context.Context, name string) (bytes, inodes int64, err error)
	}
)

// Replace puts a file in place: in one step where files can do that.
func Replace(files interface {
	WriteFile(name string, data []byte, perm fs.FileMode) error
}, name string, data []byte, perm fs.FileMode) error {
	if r, ok := files.(Replacer); ok {
		return r.ReplaceFile(name, data, perm)
	}
	return files.WriteFile(name, data, perm)
}

// Names goes over the names of a directory's entries, sorted; there are none if
// it can't be read. The directory must not change meanwhile. Files that can do so
// without making a list have a method of that name.
func Names(files interface {
	ReadDir(name string) ([]fs.DirEntry, error)
}, dir string) iter.Seq[string] {
	if n, ok := files.(interface {
		Names(dir string) iter.Seq[string]
	}); ok {
		return n.Names(dir)
	}
	return func(yield func(string) bool) {
		list, err := files.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range list {
			if !yield(e.Name()) {
				return
			}
		}
	}
}
