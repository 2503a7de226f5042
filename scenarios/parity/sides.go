package parity

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// column is the width of one side. Two columns and the bar between them make 159 characters,
// which a wide terminal shows without wrapping.
const column = 78

// Show writes a recorded run (the first) and a replay next to each other:
// statuses, events, calls, and of a node case the node. It draws no conclusion: a difference that
// the rules allow looks like any other, since who asks for this wants to see for himself. With
// several recordings of a case the first stands for all.
func (c *Case) Show(w io.Writer, replay *Observation) error {
	rep, err := asObject(replay)
	if err != nil {
		return fmt.Errorf("case %s: %w", c.Name, err)
	}
	rec := object{}
	if len(c.runs) > 0 {
		rec = c.runs[0]
	}
	s := &sides{w: w}
	s.row("RECORDED "+c.Name, "REPLAYED")
	if !c.ofNode() {
		s.pod(rec, rep)
		return s.err
	}
	both := object{}
	for _, side := range [...]object{child(rec, "pods"), child(rep, "pods")} {
		for k := range side { //drydock:unordered fills a map
			both[k] = nil
		}
	}
	for _, name := range decode.SortedKeys(both) {
		s.row("", "")
		s.row("pod "+name, "pod "+name)
		s.pod(child(child(rec, "pods"), name), child(child(rep, "pods"), name))
	}
	s.section("node", nodeLines(rec), nodeLines(rep))
	return s.err
}

// sides writes two columns. The first error of writing is kept and all later rows are dropped, so
// that callers check it once.
type sides struct {
	w   io.Writer
	err error
}

// row writes a line of both columns, as many times as it takes for what does not
// fit. Widths are counted in runes, since messages hold other than ASCII.
func (s *sides) row(a, b string) {
	for s.err == nil {
		left, restA := split(a)
		right, restB := split(b)
		_, s.err = fmt.Fprintln(s.w, strings.TrimRight(left+strings.Repeat(" ", column-utf8.RuneCountInString(left))+" | "+right, " "))
		if a, b = restA, restB; a == "" && b == "" {
			return
		}
		a, b = indent(a), indent(b)
	}
}

// indent marks the rest of a line that did not fit.
func indent(s string) string {
	if s == "" {
		return ""
	}
	return "        " + s
}

// split cuts what fits into a column off a line.
func split(line string) (head, rest string) {
	if utf8.RuneCountInString(line) <= column {
		return line, ""
	}
	runes := []rune(line)
	at := column
	// A line is broken at a space, unless that would leave more than half of the
	// column empty.
	for i := column; i > column/2; i-- {
		if runes[i] == ' ' {
			at = i
			break
		}
	}
	// The rest loses the space that it was broken at; the mark of a continued line stands for it.
	return string(runes[:at]), strings.TrimLeft(string(runes[at:]), " ")
}

// section writes two lists side by side, line by line: nobody tries to find out
// which lines belong together. An alignment would be a judgement, and Show is asked for when the
// judgement of align is in doubt.
func (s *sides) section(title string, a, b []string) {
	s.row("", "")
	s.row(title+":", title+":")
	for i := range max(len(a), len(b)) {
		var left, right string
		if i < len(a) {
			left = a[i]
		}
		if i < len(b) {
			right = b[i]
		}
		s.row(left, right)
	}
}

// pod writes what was seen of a pod.
func (s *sides) pod(rec, rep object) {
	s.section("statuses", statusLines(rec), statusLines(rep))
	s.section("events", eventLines(rec), eventLines(rep))
	s.section("calls", callLines(rec), callLines(rep))
}

// statusLines are the statuses of a run, one a line. They are those after viewOf, which is what
// is compared: what the rules blur is shown blurred, and repeated statuses are one. Of the
// conditions only those that are not True are named; a pod's usual ones would fill every line.
func statusLines(run object) []string {
	var out []string
	for _, st := range distinct(run) {
		line := fmt.Sprintf("%6.1f %s", st.at, brief(st.view))
		conditions := child(st.view, "conditions")
		for _, k := range decode.SortedKeys(conditions) {
			if c, _ := conditions[k].([]any); len(c) > 0 && c[0] != "True" {
				line += fmt.Sprintf(" %s=%v", k, c[0])
			}
		}
		if d := st.view["deleting"]; d != nil {
			line += fmt.Sprintf(" deleting within %vs", d)
		}
		if m := text(st.view, "message"); m != "" {
			line += " {" + m + "}"
		}
		for _, k := range kinds {
			list := child(st.view, k)
			for _, n := range decode.SortedKeys(list) {
				c, _ := list[n].(object)
				line += fmt.Sprintf(" %s[ready=%v started=%v exit=%v", n, c["ready"], c["started"], c["exitCode"])
				if l := c["last"]; l != nil {
					line += fmt.Sprintf(" last=%v", l)
				}
				if m := text(c, "message"); m != "" {
					line += " {" + m + "}"
				}
				line += "]"
			}
		}
		out = append(out, line)
	}
	return out
}

// eventLines are the events of a run, one a line. An event that came again is one line: from its
// first to its last time, and how often.
func eventLines(run object) []string {
	var out []string
	for _, e := range children(run, "events") {
		out = append(out, fmt.Sprintf("%6.1f to %.1f %vx %s %s %s: %s", number(e, "at"), number(e, "last"), number(e, "count"),
			text(e, "type"), text(e, "reason"), text(e, "field"), text(e, "message")))
	}
	return out
}

// callLines are the CRI calls of a run, one a line. Arguments that differ between machines are not shown.
func callLines(run object) []string {
	var out []string
	for _, c := range children(run, "cri") {
		line := fmt.Sprintf("%6.1f %s %s", number(c, "at"), text(c, "method"), text(c, "container"))
		for _, k := range [...]string{"attempt", "timeout", "image", "error"} {
			if v := c[k]; v != nil {
				line += fmt.Sprintf(" %s=%v", k, v)
			}
		}
		out = append(out, line)
	}
	return out
}

// nodeLines are what was seen of the node. The node itself is seen by its conditions, lease
// renewals by their number alone: one renewal says no more than the next.
func nodeLines(run object) []string {
	var out []string
	for _, n := range children(run, "node") {
		line := fmt.Sprintf("%6.1f", number(n, "at"))
		conditions := child(n, "conditions")
		for _, k := range decode.SortedKeys(conditions) {
			if c, _ := conditions[k].([]any); len(c) > 1 {
				line += fmt.Sprintf(" %s=%v (%v)", k, c[0], c[1])
			}
		}
		out = append(out, line)
	}
	for _, e := range children(run, "nodeEvents") {
		out = append(out, fmt.Sprintf("%6.1f event %s %s: %s", number(e, "at"), text(e, "type"), text(e, "reason"), text(e, "message")))
	}
	out = append(out, fmt.Sprintf("%d lease renewals", len(children(run, "leases"))))
	for _, i := range imagesOf(run) {
		out = append(out, "image removed: "+i)
	}
	return out
}
