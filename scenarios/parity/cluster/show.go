package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Show writes a recorded run (the first) and a replay, thing by thing: what was recorded after <, what
// was replayed after >. It draws no conclusion.
func (c *Case) Show(w io.Writer, replay *Observation) error {
	data, err := json.Marshal(replay)
	if err != nil {
		return fmt.Errorf("case %s: %w", c.Name, err)
	}
	var rep object
	if err := json.Unmarshal(data, &rep); err != nil {
		return fmt.Errorf("case %s: %w", c.Name, err)
	}
	rec := object{}
	if len(c.runs) > 0 {
		rec = c.runs[0].object
	}
	out := func(format string, args ...any) {
		if err == nil { // the first error of writing ends it
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	for _, field := range []string{"objects", "nodes", "endpoints"} {
		a, b := child(rec, field), child(rep, field)
		for _, k := range keysOfBoth(a, b) {
			out("%s %s\n", field, k)
			for _, row := range children(a, k) {
				out("  < %s\n", line(row))
			}
			for _, row := range children(b, k) {
				out("  > %s\n", line(row))
			}
		}
	}
	for _, field := range []string{"pods", "events", "responses"} {
		out("%s\n", field)
		for _, x := range children(rec, field) {
			out("  < %s\n", dump(x))
		}
		for _, x := range children(rep, field) {
			out("  > %s\n", dump(x))
		}
	}
	return err
}

// line is a status, its time first.
func line(row object) string {
	s := fmt.Sprintf("%8.2f", number(row, "at"))
	for _, k := range slices.DeleteFunc(decode.SortedKeys(row), func(k string) bool { return k == "at" }) {
		s += " " + k + "=" + dump(row[k])
	}
	return s
}
