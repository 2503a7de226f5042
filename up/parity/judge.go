package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Difference is where an answer is not the recorded one.
type Difference struct {
	// Request is the number of the case's request, from 0; What is what it did.
	Request int
	What    string
	// Path is that of the field in the answer, such as body.metadata.name.
	Path      string
	Want, Got any
}

func (d Difference) String() string {
	path := d.Path
	if path == "" {
		path = "(whole)"
	}
	return fmt.Sprintf("response %d (%s) %s wanted %s got %s", d.Request, d.What, path, short(d.Want), short(d.Got))
}

// absent stands for a field that is not there.
const absent = "(absent)"

// short is a value on a line.
func short(v any) string {
	if v == any(absent) {
		return absent
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // placeholders have angle brackets
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	s := strings.TrimSuffix(b.String(), "\n")
	if len(s) <= 300 {
		return s
	}
	return s[:140] + " ... " + s[len(s)-140:]
}

// Judge returns how what was seen differs from what a case's responses say.
func Judge(c *Case, seen *Seen) []Difference {
	j := &judge{bound: newBound(seen)}
	for i := range c.Requests {
		q := &c.Requests[i]
		j.at, j.bound.at = i, i
		j.what = q.String()
		j.build = q.Path == "/version"
		j.match(canonical(c.Responses[i]), canonical(keep(seen.Answers[i], q.Keep)), "")
	}
	for _, p := range j.bound.versions() {
		j.at, j.what = p.request, c.Requests[p.request].String()
		j.differ(p.path, p.want, p.got)
	}
	slices.SortStableFunc(j.found, func(a, b Difference) int { return a.Request - b.Request })
	return j.found
}

// judge compares the answers of a case.
type judge struct {
	at    int
	what  string
	build bool // the answer is of /version
	bound *bound
	found []Difference
}

func (j *judge) differ(path string, want, got any) {
	j.found = append(j.found, Difference{j.at, j.what, path, want, got})
}

// match compares a value with the recorded one.
func (j *judge) match(want, got any, path string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		j.object(w, g, path)
		return
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range max(len(w), len(g)) {
			at := join(path, strconv.Itoa(i))
			switch {
			case i >= len(g):
				j.differ(at, w[i], absent)
			case i >= len(w):
				j.differ(at, absent, g[i])
			default:
				j.match(w[i], g[i], at)
			}
		}
		return
	case string:
		if j.build && w == "<"+typeOf(got)+">" {
			return
		}
		if n, ok := got.(json.Number); ok && strings.HasPrefix(w, "<nodePort:") {
			got = n.String()
		}
		if g, ok := got.(string); ok && j.bound.text(w, g, path) {
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && equal(w, g) {
			return
		}
	default: // true, false, null
		if want == got {
			return
		}
	}
	j.differ(path, want, got)
}

func (j *judge) object(want, got map[string]any, path string) {
	keys := make([]string, 0, len(want)+len(got))
	for k := range want {
		keys = append(keys, k)
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		w, wanted := want[k]
		g, ok := got[k]
		switch {
		case !ok:
			j.differ(join(path, k), w, absent)
		case !wanted:
			j.differ(join(path, k), absent, g)
		default:
			j.match(w, g, join(path, k))
		}
	}
	// An object that has been made keeps its time.
	if born := text(got["creationTimestamp"]); born != "" && text(got["uid"]) != "" {
		if same := j.bound.born(text(got["uid"]), born); same == (want["creationTimestamp"] == "<time:changed>") {
			j.differ(join(path, "creationTimestamp"), want["creationTimestamp"], born)
		}
	}
}

func join(path, k string) string {
	if path == "" {
		return k
	}
	return path + "." + k
}

// equal compares numbers: 1 and 1.0 are the same.
func equal(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err := a.Float64()
	y, err2 := b.Float64()
	return err == nil && err2 == nil && x == y
}

// canonical returns a value with lists in order whose order doesn't count.
func canonical(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, v := range x {
			out[k] = ordered(k, canonical(v))
		}
		if m, ok := x["message"].(string); ok && x["kind"] == "Status" {
			out["message"] = message(m, x)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = canonical(x[i])
		}
		return out
	}
	return v
}

// ordered sorts a field's list if its order doesn't count.
func ordered(field string, v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	var by func(any) string
	switch field {
	case "causes", "Warning":
		by = func(v any) string {
			b, err := json.Marshal(v)
			if err != nil {
				return fmt.Sprint(v)
			}
			return string(b)
		}
	case "managedFields":
		by = func(v any) string {
			m := object(v)
			return strings.Join([]string{text(m["operation"]), text(m["subresource"]), text(m["manager"]), text(m["apiVersion"])}, "\x00")
		}
	default:
		return v
	}
	slices.SortStableFunc(l, func(a, b any) int { return strings.Compare(by(a), by(b)) })
	return l
}

// message returns a Status's message with what lists its causes in order.
func message(m string, status map[string]any) string {
	for _, sep := range []string{" is invalid: [", " is forbidden: ["} {
		head, tail, ok := strings.Cut(m, sep)
		if !ok || !strings.HasSuffix(tail, "]") {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(tail, "]"), ", ")
		slices.Sort(parts)
		if causes := list(object(status["details"])["causes"]); causes != nil {
			var of []string
			for _, c := range causes {
				of = append(of, text(object(c)["field"])+": "+text(object(c)["message"]))
			}
			slices.Sort(of)
			split := strings.Split(strings.Join(slices.Compact(of), ", "), ", ")
			slices.Sort(split)
			if slices.Equal(split, parts) {
				return head + sep + "the causes]"
			}
		}
		if sep == " is forbidden: [" {
			return head + sep + strings.Join(parts, ", ") + "]"
		}
	}
	return m
}
