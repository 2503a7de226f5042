package memfs

import (
	"io/fs"
	"strings"
	"time"
)

// info describes an entry as it was when asked; it is a fs.FileInfo and a
// fs.DirEntry. It holds the node for Sys, which makes the inode number when it is asked.
type info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime int64
	vol   *volume
	n     *node
}

// Sys is what FileInfo.Sys returns a pointer to.
type Sys struct {
	// UID and GID own the file.
	UID, GID int
	// Ino is its inode number, unique within its file system.
	Ino uint64
	// Nlink counts its names. A directory has 1.
	Nlink int
	// Blocks is what it takes on disk, in units of 512 bytes.
	Blocks int64
}

func (i *info) Name() string               { return i.name }
func (i *info) Size() int64                { return i.size }
func (i *info) Mode() fs.FileMode          { return i.mode }
func (i *info) ModTime() time.Time         { return time.Unix(0, i.mtime).UTC() }
func (i *info) IsDir() bool                { return i.mode.IsDir() }
func (i *info) Sys() any                   { return i.vol.sys(i.n) }
func (i *info) Type() fs.FileMode          { return i.mode.Type() }
func (i *info) Info() (fs.FileInfo, error) { return i, nil }
func (i *info) String() string             { return fs.FormatFileInfo(i) }

// lastElement returns what a path ends with. It is for FileInfo.Name, which has no path in it.
func lastElement(name string) string {
	name = strings.TrimRight(name, "/")
	if name == "" {
		return "/"
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}
