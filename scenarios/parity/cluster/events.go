package cluster

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// eventKey is what makes events the same.
type eventKey struct{ object, typ, reason, message, by string }

// similar is what makes events similar: over ten in ten minutes are combined.
type similar struct{ object, typ, reason string }

func (k eventKey) similar() similar { return similar{k.object, k.typ, k.reason} }

func (k eventKey) String() string {
	return fmt.Sprintf("%s of %s by %s: %s", k.reason, k.object, k.by, cut(k.message))
}

// eventCount is how often an event was sent, first and last when.
type eventCount struct{ count, at, last float64 }

const (
	combined       = "(combined from similar events)" // whose text remains is chance
	combinedPrefix = combined + ": "
)

// Reasons whose events are compared otherwise: of loose ones it is not told how often it was tried,
// exact ones are counted exactly up to 20.
var (
	looseReasons = []string{"FailedScheduling", "FailedCreate", "JobAlreadyActive", "FailedGetResourceMetric", "FailedComputeMetricsReplicas"}
	exactReasons = []string{"Scheduled", "SuccessfulCreate", "SuccessfulDelete", "TaintManagerEviction", "Preempted"}
	racyReasons  = []string{"FailedToUpdateEndpointSlices", "FailedToUpdateEndpoint", "FailedToCreateEndpoint", "NoPods"}
)

var (
	blanks  = regexp.MustCompile(`\s+`)
	scaling = regexp.MustCompile(`^Scaled (up|down) replica set (\S+) from (\d+) to (\d+)`)
)

// counted is a run's events, equal ones together, and their order.
type counted struct {
	order []eventKey
	of    map[eventKey]*eventCount
}

func (r *rules) events(of run) counted {
	c := counted{of: map[eventKey]*eventCount{}}
	for _, e := range children(of.object, "events") {
		message := strings.TrimSpace(blanks.ReplaceAllString(r.text(text(e, "message")), " "))
		if strings.HasPrefix(message, combinedPrefix) {
			message = combined
		}
		k := eventKey{r.text(text(e, "object")), text(e, "type"), text(e, "reason"), message, text(e, "by")}
		x := c.of[k]
		if x == nil {
			x = &eventCount{at: number(e, "at"), last: number(e, "last")}
			c.of[k], c.order = x, append(c.order, k)
		}
		x.count += number(e, "count")
		x.at, x.last = min(x.at, number(e, "at")), max(x.last, number(e, "last"))
	}
	return c
}

// without are the events that are similar to none of some.
func (c counted) without(some map[similar]bool) counted {
	out := counted{of: map[eventKey]*eventCount{}}
	for _, k := range c.order {
		if !some[k.similar()] {
			out.of[k], out.order = c.of[k], append(out.order, k)
		}
	}
	return out
}

// eventsDiff compares events, and when each came first.
func (r *rules) eventsDiff(rec, rep run, timing *[]string) string {
	a, b := r.events(rec), r.events(rep)
	many := map[similar]bool{}
	for _, k := range slices.Concat(a.order, b.order) {
		if k.message == combined {
			many[k.similar()] = true
		}
	}
	for _, k := range slices.Concat(a.order, b.order) {
		g := k.similar()
		if n, m := a.sum(g), b.sum(g); many[g] && math.Abs(n-m) > 2+0.35*n && !slices.Contains(looseReasons, g.reason) {
			return fmt.Sprintf("%v events %s of %s, recorded %v", m, g.reason, g.object, n)
		}
	}
	a, b = a.without(many), b.without(many)
	atEnd := func(t float64) bool { return t > r.duration-short }
	for _, k := range a.order {
		x, y := a.of[k], b.of[k]
		if y == nil {
			if atEnd(x.at) || racy(k) || r.passes(k, rec) {
				continue
			}
			return "missing event " + k.String()
		}
		if slices.Contains(looseReasons, k.reason) || racy(k) {
			continue
		}
		if math.Abs(y.count-x.count) > allowed(k, x.count) && !atEnd(x.last) && !atEnd(y.last) {
			return fmt.Sprintf("event %v times, recorded %v: %s", y.count, x.count, k)
		}
		s := r.sinceStart(x.at)
		if k.reason == "RegisteredNode" {
			s = nodeSlack
		}
		if math.Abs(y.at-x.at) > s {
			*timing = append(*timing, fmt.Sprintf("event at %vs, recorded at %vs: %s", y.at, x.at, k))
		}
	}
	if d := scaledDiff(a, b); d != "" {
		return d
	}
	for _, k := range b.order {
		if y := b.of[k]; a.of[k] == nil && !atEnd(y.at) && !racy(k) && !r.passes(k, rep) {
			return "event that was not recorded: " + k.String()
		}
	}
	return ""
}

// sum is how many similar events there are.
func (c counted) sum(g similar) float64 {
	n := 0.0
	for _, k := range c.order {
		if k.similar() == g {
			n += c.of[k].count
		}
	}
	return n
}

// allowed is by how much a count may be off.
func allowed(k eventKey, n float64) float64 {
	bound := 3.0
	if slices.Contains(exactReasons, k.reason) {
		bound = 20
	}
	switch {
	case n > bound:
		return 0.35 * n
	case k.reason == "SawCompletedJob":
		return 1
	}
	return 0
}

// racy reports whether an event may be there or not: conflicts of writes, and attempts that one pass
// more or less makes.
func racy(k eventKey) bool {
	return strings.Contains(k.message, "the object has been modified") || slices.Contains(racyReasons, k.reason)
}

// step is a step of a rollout: how a ReplicaSet was scaled.
type step struct {
	up, set  string
	from, to float64
}

func stepOf(k eventKey) (step, bool) {
	m := scaling.FindStringSubmatch(k.message)
	if m == nil {
		return step{}, false
	}
	from, _ := strconv.ParseFloat(m[3], 64)
	to, _ := strconv.ParseFloat(m[4], 64)
	return step{m[1], m[2], from, to}, true
}

// scaledDiff compares how far each ReplicaSet was scaled, in however many steps.
func scaledDiff(a, b counted) string {
	type way struct{ up, set string }
	sum := func(c counted) (order []way, all map[way]float64) {
		all = map[way]float64{}
		for _, k := range c.order {
			if s, ok := stepOf(k); ok {
				w := way{s.up, s.set}
				if _, known := all[w]; !known {
					order = append(order, w)
				}
				all[w] += math.Abs(s.to-s.from) * c.of[k].count
			}
		}
		return order, all
	}
	order, x := sum(a)
	_, y := sum(b)
	for _, w := range order {
		if n, ok := y[w]; !ok || n != x[w] {
			return fmt.Sprintf("events have %s scaled %s by %v in all, recorded %v", w.set, w.up, y[w], x[w])
		}
	}
	return ""
}

// passes reports whether an event tells of what didn't last: a step between sizes, which pods that
// become ready at the same time make one or two of, or a reason for not being scheduled that no pod
// kept.
func (r *rules) passes(k eventKey, of run) bool {
	if s, ok := stepOf(k); ok {
		var sizes []state
		for _, row := range children(child(of.object, "objects"), "ReplicaSet/"+s.set) {
			if v := (object{"n": row["spec.replicas"]}); !truth(row, "deleted") && (len(sizes) == 0 || !same(sizes[len(sizes)-1].value, v)) {
				sizes = append(sizes, state{at: number(row, "at"), value: v})
			}
		}
		lasts := func(n float64) bool {
			for i, x := range sizes {
				until := 1e9
				if i+1 < len(sizes) {
					until = sizes[i+1].at
				}
				if until-x.at > short && x.value["n"] == n {
					return true
				}
			}
			return false
		}
		first := len(sizes) > 0 && sizes[0].value["n"] == s.to
		return !((lasts(s.from) || s.from == 0 && first) && lasts(s.to))
	}
	if k.reason != "FailedScheduling" {
		return false
	}
	for _, p := range children(of.object, "pods") {
		l := list(p, "unscheduled")
		for i, x := range l {
			until := 1e9
			switch {
			case i+1 < len(l):
				until = timeOf(l[i+1])
			case has(p, "bound"):
				until = number(p, "bound")
			case has(p, "gone"):
				until = number(p, "gone")
			}
			why, _ := x.([]any)
			if len(why) > 3 {
				if s, _ := why[3].(string); r.text(s) == k.message && until-timeOf(x) > passing {
					return false
				}
			}
		}
	}
	return true
}
