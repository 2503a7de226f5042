//go:build linux

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// logLine is a line of a container's log.
type logLine struct {
	at     time.Time
	stream string // "stdout" or "stderr"
	// partial tells that the line goes on in the next one.
	partial bool
	text    string
}

// parseLog reads a log file in the CRI format: time, stream, tag and text,
// separated by one blank each. A last line without newline is being written. It
// is strict where kubelets are: an error names the line, so that a runtime's
// author can find it. What was read before an error is returned with it.
func parseLog(data []byte) ([]logLine, error) {
	var out []logLine
	for n := 1; ; n++ {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return out, nil
		}
		data = rest
		f := strings.SplitN(string(line), " ", 4)
		if len(f) != 4 {
			return out, fmt.Errorf("line %d is %q, which has %d fields, not 4", n, line, len(f))
		}
		at, err := time.Parse(time.RFC3339Nano, f[0])
		if err != nil {
			return out, fmt.Errorf("line %d is %q, which does not begin with a time (RFC 3339, with nanoseconds)", n, line)
		}
		if f[1] != "stdout" && f[1] != "stderr" {
			return out, fmt.Errorf("line %d is %q, whose stream is neither stdout nor stderr", n, line)
		}
		// Tags may have more behind a colon.
		tag, _, _ := strings.Cut(f[2], ":")
		if tag != "F" && tag != "P" {
			return out, fmt.Errorf("line %d is %q, whose tag is neither F nor P", n, line)
		}
		out = append(out, logLine{at, f[1], tag == "P", f[3]})
	}
}

// readLog reads and parses a log file. It ends the check if there is no file.
func (t *T) readLog(file string) []logLine {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the log: %v", err)
	}
	lines, err := parseLog(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return lines
}

// written is what a stream of a log says, partial lines put together. A partial line at the end
// stays without a newline.
func written(lines []logLine, stream string) string {
	var b strings.Builder
	for _, l := range lines {
		if l.stream != stream {
			continue
		}
		b.WriteString(l.text)
		if !l.partial {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// stdout is what a container that has ended wrote on standard output. Its log may
// be complete a moment after its end. The runtime may still be writing when it
// reports the end, so it is read until two readings agree.
func (t *T) stdout(ctx context.Context, c *container) string {
	var out string
	for range 40 {
		lines := t.readLog(c.log())
		if out = written(lines, "stdout"); out != "" || written(lines, "stderr") != "" {
			return out
		}
		t.sleep(ctx, 25*time.Millisecond)
	}
	return out
}
