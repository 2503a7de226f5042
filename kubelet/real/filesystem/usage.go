//go:build linux

package filesystem

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drydock-sim/drydock/ground/loop"
)

// blockSize is the unit of a file's blocks in stat(2), whatever the file
// system's own.
const blockSize = 512

// file is what tells files apart.
type file struct{ dev, inode uint64 }

// Usage implements filesystem.FS. It reads the whole tree, which takes some 20 µs
// for a file that is cached (BenchmarkUsage), and much longer for one that is
// not: who is on a loop calls UsageWait.
func (f *FS) Usage(name string) (bytes, inodes int64) {
	bytes, inodes, _ = usage(context.Background(), name)
	return bytes, inodes
}

// UsageWait implements filesystem.UsageWaiter: the tree is read on a goroutine.
func (f *FS) UsageWait(ctx context.Context, name string) (bytes, inodes int64, err error) {
	type sum struct{ bytes, inodes int64 }
	s, err := loop.Await(ctx, func(ctx context.Context) (sum, error) {
		b, i, err := usage(ctx, name)
		return sum{b, i}, err
	})
	return s.bytes, s.inodes, err
}

// usage sums up a tree as du(1) with -x does: blocks, a file with several names
// once, nothing of other file systems. What goes meanwhile is left out; the error
// is the context's.
func usage(ctx context.Context, name string) (bytes, inodes int64, err error) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, 0, nil // nothing there takes nothing
	}
	top, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), 1, nil
	}
	links := map[file]bool{}
	err = filepath.WalkDir(name, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // it can't be read, or has gone
		}
		info, err := d.Info()
		if err != nil {
			return nil // it has gone
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if st.Dev != top.Dev {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if st.Nlink > 1 && !d.IsDir() {
			id := file{uint64(st.Dev), st.Ino}
			if links[id] {
				return nil
			}
			links[id] = true
		}
		bytes += st.Blocks * blockSize
		inodes++
		return nil
	})
	return bytes, inodes, err
}

// mountBelow returns a directory below a path that is of another file system;
// "" if there is none. Files that are mounted can't be removed anyway.
func mountBelow(name string, info fs.FileInfo) string {
	top, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	found := ""
	_ = filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || p == name {
			return nil // the removal will tell
		}
		info, err := d.Info()
		if err != nil {
			return nil // it has gone
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Dev != top.Dev {
			found = p
			return fs.SkipAll
		}
		return nil
	})
	return found
}
