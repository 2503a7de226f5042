//go:build linux

package filesystem

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a watch waits after a change, so that a writer can finish;
// what changes meanwhile is told once.
const settle = 20 * time.Millisecond

// retry is after how long a watch that could not be set is tried again.
const retry = 10 * time.Second

// maxDirs bounds the directories of one watch. Changes in others are not seen.
const maxDirs = 4096

// Watch implements filesystem.FS by inotify: fn runs on the loop. It and stop
// are for use on the loop. Where inotify can't be had (too many watches), fn is
// called every ten seconds instead.
func (f *FS) Watch(path string, fn func()) (stop func()) {
	w := &watch{path: filepath.Clean(path), done: make(chan struct{})}
	stopped := false
	w.tell = func() {
		f.l.Post(func() {
			if !stopped {
				fn()
			}
		})
	}
	w.running.Go(w.run)
	return func() {
		if !stopped {
			stopped = true
			close(w.done)
		}
	}
}

// watch is one watch; its goroutine has all of it but done.
type watch struct {
	path    string
	tell    func()
	done    chan struct{}
	running sync.WaitGroup
	// dirs are the directories that inotify watches.
	dirs map[string]bool
}

func (w *watch) run() {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		w.poll()
		return
	}
	defer func() { _ = n.Close() }()
	w.dirs = map[string]bool{}
	if w.cover(n) {
		w.tell() // somebody may have made it since the caller looked
	}
	var (
		wait  <-chan time.Time
		again <-chan time.Time
	)
	for {
		if !w.dirs[filepath.Dir(w.path)] && again == nil {
			again = time.After(retry) // a parent is missing, or can't be watched
		}
		select {
		case <-w.done:
			return
		case e, ok := <-n.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod || !w.concerns(e.Name) {
				continue
			}
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				delete(w.dirs, e.Name) // inotify has forgotten it, too
				_ = n.Remove(e.Name)
			}
			if wait == nil {
				wait = time.After(settle)
			}
		case _, ok := <-n.Errors: // events were lost
			if !ok {
				return
			}
			if wait == nil {
				wait = time.After(settle)
			}
		case <-wait:
			wait = nil
			w.cover(n)
			w.tell()
		case <-again:
			again = nil
			if w.cover(n) {
				w.tell()
			}
		}
	}
}

// poll stands in for inotify.
func (w *watch) poll() {
	t := time.NewTicker(retry)
	defer t.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-t.C:
			w.tell()
		}
	}
}

// concerns reports whether a change at a path is one of what is watched, or of a
// directory on the way to it.
func (w *watch) concerns(name string) bool {
	name = filepath.Clean(name)
	return below(name, w.path) || below(w.path, name)
}

// below reports whether a clean path is dir or below it.
func below(p, dir string) bool {
	return p == dir || dir == "/" || len(p) > len(dir) && p[:len(dir)] == dir && p[len(dir)] == '/'
}

// cover has inotify watch the directory that has the path, or the nearest above
// it that exists, and all directories at and below the path. It reports whether
// there was anything new to watch.
func (w *watch) cover(n *fsnotify.Watcher) (added bool) {
	add := func(dir string) bool {
		if w.dirs[dir] || len(w.dirs) >= maxDirs || n.Add(dir) != nil {
			return false
		}
		w.dirs[dir], added = true, true
		return true
	}
	for {
		before := added
		added = false
		parent := filepath.Dir(w.path)
		for {
			if info, err := os.Stat(parent); err == nil && info.IsDir() {
				add(parent)
				break
			}
			up := filepath.Dir(parent)
			if up == parent {
				break
			}
			parent = up
		}
		if info, err := os.Stat(w.path); err == nil && info.IsDir() {
			add(w.path) // also where it is a link, into which a walk does not go
			_ = filepath.WalkDir(w.path, func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && p != w.path {
					add(p)
				}
				return nil
			})
		}
		// What was made in a directory before it was watched was not told of.
		if !added || len(w.dirs) >= maxDirs {
			return before || added
		}
	}
}
