package parity

import (
	"fmt"
	"math"
)

// eventKey is what makes two events the same. The message is cut and blurred, as both sides have
// been.
type eventKey struct{ typ, reason, field, message string }

// eventCount is how often an event was sent, and when first.
type eventCount struct {
	eventKey
	count, at float64
}

// eventsOf lists a run's events, equal ones together, in order of appearance. Times are of the
// first one.
func eventsOf(run object) ([]eventKey, map[eventKey]*eventCount) {
	var order []eventKey
	out := map[eventKey]*eventCount{}
	for _, e := range children(run, "events") {
		k := eventKey{text(e, "type"), text(e, "reason"), text(e, "field"), cut(text(e, "message"))}
		at := number(e, "at")
		c := out[k]
		if c == nil {
			c = &eventCount{eventKey: k, at: at}
			out[k], order = c, append(order, k)
		}
		c.count += number(e, "count")
		c.at = min(c.at, at)
	}
	return order, out
}

// eventsDiff returns the first difference of two runs' events, or "". Missing ones are told
// before those too many.
func eventsDiff(rec, rep object) string {
	orderA, a := eventsOf(rec)
	orderB, b := eventsOf(rep)
	for _, k := range orderA {
		if b[k] == nil {
			return fmt.Sprintf("event %s %s is missing: %.100s", k.reason, k.field, k.message)
		}
		ca, cb, allowed := a[k].count, b[k].count, 0.0
		if ca > 3 { // retries depend on jitter
			allowed = max(1, 0.35*ca)
		}
		if math.Abs(ca-cb) > allowed {
			return fmt.Sprintf("event %s %s: %v times, recorded %v: %.80s", k.reason, k.field, cb, ca, k.message)
		}
	}
	for _, k := range orderB {
		if a[k] == nil {
			return fmt.Sprintf("event %s %s was not recorded: %.100s", k.reason, k.field, k.message)
		}
	}
	// The order counts only where a second lay between two events: those of one
	// moment come in any.
	for _, x := range orderA {
		for _, y := range orderA {
			if x.field == y.field && a[y].at-a[x].at > 1 && b[y].at < b[x].at-0.5 {
				return fmt.Sprintf("event %s came before %s (%s)", y.reason, x.reason, x.field)
			}
		}
	}
	return ""
}
