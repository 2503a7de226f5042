//go:build linux

package server

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/drydock-sim/drydock/fakecri"
)

// logFiles are the log files of containers, on this machine's disk. A file
// stays open from the start of its container to the end; who renames it asks
// for another. Only the loop's goroutine calls it. The format of lines is the runtime's business:
// this only appends bytes. After Close open is nil.
type logFiles struct {
	open map[string]*os.File
}

var _ fakecri.LogFiles = (*logFiles)(nil)

// newLogFiles has no file open.
func newLogFiles() *logFiles { return &logFiles{open: map[string]*os.File{}} }

// apply has the runtime write its containers' logs here.
func (l *logFiles) apply(o *fakecri.Options) { o.Logs = l }

// logMode is that of a log file, as containerd's.
const logMode = 0o640

// WriteLog implements fakecri.LogSink. What can't be written is lost, as with
// a full disk. It is called for each line, on the loop.
func (l *logFiles) WriteLog(path string, line []byte) {
	if l.open[path] == nil && l.ReopenLog(path) != nil {
		return
	}
	_, _ = l.open[path].Write(line)
}

// OpenLog implements fakecri.LogSink.
func (l *logFiles) OpenLog(path string) { _ = l.ReopenLog(path) }

// ReopenLog implements fakecri.LogFiles. The kubelet renames a file that has become too big and
// calls ReopenContainerLog: the new file must be open before the old one is closed, so that no
// line is lost.
func (l *logFiles) ReopenLog(path string) error {
	if l.open == nil {
		return os.ErrClosed
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("failed to open log file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, logMode)
	if err != nil {
		return fmt.Errorf("failed to open log file: %w", err)
	}
	l.CloseLog(path)
	l.open[path] = f
	return nil
}

// CloseLog implements fakecri.LogFiles.
func (l *logFiles) CloseLog(path string) {
	if f := l.open[path]; f != nil {
		_ = f.Close()
		delete(l.open, path)
	}
}

// Close closes all files; nothing is written from then on.
func (l *logFiles) Close() {
	for _, f := range l.open {
		_ = f.Close()
	}
	l.open = nil
}
