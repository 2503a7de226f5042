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

// startLogs begins a program's log lines, if anybody takes them.
func (r *Runtime) startLogs(p *process) {
	if len(p.b.Logs) == 0 || r.opts.Streaming == nil && (r.opts.Logs == nil || p.c.logPath() == "") {
		return
	}
	s := &logState{next: make([]int64, len(p.b.Logs)), count: make([]int, len(p.b.Logs))}
	for i, l := range p.b.Logs {
		s.next[i] = p.startedAt + int64(l.At)
	}
	p.logs = s
	s.timer = r.processes.NewTimer("log", func() { r.logDue(p) })
	r.armLogs(p)
	r.logDue(p) // what is due at the start, also if the process ends at once
}

// openLog opens a container's log file, for the first time or anew.
func (r *Runtime) openLog(c *container) error {
	file := c.logPath()
	if file == "" || r.opts.Logs == nil {
		return nil
	}
	if l, ok := r.opts.Logs.(LogFiles); ok {
		return l.ReopenLog(file)
	}
	r.opts.Logs.OpenLog(file)
	return nil
}

// closeLog gives up the log file of a container that has ended.
func (r *Runtime) closeLog(c *container) {
	if l, ok := r.opts.Logs.(LogFiles); ok && c.logPath() != "" {
		l.CloseLog(c.logPath())
	}
}

// logDue writes the lines that are due, in their order in the program.
func (r *Runtime) logDue(p *process) {
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

func (r *Runtime) armLogs(p *process) {
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
func (r *Runtime) writeLog(c *container, stream, text string) {
	if stream == "" {
		stream = stdoutName
	}
	if r.attached != nil {
		r.show(nil, c, stream, []byte(strings.TrimSuffix(text, "\n")+"\n"))
	}
	file := c.logPath()
	if r.opts.Logs == nil || file == "" {
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
	r.opts.Logs.WriteLog(file, b)
}
