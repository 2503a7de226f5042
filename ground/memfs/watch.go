package memfs

import (
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/loop"
)

// watch is somebody who wants to know of changes.
type watch struct {
	path  string
	timer *loop.Timer
}

// Watch has fn called after each change at or below a path, which need not
// exist yet, until stop is called. fn runs as a callback of its own after the
// step that made the change (so it must not wait), once for all the changes
// that were made before it runs; after stop it never runs.
func (f *FS) Watch(name string, fn func()) (stop func()) {
	all := f.all()
	w := &watch{path: f.full(path.Clean(name)), timer: f.l.Root().NewTimer("file watch", fn)}
	all.watches = append(all.watches, w)
	return func() {
		w.timer.Stop()
		all.watches = slices.DeleteFunc(all.watches, func(o *watch) bool { return o == w })
	}
}

// WatchesAll says that Watch misses nothing (kubelet/internal/config.Exact).
func (f *FS) WatchesAll() {}

// changed tells the watches of a change at a canonical path; tree says that
// what is below it came or went with it.
func (f *FS) changed(p string, tree bool) {
	if f.whole != nil {
		f.whole.changed(f.full(p), tree)
		return
	}
	for _, w := range f.watches {
		if w.timer.Set() {
			continue
		}
		if touches(w.path, p, tree) || f.symlinks > 0 && f.touchesThroughLink(w.path, p, tree) {
			w.timer.Reset(0)
		}
	}
}

func touches(watched, p string, tree bool) bool {
	return below(p, watched) || tree && below(watched, p)
}

// touchesThroughLink is touches for a watched path with symbolic links in it.
func (f *FS) touchesThroughLink(watched, p string, tree bool) bool {
	pl, errno := f.walk(watched, true)
	return errno == 0 && pl.path != watched && touches(pl.path, p, tree)
}

// below tells whether a clean path is dir or below it.
func below(p, dir string) bool {
	return dir == "/" || strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}
