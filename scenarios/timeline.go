package scenarios

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/sim/trace"
)

// Timeline writes records as readable lines in fixed columns that diff well:
// step number, virtual time, node, object, what happened.
type Timeline struct {
	w     io.Writer
	start int64
	step  int
	// keep says which records become lines.
	keep func(*trace.Record) bool
	err  error
}

// newTimeline returns a timeline whose times count from start.
func newTimeline(w io.Writer, start time.Time, keep func(*trace.Record) bool) *Timeline {
	return &Timeline{w: w, start: start.UnixNano(), keep: keep}
}

// Take writes the record's line, if it is one that is kept. The step number
// counts all records that could be shown, so that -v and the short form agree.
func (t *Timeline) Take(r *trace.Record) {
	t.step++
	if t.err != nil || !t.keep(r) {
		return
	}
	_, t.err = io.WriteString(t.w, formatRecord(t.step, t.start, r)+"\n")
}

// formatRecord renders one line of a timeline.
func formatRecord(step int, start int64, r *trace.Record) string {
	node := r.Node
	if node == "" {
		node = "-"
	}
	line := fmt.Sprintf("%6d %s  %-12s %-34s %s", step, formatTime(r.At-start), node, r.Object, what(r))
	return strings.TrimRight(line, " ")
}

// formatTime is a virtual time in seconds with milliseconds, 11 wide.
func formatTime(ns int64) string {
	return fmt.Sprintf("%10.3fs", float64(ns/1e6)/1e3)
}

// what says what happened: the verb, then the fields.
func what(r *trace.Record) string {
	var b strings.Builder
	switch r.Kind {
	case trace.KindCRI, trace.KindCRIRead:
		b.WriteString("cri ")
	case trace.KindEvent:
		b.WriteString("event ")
	case trace.KindAPI:
		b.WriteString("api ")
	case trace.KindPod, trace.KindNode:
		b.WriteString("status ")
	case trace.KindProcess:
		b.WriteString("process ")
	case trace.KindAction:
		b.WriteString("> ")
	case trace.KindFault:
		b.WriteString("! ")
	case trace.KindKubelet:
		b.WriteString("kubelet ")
	case trace.KindLog:
		b.WriteString("log ")
	}
	b.WriteString(r.Verb)
	for _, f := range r.Fields {
		if f.Value == "" {
			continue
		}
		b.WriteByte(' ')
		if f.Key == "message" {
			b.WriteString(": " + f.Value)
			continue
		}
		b.WriteString(f.Key + "=" + quoteIfNeeded(f.Value))
	}
	return b.String()
}

func quoteIfNeeded(s string) string {
	if strings.ContainsAny(s, " \t\n\"") {
		return strconv.Quote(s)
	}
	return s
}

// fieldOf returns a record's field, or "".
func fieldOf(fields []trace.Field, key string) string {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}
