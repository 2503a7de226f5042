package cluster

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// rules are what a case says of how it is compared: which nodes are interchangeable, and how exact
// times are.
type rules struct {
	lifecycle bool    // a case of node lifecycle, whose controller looks now and then
	duration  float64 // seconds
	many      bool    // over 50 pods share a client's rate limit
	gc        bool    // pods are collected, for which is looked each 20 s
	racy      []string
	group     map[string]string // what stands for a node: its own name if no other is like it
	alike     *regexp.Regexp    // the names of nodes that have others like them; nil if there is none
}

const zoneLabel = "topology.kubernetes.io/zone"

// newRules reads a case as it was written.
func newRules(raw object) *rules {
	r := &rules{lifecycle: text(raw, "kind") == "nodelifecycle", duration: number(raw, "duration"), group: map[string]string{}}
	for _, x := range list(raw, "racy") {
		s, _ := x.(string)
		r.racy = append(r.racy, s)
	}
	actions := children(raw, "actions")
	for _, a := range actions {
		r.many = r.many || number(child(child(a, "object"), "spec"), "replicas") > 50
		r.gc = r.gc || strings.Contains(dump(a), "out-of-service")
	}
	for _, recorded := range children(raw, "runs") {
		for _, p := range children(recorded, "pods") {
			if t := list(p, "disruptionTarget"); len(t) > 1 && t[1] == "DeletionByPodGC" {
				r.gc = true
			}
		}
	}
	r.groupNodes(children(raw, "nodes"), actions)
	return r
}

// groupNodes finds the nodes that are interchangeable: those of one shape, in zones of one shape, to
// which the same is done, and that nothing names.
func (r *rules) groupNodes(groups, actions []object) {
	var names []string
	shape, zone := map[string]string{}, map[string]string{}
	for _, g := range groups {
		labels, rest := object{}, object{}
		for k, v := range child(g, "labels") { //drydock:unordered fills a map
			if k != zoneLabel {
				labels[k] = v
			}
		}
		for k, v := range g { //drydock:unordered fills a map
			if k != "name" && k != "count" && k != "labels" {
				rest[k] = v
			}
		}
		of := NodeGroup{Name: text(g, "name"), Count: int(number(g, "count"))}
		for _, n := range of.names() {
			done, named := []any{}, ""
			for _, a := range actions {
				if text(a, "node") == n {
					done = append(done, dump(without(a, "node")))
				}
				if strings.Contains(strings.ReplaceAll(dump(without(a, "node", "do")), `"name":"c"`, ""), `"`+n+`"`) {
					named = n
				}
			}
			names = append(names, n)
			shape[n], zone[n] = dump([]any{rest, labels, done, named}), text(child(g, "labels"), zoneLabel)
		}
	}
	full := map[string]string{}
	for _, n := range names {
		full[n] = shape[n]
		if zone[n] != "" {
			var there []string
			for _, m := range names {
				if zone[m] == zone[n] {
					there = append(there, shape[m])
				}
			}
			slices.Sort(there)
			full[n] += "\n" + strings.Join(there, "\n")
		}
	}
	var shared []string
	for _, n := range names {
		first := names[slices.IndexFunc(names, func(m string) bool { return full[m] == full[n] })]
		r.group[n] = n
		if others := slices.ContainsFunc(names, func(m string) bool { return m != n && full[m] == full[n] }); others {
			r.group[n] = first + "~"
			shared = append(shared, regexp.QuoteMeta(n))
		}
	}
	if len(shared) > 0 {
		r.alike = regexp.MustCompile(`\b(` + strings.Join(shared, "|") + `)\b`)
	}
}

// text is a text with what stands for nodes in it.
func (r *rules) text(s string) string {
	if r.alike == nil || s == "" {
		return s
	}
	return r.alike.ReplaceAllStringFunc(s, func(n string) string { return r.group[n] })
}

// node is what stands for a node; other values stay.
func (r *rules) node(v any) any {
	if s, ok := v.(string); ok {
		if g, known := r.group[s]; known {
			return g
		}
	}
	return v
}

// slack is how far off a time may be that is gap after what it follows, and at after the start.
func (r *rules) slack(gap, at float64) float64 {
	s := slack
	if r.many {
		s = slackOfMany
	}
	s += share * gap
	if !r.lifecycle || at <= 15 {
		return max(s, 0)
	}
	n := nodeSlack + nodeShare*at
	if r.gc {
		n += gcSlack
	}
	return max(s, n)
}

// sinceStart is slack of what is compared by its time since the start.
func (r *rules) sinceStart(at float64) float64 {
	if r.lifecycle {
		return r.slack(0, at)
	}
	return r.slack(at, at)
}

// state is a distinct status, from when on, and how long it lives.
type state struct {
	at    float64
	value object
	lives float64
}

// states are the distinct statuses of rows. The last one lives for good, unless the recording ended
// as it came.
func (r *rules) states(rows []object) []state {
	var out []state
	for _, row := range rows {
		v := without(row, "at")
		if n := len(out); n == 0 || !same(out[n-1].value, v) {
			out = append(out, state{at: number(row, "at"), value: v})
		}
	}
	for i := range out {
		until := r.duration + forGood
		if i+1 < len(out) {
			until = out[i+1].at
		}
		out[i].lives = until - out[i].at
	}
	if n := len(out); n > 1 && r.duration-out[n-1].at <= short {
		out[n-1].lives = 0
	}
	return out
}

// pairing is a way to pair statuses so far: those of a before i with those of b before j.
type pairing struct {
	i, j  int
	pairs *pair
}

// pair is a pair of equal statuses, and those before it.
type pair struct {
	before *pair
	i, j   int
}

// align pairs equal statuses so that what is left out on either side is short-lived. If that can't
// be, it returns how far it came.
func align(a, b []state) (pairs [][2]int, ok bool, far [2]int) {
	seen := map[[2]int]bool{}
	stack := []pairing{{}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i, j := p.i, p.j
		if i+j > far[0]+far[1] {
			far = [2]int{i, j}
		}
		if i == len(a) && j == len(b) {
			for x := p.pairs; x != nil; x = x.before {
				pairs = append(pairs, [2]int{x.i, x.j})
			}
			slices.Reverse(pairs)
			return pairs, true, far
		}
		if seen[[2]int{i, j}] {
			continue
		}
		seen[[2]int{i, j}] = true
		if j < len(b) && b[j].lives <= short {
			stack = append(stack, pairing{i, j + 1, p.pairs})
		}
		if i < len(a) && a[i].lives <= short {
			stack = append(stack, pairing{i + 1, j, p.pairs})
		}
		if i < len(a) && j < len(b) && same(a[i].value, b[j].value) {
			stack = append(stack, pairing{i + 1, j + 1, &pair{p.pairs, i, j}})
		}
	}
	return nil, false, far
}

// statesDiff compares the statuses of one thing, and the times from one lasting status to the next.
func (r *rules) statesDiff(what string, rec, rep []object, timing *[]string) string {
	a, b := r.states(rec), r.states(rep)
	pairs, ok, far := align(a, b)
	if !ok {
		i, j := far[0], far[1]
		switch {
		case i >= len(a):
			return fmt.Sprintf("%s: one more status than recorded at %vs: %s", what, b[j].at, cut(dump(b[j].value)))
		case j >= len(b):
			return fmt.Sprintf("%s: the status recorded at %vs is missing: %s", what, a[i].at, cut(dump(a[i].value)))
		}
		d := differ(a[i].value, b[j].value, "")
		if d == "" {
			d = "equal, but what follows is not"
		}
		return fmt.Sprintf("%s (recorded at %vs, replayed at %vs): %s", what, a[i].at, b[j].at, d)
	}
	var lastA, lastB float64
	for _, p := range pairs {
		x, y := a[p[0]], b[p[1]]
		if x.lives <= short && y.lives <= short {
			continue
		}
		gapA, gapB := x.at-lastA, y.at-lastB
		if s := r.slack(max(gapA, 0), x.at); math.Abs(gapB-gapA) > s && math.Abs(x.at-y.at) > s {
			*timing = append(*timing, fmt.Sprintf("%s: status at %vs, recorded at %vs: %s", what, y.at, x.at, cut(dump(x.value))))
			return ""
		}
		lastA, lastB = x.at, y.at
	}
	return ""
}

// differ tells the first field in which two values differ.
func differ(a, b any, path string) string {
	x, isX := a.(object)
	y, isY := b.(object)
	if isX && isY {
		for _, k := range keysOfBoth(x, y) {
			sub := k
			if path != "" {
				sub = path + "." + k
			}
			if d := differ(x[k], y[k], sub); d != "" {
				return d
			}
		}
		return ""
	}
	if same(a, b) {
		return ""
	}
	return fmt.Sprintf("%s: recorded %s, replayed %s", path, cut(dump(a)), cut(dump(b)))
}

// clean are rows with what stands for nodes in them.
func (r *rules) clean(rows []object) []object {
	if r.alike == nil {
		return rows
	}
	out := make([]object, len(rows))
	for i, row := range rows {
		if json.Unmarshal([]byte(r.text(dump(row))), &out[i]) != nil {
			out[i] = row
		}
	}
	return out
}
