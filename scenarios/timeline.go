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

// Take writes the record's line, if it is one that is kept, and tells whether
// it is.
func (t *Timeline) Take(r *trace.Record) bool {
	if !t.keep(r) {
		return false
	}
	t.step++
	if t.err == nil && t.w != nil {
		_, t.err = io.WriteString(t.w, formatRecord(t.step, t.start, r)+"\n")
	}
	return true
}

// TimelineHeader names the timeline's columns.
const TimelineHeader = "  step        time  node         object                             what"

// formatRecord renders one line of a timeline.
func formatRecord(step int, start int64, r *trace.Record) string {
	node := r.Node
	if node == "" {
		node = fieldOf(r.Fields, "by")
	}
	if node == "" {
		node = "-"
	}
	line := fmt.Sprintf("%6d %s  %-12s %-34s %s", step, formatTime(r.At-start), node, r.Object, what(r))
	return strings.TrimRight(line, " ")
}

// formatTime is a virtual time in seconds with milliseconds, 11 wide.
func formatTime(ns int64) string {
	return fmt.Sprintf("%6d.%03ds", ns/1e9, ns%1e9/1e6)
}

// prefixes say what kind of act a line tells of.
func prefix(k trace.Kind) string {
	switch k {
	case trace.KindAction:
		return "> "
	case trace.KindFault:
		return "! "
	case trace.KindProcess, trace.KindCRI, trace.KindCRIRead, trace.KindAPI, trace.KindEvent, trace.KindKubelet, trace.KindLog:
		return string(k) + " "
	case trace.KindPod, trace.KindNode:
		return "status "
	}
	return ""
}

// what says what happened.
func what(r *trace.Record) string {
	var b strings.Builder
	b.WriteString(prefix(r.Kind))
	skip := "by version"
	switch r.Kind {
	case trace.KindEvent:
		fmt.Fprintf(&b, "%s %s: %s", fieldOf(r.Fields, "type"), r.Verb, fieldOf(r.Fields, "message"))
		if n := fieldOf(r.Fields, "count"); n != "1" && n != "" {
			fmt.Fprintf(&b, " (x%s)", n)
		}
		return b.String()
	case trace.KindPod:
		podStatus(&b, r.Fields)
		return b.String()
	case trace.KindNode:
		skip += " message"
	default:
		b.WriteString(r.Verb)
	}
	message := ""
	for _, f := range r.Fields {
		switch {
		case f.Value == "" || strings.Contains(skip, f.Key):
		case f.Key == "message":
			message = ": " + f.Value
		default:
			b.WriteString(" " + f.Key + "=" + quoteIfNeeded(f.Value))
		}
	}
	return strings.TrimSpace(b.String() + message)
}

// podStatus writes a pod's status: phase, readiness, containers.
func podStatus(b *strings.Builder, fields []trace.Field) {
	b.WriteString(fieldOf(fields, "phase"))
	if s := fieldOf(fields, "reason"); s != "" {
		b.WriteString(" " + s)
	}
	for _, c := range strings.Fields(fieldOf(fields, "conditions")) {
		switch {
		case c == "Ready=True":
			b.WriteString(", ready")
		case strings.HasPrefix(c, "Ready="):
			b.WriteString(", not ready")
		}
	}
	if s := fieldOf(fields, "containers"); s != "" {
		b.WriteString("; " + s)
	}
	if s := fieldOf(fields, "podIP"); s != "" {
		b.WriteString("; " + s)
	}
	if s := fieldOf(fields, "message"); s != "" {
		b.WriteString(": " + s)
	}
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

// podOf returns the pod ("namespace/name") and the container that a record's
// object names, or "".
func podOf(r *trace.Record) (pod, container string) {
	kind, name, _ := strings.Cut(r.Object, " ")
	switch kind {
	case "pod":
		return name, ""
	case "container":
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			return name[:i], name[i+1:]
		}
	}
	return "", ""
}
