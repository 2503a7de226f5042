package kernel

import (
	"io/fs"
	"time"
)

// tree is what can be changed of the files of a mount: a memfs.FS, with the
// paths that it has, or a directory of the machine's.
type tree interface {
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
