package parity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// callKey groups calls: those of a container (of the sandbox: ""), and apart
// from them what has a clock of its own. What is grouped by itself is compared by itself.
type callKey struct{ group, container string }

// The groups of calls that are compared by order and number only.
const (
	groupRemoval = "removal" // garbage collection removes on its own clock
	groupPull    = "PullImage"
	groupReopen  = "ReopenContainerLog"
)

// call is one call that changed something; attempt and timeout are nil where
// there is none. attempt and timeout are as JSON has them.
type call struct {
	method           string
	attempt, timeout any
	failed           bool
}

// String is the call as a verdict shows it.
func (c call) String() string {
	s := c.method
	if c.attempt != nil {
		s += fmt.Sprintf(" attempt %v", c.attempt)
	}
	if c.timeout != nil {
		s += fmt.Sprintf(" timeout %v", c.timeout)
	}
	if c.failed {
		s += " failed"
	}
	return s
}

// like reports whether two calls are the same but for their timeout and outcome.
func (c call) like(o call) bool { return c.method == o.method && same(c.attempt, o.attempt) }

// callsOf sorts a run's calls into groups. The order within a group is that of the recording.
func callsOf(run object) map[callKey][]call {
	out := map[callKey][]call{}
	for _, c := range children(run, "cri") {
		k := callKey{"", text(c, "container")}
		m := text(c, "method")
		switch m {
		// When these come depends on a registry, a resize or a log's size, not on
		// the container's other calls.
		case groupPull, "UpdateContainerResources", groupReopen:
			k.group = m
		case "RemoveContainer", "RemovePodSandbox":
			k.group = groupRemoval
		}
		failed := c["error"] != nil && c["error"] != ""
		out[k] = append(out[k], call{m, c["attempt"], c["timeout"], failed})
	}
	for k := range out { //drydock:unordered each by itself
		out[k] = squash(out[k])
	}
	return out
}

// squash leaves repeated stops of a sandbox out: they are the collector's. How often the
// collector tries depends on its clock.
func squash(list []call) []call {
	var out []call
	for _, c := range list {
		if n := len(out); n > 0 && out[n-1].like(c) && c.method == "StopPodSandbox" {
			continue
		}
		out = append(out, c)
	}
	return out
}

// onceEach leaves repetitions out: a removal may be tried by the worker and by
// the collector. The first of equal ones stays.
func onceEach(list []call) []call {
	var out []call
	for _, c := range list {
		if !slices.ContainsFunc(out, c.like) {
			out = append(out, c)
		}
	}
	return out
}

// callsDiff returns the first difference of two runs' calls, or "". Groups are gone through in a
// fixed order, so that the difference that is told is always the same.
func callsDiff(rec, rep object) string {
	a, b := callsOf(rec), callsOf(rep)
	var keys []callKey
	for k := range a { //drydock:unordered sorted below
		keys = append(keys, k)
	}
	for k := range b { //drydock:unordered sorted below
		if a[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y callKey) int {
		return cmp.Or(strings.Compare(x.group, y.group), strings.Compare(x.container, y.container))
	})
	for _, k := range keys {
		d := ""
		switch k.group {
		case groupRemoval, groupPull, groupReopen:
			d = looseCallsDiff(k, a[k], b[k])
		default:
			d = exactCallsDiff(k, a[k], b[k])
		}
		if d != "" {
			return d
		}
	}
	return ""
}

// looseCallsDiff compares by order and number. The bounds are those of the recordings' own runs
// against each other.
func looseCallsDiff(k callKey, x, y []call) string {
	if k.group == groupRemoval {
		x, y = onceEach(x), onceEach(y)
	}
	n := min(len(x), len(y))
	for i := range n {
		if !x[i].like(y[i]) {
			return fmt.Sprintf("%s %s: %v, recorded %v", k.group, k.container, y[:n], x[:n])
		}
	}
	// Retries vary by one call or 30%, but what was removed must be removed at
	// all.
	if math.Abs(float64(len(x)-len(y))) > max(1, 0.3*float64(len(x))) ||
		len(x) > 0 && len(y) == 0 && k.group == groupRemoval && k.container != "" {
		return fmt.Sprintf("%s %s: %d calls, recorded %d", k.group, k.container, len(y), len(x))
	}
	return ""
}

// exactCallsDiff compares call by call. Outcome counts as well: a call that failed must fail.
func exactCallsDiff(k callKey, x, y []call) string {
	name := cmp.Or(k.container, "sandbox")
	longest := max(len(x), len(y))
	for i := range longest {
		if i >= len(x) || i >= len(y) {
			// What may be one more at the end is a stop of the sandbox.
			more := y
			if i < len(x) {
				more = x[:i+1]
			}
			if more[len(more)-1].method == "StopPodSandbox" && i == longest-1 {
				continue
			}
			return fmt.Sprintf("%s: %v, recorded %v", name, methodsOf(y), methodsOf(x))
		}
		if !x[i].like(y[i]) || x[i].failed != y[i].failed {
			return fmt.Sprintf("%s call %d: %v, recorded %v", name, i+1, y[i], x[i])
		}
		// Timeouts are in whole seconds of what is left of a grace period, so one
		// may be 1 off.
		if tx, ty := seconds0(x[i].timeout), seconds0(y[i].timeout); math.Abs(tx-ty) > 1 {
			return fmt.Sprintf("%s: %s timeout %v, recorded %v", k.container, x[i].method, ty, tx)
		}
	}
	return ""
}

// methodsOf are the calls' methods, in their order.
func methodsOf(list []call) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].method
	}
	return out
}

// seconds0 is a number of seconds; what is no number is none.
func seconds0(v any) float64 {
	f, _ := v.(float64)
	return f
}
