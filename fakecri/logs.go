package fakecri

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// logState is the progress of a stated program's log lines.
type logState struct {
	timer *loop.Timer
	next  []int64 // per line of the behaviour: when it is due; 0 for no more
	count []int
}

func (s *logState) stop() {
	if s != nil {
		s.timer.Stop()
	}
}

// outputs takes what containers write, to log files and to clients that are
// attached.
type outputs struct {
	l          *loop.Loop
	logs       LogSink                      // nil: nobody takes it
	attachable bool                         // clients can attach
	attached   map[*container][]*attachment // nil until a client attaches
	kern       *nodeKernel
}

// startLogs begins a program's log lines, if anybody takes them.
func (r *outputs) startLogs(p *process) {
	if len(p.b.Logs) == 0 || !r.attachable && (r.logs == nil || p.c.logPath() == "") {
		return
	}
	s := &logState{next: make([]int64, len(p.b.Logs)), count: make([]int, len(p.b.Logs))}
	for i, l := range p.b.Logs {
		s.next[i] = p.startedAt + int64(l.At)
	}
	p.logs = s
	s.timer = r.kern.powered.NewTimer("log", func() { r.logDue(p) })
	r.armLogs(p)
	r.logDue(p) // what is due at the start, also if the process ends at once
}

// openLog opens a container's log file, for the first time or anew.
func (r *outputs) openLog(c *container) error {
	file := c.logPath()
	if file == "" || r.logs == nil {
		return nil
	}
	if l, ok := r.logs.(LogFiles); ok {
		return l.ReopenLog(file)
	}
	r.logs.OpenLog(file)
	return nil
}

// closeLog gives up the log file of a container that has ended.
func (r *outputs) closeLog(c *container) {
	if l, ok := r.logs.(LogFiles); ok && c.logPath() != "" {
		l.CloseLog(c.logPath())
	}
}

// logDue writes the lines that are due, in their order in the program.
func (r *outputs) logDue(p *process) {
	if p.c.process != p {
		return
	}
	s, now := p.logs, r.l.UnixNano()
	for i := range p.b.Logs {
		l := &p.b.Logs[i]
		for s.next[i] != 0 && s.next[i] <= now {
			r.writeLog(p.c, l.Stream, l.Text)
			s.count[i]++
			if l.Every <= 0 || l.Count > 0 && s.count[i] >= l.Count {
				s.next[i] = 0
			} else {
				s.next[i] += int64(l.Every)
			}
		}
	}
	r.armLogs(p)
}

func (r *outputs) armLogs(p *process) {
	var at int64
	for _, n := range p.logs.next {
		if n != 0 && (at == 0 || n < at) {
			at = n
		}
	}
	if at == 0 {
		p.logs.timer.Stop()
		return
	}
	p.logs.timer.Reset(time.Duration(at - r.l.UnixNano()))
}

// writeLog hands a text to the sink, each line of it in CRI log format.
func (r *outputs) writeLog(c *container, stream, text string) {
	if stream == "" {
		stream = stdoutName
	}
	if r.attached != nil {
		r.show(nil, c, stream, []byte(strings.TrimSuffix(text, "\n")+"\n"))
	}
	file := c.logPath()
	if r.logs == nil || file == "" {
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
	r.logs.WriteLog(file, b)
}
