//go:build linux

package plugins

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// Sockets are those of this machine's drivers.
type Sockets struct {
	l   *loop.Loop
	g   *loop.Group
	log func(format string, args ...any)
}

var _ pluginmanager.Sockets = (*Sockets)(nil)

// NewSockets returns the machine's, for tasks of g. log takes lines from any goroutine.
func NewSockets(g *loop.Group, log func(format string, args ...any)) *Sockets {
	return &Sockets{l: g.Loop(), g: g, log: log}
}

// Watch implements pluginmanager.Sockets by inotify, of the directory and all below it, as
// upstream's pluginwatcher/plugin_watcher.go: names that begin with a dot don't count. The
// directory is made if it is missing. It ends with the group.
func (s *Sockets) Watch(dir string, made, removed func(socket string)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // upstream's mode: drivers that aren't root look into it
		return fmt.Errorf("error (re-)creating root %s: %w", dir, err)
	}
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("failed to start plugin fsWatcher, err: %w", err)
	}
	w := &watcher{s: s, n: n, made: made, removed: removed}
	if err := w.traverse(dir); err != nil {
		_ = n.Close()
		return err
	}
	s.g.OnKill(func() { _ = n.Close() })
	go w.run()
	return nil
}

// watcher is one watch; its goroutine has it.
type watcher struct {
	s             *Sockets
	n             *fsnotify.Watcher
	made, removed func(socket string)
}

// tell has a function called on the loop, unless the kubelet has ended.
func (w *watcher) tell(fn func(socket string), socket string) {
	w.s.l.Post(func() {
		if !w.s.g.Dead() {
			fn(socket)
		}
	})
}

func (w *watcher) run() {
	for {
		select {
		case e, ok := <-w.n.Events:
			switch {
			case !ok:
				return
			case e.Has(fsnotify.Create):
				w.created(e.Name)
			case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
				w.tell(w.removed, e.Name)
			}
		case err, ok := <-w.n.Errors:
			if !ok {
				return
			}
			w.s.log("FsWatcher received error: %v", err)
		}
	}
}

// created looks at a new file. One that has gone again meanwhile is nothing.
func (w *watcher) created(path string) {
	fi, err := os.Lstat(path)
	switch {
	case err != nil || strings.HasPrefix(filepath.Base(path), "."):
	case fi.IsDir():
		if err := w.traverse(path); err != nil {
			w.s.log("Error when handling create event of %s: %v", path, err)
		}
	case isSocket(path):
		w.tell(w.made, path)
	}
}

// traverse watches a directory and those below, before it looks what is there: what comes
// between is told twice, which does no harm.
func (w *watcher) traverse(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return fmt.Errorf("error accessing path: %s error: %w", path, err)
		case err != nil:
			w.s.log("Error accessing path %s: %v", path, err)
		case d.IsDir():
			if err := w.n.Add(path); err != nil {
				return fmt.Errorf("failed to watch %s, err: %w", path, err)
			}
		case !strings.HasPrefix(d.Name(), ".") && isSocket(path):
			w.tell(w.made, path)
		}
		return nil
	})
}

// isSocket reports whether a path, or what a link there points to, is a socket.
func isSocket(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode()&os.ModeSocket != 0
}
