package memfs

import (
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/loop"
)

// watch is somebody who wants to know of changes. The timer is both the callback and the memory
// of a change that was not told yet.
type watch struct {
	path  string
	timer *loop.Timer
}

// Watch has fn called after each change at or below a path, which need not
// exist yet, until stop is called. fn runs as a callback of its own after the
// step that made the change (so it must not wait), once for all the changes
// that were made before it runs; after stop it never runs.
func (f *FS) Watch(name string, fn func()) (stop func()) {
	w := &watch{path: f.full(path.Clean(name)), timer: f.vol.l.Root().NewTimer("file watch", fn)}
	f.vol.watches = append(f.vol.watches, w)
	return func() {
		w.timer.Stop()
		f.vol.watches = slices.DeleteFunc(f.vol.watches, func(o *watch) bool { return o == w })
	}
}

// WatchesAll says that Watch misses nothing (kubelet/internal/config.Exact). A real file system's
// watches may lose events, so the kubelet must rescan there.
func (f *FS) WatchesAll() {}

// touches reports whether a change at p is one at or below a watched path; of a
// whole tree also one above it. A file's own removal is a change at its path.
func touches(watched, p string, tree bool) bool {
	return below(p, watched) || tree && below(watched, p)
}

// below reports whether a clean path is dir or below it.
func below(p, dir string) bool {
	return dir == "/" || strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}
