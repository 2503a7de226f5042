package output

import (
	"bytes"
	"context"
	"io"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// maxLogLine is how long a line of a log file can be: what is longer is split
// into partial ones (containerd's max_container_log_line_size).
const maxLogLine = 16 * 1024

// Stream is stdout or stderr of a container: what is written to it goes to
// the log file, line by line, in CRI log format.
type Stream struct {
	R    *Outputs
	C    *records.Container
	Name string
	rest []byte // of a line that has not ended
	tail []byte // what was written last, for LastLine
}

// Read finds nothing: it is the write end of a pipe.
func (s *Stream) Read(context.Context, []byte) (int, error) { return 0, io.EOF }

// Close does nothing: the stream ends with the container.
func (s *Stream) Close() error { return nil }

// Dup returns the same stream.
func (s *Stream) Dup() kernel.File { return s }

// Write takes b.
func (s *Stream) Write(ctx context.Context, b []byte) (int, error) {
	if s.Name == program.StderrName {
		s.remember(b)
	}
	if s.R.Logs != nil && s.C.LogPath() != "" {
		s.write(b)
	}
	if s.R.Attached != nil {
		s.R.show(ctx, s.C, s.Name, b)
	}
	return len(b), nil
}

// maxTail is how much of stderr is remembered.
const maxTail = 256

// remember keeps the end of what was written.
func (s *Stream) remember(b []byte) {
	s.tail = append(s.tail, b[max(0, len(b)-maxTail):]...)
	if over := len(s.tail) - maxTail; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
}

// LastLine is the last line that was written, without what is more than maxTail
// before its end.
func (s *Stream) LastLine() string {
	t := bytes.TrimRight(s.tail, " \t\r\n")
	return strings.ToValidUTF8(string(t[bytes.LastIndexByte(t, '\n')+1:]), "?")
}

// write cuts what was written into lines and hands on those that have ended.
func (s *Stream) write(b []byte) {
	var out []byte
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		s.rest = append(s.rest, part...)
		for len(s.rest) > maxLogLine {
			out = s.R.appendLog(out, s.Name, "P", string(s.rest[:maxLogLine]))
			s.rest = append(s.rest[:0], s.rest[maxLogLine:]...)
		}
		if i < 0 {
			break
		}
		out = s.R.appendLog(out, s.Name, "F", string(s.rest))
		s.rest = s.rest[:0]
		b = b[i+1:]
	}
	if out != nil {
		s.R.Logs.WriteLog(s.C.LogPath(), out)
	}
}

// Flush writes what is left of a line without an end, which is a partial one.
func (s *Stream) Flush() {
	if len(s.rest) > 0 {
		s.R.Logs.WriteLog(s.C.LogPath(), s.R.appendLog(nil, s.Name, "P", string(s.rest)))
		s.rest = nil
	}
}

// appendLog appends a line in CRI log format, with the time that clients have.
func (r *Outputs) appendLog(b []byte, stream, tag string, line string) []byte {
	if b == nil {
		b = make([]byte, 0, 48+len(line))
	}
	b = time.Unix(0, r.Loop.Wall(r.Loop.UnixNano())).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, ' ')
	b = append(b, stream...)
	b = append(b, ' ')
	b = append(b, tag...)
	b = append(b, ' ')
	b = append(b, line...)
	return append(b, '\n')
}
