package memfs

import (
	"io/fs"
	"strings"
	"time"
)

// info describes an entry as it was when asked; it is a fs.FileInfo and a
// fs.DirEntry.
type info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime int64
}

func (f *FS) infoOf(n *node) info {
	s := f.shown(n)
	i := info{name: n.name, mode: s.mode, mtime: s.mtime}
	if b := s.body; b != nil {
		i.size = int64(len(b.data) + len(b.target))
	}
	return i
}

func (i *info) Name() string               { return i.name }
func (i *info) Size() int64                { return i.size }
func (i *info) Mode() fs.FileMode          { return i.mode }
func (i *info) ModTime() time.Time         { return time.Unix(0, i.mtime).UTC() }
func (i *info) IsDir() bool                { return i.mode.IsDir() }
func (i *info) Sys() any                   { return nil }
func (i *info) Type() fs.FileMode          { return i.mode.Type() }
func (i *info) Info() (fs.FileInfo, error) { return i, nil }
func (i *info) String() string             { return fs.FormatFileInfo(i) }

// lastElement returns what a path ends with.
func lastElement(name string) string {
	name = strings.TrimRight(name, "/")
	if name == "" {
		return "/"
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}
