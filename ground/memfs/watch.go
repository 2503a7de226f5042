package memfs

import (
	"path"
	"slices"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/paths"
)

// watch is somebody who wants to know of changes. The timer is both the callback and the memory
// of a change that was not told yet.
type watch struct {
	path  string
	timer *loop.Timer
	// changed is the directory or file at or below which something did since the last call,
	// removed the one below which something came or went as a whole; "": nothing.
	changed, removed string
}

// Watch has fn called after each change at or below a path, which need not
// exist yet, until stop is called. fn runs as a callback of its own after the
// step that made the change (so it must not wait), once for all the changes
// that were made before it runs; after stop it never runs.
func (f *FS) Watch(name string, fn func()) (stop func()) {
	return f.watch(name, func(w *watch) {
		w.changed, w.removed = "", ""
		fn()
	})
}

// WatchPaths is Watch that also tells where it was: all that changed is at or below changed, all
// that may have been removed, be it by a rename or a mount, at or below removed; "": nothing. Both
// are paths of the whole file system.
func (f *FS) WatchPaths(name string, fn func(changed, removed string)) (stop func()) {
	return f.watch(name, func(w *watch) {
		changed, removed := w.changed, w.removed
		w.changed, w.removed = "", ""
		fn(changed, removed)
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
	return paths.Below(p, watched) || tree && paths.Below(watched, p)
}
