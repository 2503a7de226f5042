package logs

import "github.com/drydock-sim/drydock/ground/loop"

// elided leaves out passes while no log is near its limit: a look at the files,
// which is made only if one has changed since the last.
type elided struct {
	m     *Manager
	files loop.Version // grows with each change below Dir
	reads [1]*loop.Version
}

// elide has the manager's passes elided.
func elide(m *Manager) {
	g := m.o.Group
	if !g.Loop().Elides() {
		return
	}
	e := &elided{m: m}
	e.reads[0] = &e.files
	g.OnKill(m.o.FS.Watch(m.o.Dir, e.files.Grow))
	m.passes.Elide(e)
}

// Reads implements loop.Elider.
func (e *elided) Reads() []*loop.Version { return e.reads[:] }

// Until implements loop.Elider.
func (e *elided) Until(now int64) int64 {
	if e.m.failed || e.m.listing || e.m.workers > 0 || e.anyTooBig() {
		return now
	}
	return loop.Forever
}

// LeftOut implements loop.Elider.
func (e *elided) LeftOut(int64, int64) {}

// finder is a file system that can look through directories without listing them.
type finder interface {
	// AnyFile reports whether match holds for something that lies so many levels
	// of directories below dir; known is false if it can't tell.
	AnyFile(dir string, levels int, match func(name string, size int64) bool) (found, known bool)
}

// anyTooBig looks for a log that is to be rotated, whoever writes it.
func (e *elided) anyTooBig() bool {
	if f, ok := e.m.o.FS.(finder); ok {
		// Below the directories of pods and containers.
		if found, known := f.AnyFile(e.m.o.Dir, 2, e.m.tooBig); known {
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
