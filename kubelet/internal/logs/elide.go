package logs

import (
	"iter"
	"strings"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/paths"
)

// elided leaves out passes while no log is near its limit or missing, and the
// runtime answers: a look at the files, which is made only if one has changed since
// the last.
type elided struct {
	m       *Manager
	runtime Foreteller
	changes loop.Version // grows with each change below Dir, and when the runtime fails
	reads   [1]*loop.Version
	// changed and removed are paths at or below which logs may have grown since the last look
	// for one that is too big, and gone since the last look at those of running containers; "":
	// none.
	changed, removed string
}

// Foreteller is a runtime client that knows, without a call, what a pass would be
// told.
type Foreteller interface {
	// Untroubled reports whether calls of these CRI methods would be answered by
	// what they ask for.
	Untroubled(methods ...string) bool
	// OnChange has fn called when that may have changed.
	OnChange(fn func())
	// RunningLogs are the logs of the containers that run, of those pods at least whose logs
	// are below a clean path, or above it.
	RunningLogs(path string) iter.Seq[string]
}

// elide has the manager's passes elided.
func elide(m *Manager) {
	g := m.o.Group
	r, ok := m.o.Runtime.(Foreteller)
	if !ok || !g.Loop().Elides() {
		return
	}
	e := &elided{m: m, runtime: r, changed: m.o.Dir, removed: m.o.Dir}
	e.reads[0] = &e.changes
	told := func(changed, removed string) {
		e.changed, e.removed = paths.Around(e.changed, changed), paths.Around(e.removed, removed)
		e.changes.Grow()
	}
	if f, ok := m.o.FS.(pathWatcher); ok {
		g.OnKill(f.WatchPaths(m.o.Dir, told))
	} else {
		g.OnKill(m.o.FS.Watch(m.o.Dir, func() { told(m.o.Dir, m.o.Dir) }))
	}
	r.OnChange(func() {
		if !e.untroubled() {
			e.changes.Grow()
		}
	})
	m.passes.Elide(e)
}

// untroubled reports whether the calls of a pass would be answered.
func (e *elided) untroubled() bool { return e.runtime.Untroubled("ListContainers", "ContainerStatus") }

// pathWatcher is a file system that says where changes were, and where those that may be
// removals; "": none is.
type pathWatcher interface {
	WatchPaths(path string, fn func(changed, removed string)) (stop func())
}

// anyMissing looks for the log of a running container that is gone.
func (e *elided) anyMissing() bool {
	if e.removed == "" {
		return false
	}
	for path := range e.runtime.RunningLogs(e.removed) {
		if _, err := e.m.o.FS.Stat(path); err != nil {
			return true
		}
	}
	e.removed = ""
	return false
}

// Reads implements loop.Elider.
func (e *elided) Reads() []*loop.Version { return e.reads[:] }

// Until implements loop.Elider.
func (e *elided) Until(now int64) int64 {
	if e.m.failed || e.m.listing || e.m.workers > 0 || !e.untroubled() || e.anyTooBig() || e.anyMissing() {
		return now
	}
	return loop.Forever
}

// LeftOut implements loop.Elider.
func (e *elided) LeftOut(int64, int64) {}

// place is the directory that all changes were in, and how many levels of directories logs lie
// below it: two below that of all pods.
func (e *elided) place() (dir string, levels int) {
	dir, levels = e.m.o.Dir, 2
	rest, ok := strings.CutPrefix(e.changed, dir+"/")
	for ok && levels > 0 {
		var name string
		if name, rest, ok = strings.Cut(rest, "/"); name == "" {
			break
		}
		dir, levels = dir+"/"+name, levels-1
	}
	return dir, levels
}

// finder is a file system that can look through directories without listing them.
type finder interface {
	// AnyFile reports whether match holds for something that lies so many levels
	// of directories below dir; known is false if it can't tell.
	AnyFile(dir string, levels int, match func(name string, size int64) bool) (found, known bool)
}

// anyTooBig looks for a log that is to be rotated, whoever writes it. There was none before the
// last changes.
func (e *elided) anyTooBig() bool {
	if e.changed == "" {
		return false
	}
	found := e.findTooBig()
	if !found {
		e.changed = ""
	}
	return found
}

func (e *elided) findTooBig() bool {
	if f, ok := e.m.o.FS.(finder); ok {
		dir, levels := e.place()
		if found, known := f.AnyFile(dir, levels, e.m.tooBig); known {
			return found
		}
	}
	for _, pod := range e.m.readDir(e.m.o.Dir) {
		podDir := e.m.o.Dir + "/" + pod.Name()
		for _, c := range e.m.readDir(podDir) {
			if !c.IsDir() {
				continue
			}
			for _, f := range e.m.readDir(podDir + "/" + c.Name()) {
				if info, err := f.Info(); err == nil && e.m.tooBig(f.Name(), info.Size()) {
					return true
				}
			}
		}
	}
	return false
}
