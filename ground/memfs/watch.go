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
	// removed: something came or went as a whole since the last call.
	removed bool
}

// Watch has fn called after each change at or below a path, which need not
// exist yet, until stop is called. fn runs as a callback of its own after the
// step that made the change (so it must not wait), once for all the changes
// that were made before it runs; after stop it never runs.
func (f *FS) Watch(name string, fn func()) (stop func()) {
	return f.watch(name, func(*watch) { fn() })
}

// WatchRemovals is Watch that also tells whether a change may have been a removal, be
// it by a rename or a mount.
func (f *FS) WatchRemovals(name string, fn func(removed bool)) (stop func()) {
	return f.watch(name, func(w *watch) {
		removed := w.removed
		w.removed = false
		fn(removed)
	})
}

func (t *part) watch(name string, fn func(*watch)) (stop func()) {
	w := &watch{path: t.full(path.Clean(name))}
	w.timer = t.vol.l.Root().NewTimer("file watch", func() { fn(w) })
	t.vol.watches = append(t.vol.watches, w)
	return func() {
		w.timer.Stop()
		t.vol.watches = slices.DeleteFunc(t.vol.watches, func(o *watch) bool { return o == w })
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
