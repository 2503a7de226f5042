package output

import (
	"cmp"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Outputs takes what containers write, to log files and to clients that are
// attached.
type Outputs struct {
	Loop       *loop.Loop
	Logs       LogSink                              // nil: nobody takes it
	Attachable bool                                 // clients can attach
	Attached   map[*records.Container][]*Attachment // nil until a client attaches
	Kernel     *podkernel.Node
}

// StartLogs begins a program's log lines, if anybody takes them.
func (r *Outputs) StartLogs(p *records.Process) {
	if len(p.Behaviour.Logs) == 0 || !r.Attachable && (r.Logs == nil || p.Container.LogPath() == "") {
		return
	}
	s := &records.LogState{Next: make([]int64, len(p.Behaviour.Logs)), Count: make([]int, len(p.Behaviour.Logs))}
	for i, l := range p.Behaviour.Logs {
		s.Next[i] = p.StartedAt + int64(l.At)
	}
	p.Logs = s
	s.Timer = r.Kernel.Powered.NewTimer("log", func() { r.logDue(p) })
	r.armLogs(p)
	r.logDue(p) // what is due at the start, also if the process ends at once
}

// OpenLog opens a container's log file, for the first time or anew.
func (r *Outputs) OpenLog(c *records.Container) error {
	file := c.LogPath()
	if file == "" || r.Logs == nil {
		return nil
	}
	if l, ok := r.Logs.(LogFiles); ok {
		return l.ReopenLog(file)
	}
	r.Logs.OpenLog(file)
	return nil
}

// CloseLog gives up the log file of a container that has ended.
func (r *Outputs) CloseLog(c *records.Container) {
	if l, ok := r.Logs.(LogFiles); ok && c.LogPath() != "" {
		l.CloseLog(c.LogPath())
	}
}

// logDue writes the lines that are due, in their order in the program.
func (r *Outputs) logDue(p *records.Process) {
	if p.Container.Process != p {
		return
	}
	s, now := p.Logs, r.Loop.UnixNano()
	for i := range p.Behaviour.Logs {
		l := &p.Behaviour.Logs[i]
		for s.Next[i] != 0 && s.Next[i] <= now {
			r.writeLog(p.Container, l.Stream, l.Text)
			s.Count[i]++
			if l.Every <= 0 || l.Count > 0 && s.Count[i] >= l.Count {
				s.Next[i] = 0
			} else {
				s.Next[i] += int64(l.Every)
			}
		}
	}
	r.armLogs(p)
}

// armLogs sets the timer to the first line that is due.
func (r *Outputs) armLogs(p *records.Process) {
	var at int64
	for _, n := range p.Logs.Next {
		if n != 0 && (at == 0 || n < at) {
			at = n
		}
	}
	if at == 0 {
		p.Logs.Timer.Stop()
		return
	}
	p.Logs.Timer.Reset(time.Duration(at - r.Loop.UnixNano()))
}

// writeLog hands a text to the sink, each line of it in CRI log format.
func (r *Outputs) writeLog(c *records.Container, stream, text string) {
	stream = cmp.Or(stream, program.StdoutName)
	if r.Attached != nil {
		r.show(nil, c, stream, []byte(strings.TrimSuffix(text, "\n")+"\n")) //nolint:staticcheck // nil: a text that is stated never waits for a slow client
	}
	file := c.LogPath()
	if r.Logs == nil || file == "" {
		return
	}
	var b []byte
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		for len(line) > maxLogLine {
			b = r.appendLog(b, stream, "P", line[:maxLogLine])
			line = line[maxLogLine:]
		}
		b = r.appendLog(b, stream, "F", line)
	}
	r.Logs.WriteLog(file, b)
}

// LogSink takes what containers write. It must not wait.
type LogSink interface {
	// WriteLog appends whole lines in CRI log format, newlines included, to the
	// file at the absolute path, which it makes if need be.
	WriteLog(path string, line []byte)
	// OpenLog makes the file at path, empty, if it is not there: when a
	// container starts, and when its log is reopened.
	OpenLog(path string)
}

// LogFiles is a LogSink with files that stay open, and that can fail to.
type LogFiles interface {
	LogSink
	// ReopenLog is OpenLog that says why it can't: the container is not
	// started, or keeps its old file.
	ReopenLog(path string) error
	// CloseLog tells that nothing more comes for path: its container has
	// ended.
	CloseLog(path string)
}
