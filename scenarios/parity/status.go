package parity

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// pair is two statuses that are equal, by their indices. i is that in the recording, j that in
// the replay.
type pair struct{ i, j int }

// chain is a list of pairs, shared by the alignments that begin alike. It goes from the last pair
// back to the first: extending an alignment then costs one node, and abandoned ones share what
// they have in common.
type chain struct {
	before *chain
	pair
}

// list is the chain as pairs, the first first.
func (c *chain) list() []pair {
	var out []pair
	for ; c != nil; c = c.before {
		out = append(out, c.pair)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// align finds an alignment of two sequences of statuses. What stays unmatched
// must be short-lived and show no container state that the other side never
// shows. If there is none, it returns the furthest point. Both sequences are without immediate
// repetitions (distinct). A kubelet coalesces status updates: its status manager sends what is
// newest when it comes to it (pkg/kubelet/status), so which intermediate states become visible
// depends on latencies, and a comparison index by index would fail at the first of them.
//
// The search is over the grid of points (i, j): a step matches one of each or leaves one out of
// either. With n statuses on each side there are n² points, each visited once at most; recordings
// have a few dozen.
func align(a, b []seen) (pairs []pair, ok bool, furthest pair) {
	skipA, skipB := skippable(a, b), skippable(b, a)
	type step struct {
		i, j  int
		pairs *chain
	}
	been := map[pair]bool{}
	stack := []step{{}}
	// Depth first, and no point twice: most sequences are equal but for a few
	// statuses, so the first way is nearly always the right one. The pairs on the way to a point
	// may differ between two ways to it. It doesn't matter which are kept: what is judged with
	// them, the times, has tolerances that don't tell such neighbours apart.
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i, j := s.i, s.j
		if i+j > furthest.i+furthest.j {
			// By the sum of both indices: the point at which most was explained is the best place
			// to point at in a message.
			furthest = pair{i, j}
		}
		if i >= len(a) && j >= len(b) || i > 0 && freeTail(a[i:], b[j:], a[i-1]) {
			return s.pairs.list(), true, pair{}
		}
		if been[pair{i, j}] {
			continue
		}
		been[pair{i, j}] = true
		// The match is pushed last and so tried first. The first status of either
		// side can't be left out. An object is seen by its creation in both worlds.
		if j < len(b) && skipB[j] && j > 0 {
			stack = append(stack, step{i, j + 1, s.pairs})
		}
		if i < len(a) && skipA[i] && i > 0 {
			stack = append(stack, step{i + 1, j, s.pairs})
		}
		if i < len(a) && j < len(b) && same(a[i].view, b[j].view) {
			stack = append(stack, step{i + 1, j + 1, &chain{s.pairs, pair{i, j}}})
		}
	}
	return nil, false, furthest
}

// skippable tells which statuses of list may be left out beside other. A state that the other
// side never shows must not vanish, however short its life: a container that failed and was
// restarted at once is what many cases are about. States are compared with names, reasons, exit
// codes and restart counts.
func skippable(list, other []seen) []bool {
	known := map[containerState]bool{}
	for i := range other {
		for _, s := range other[i].states {
			known[s] = true
		}
	}
	out := make([]bool, len(list))
	for i := range list {
		out[i] = list[i].lifetime <= short
		for _, s := range list[i].states {
			out[i] = out[i] && known[s]
		}
	}
	return out
}

// freeTail allows for what is left when one side is over: a recording that ends
// within a restart or retry loop may end a lap earlier or later. Four statuses are about one lap:
// waiting, running, terminated, back-off. The last status before the rest must be one of a loop
// already, so that an ordinary pod cannot end early unnoticed.
func freeTail(a, b []seen, last seen) bool {
	if len(a) > 0 && len(b) > 0 {
		return false
	}
	rest := a
	if len(rest) == 0 {
		rest = b
	}
	for i := range rest {
		// A deletion is no lap of a loop, so it must be matched.
		if truth(rest[i].view, "deleted") || rest[i].view["deleting"] != nil {
			return false
		}
	}
	return loops(last.view) && len(rest) <= 4
}

// statusDiff returns the first difference of two runs' statuses, or "". It names the furthest
// point that an alignment reached. That is not always where the cause is, since a status may have
// been left out on the way, but what comes after it has no counterpart for certain.
func statusDiff(rec, rep object) string {
	a, b := distinct(rec), distinct(rep)
	_, ok, at := align(a, b)
	if ok {
		return ""
	}
	switch i, j := at.i, at.j; {
	case i >= len(a):
		return fmt.Sprintf("status %d at %vs is one more than recorded: %s", j+1, b[j].at, brief(b[j].view))
	case j >= len(b):
		return fmt.Sprintf("status %d at %vs is missing: %s", i+1, a[i].at, brief(a[i].view))
	default:
		d := cmp.Or(differ(a[i].view, b[j].view, ""), "equal, but what follows is not")
		return fmt.Sprintf("status %d (recorded at %vs, replayed at %vs): %s", i+1, a[i].at, b[j].at, d)
	}
}

// differ returns the first field in which two views differ, with both values. Keys go in order,
// so that the same difference is named in every run. It stops at the first one: what follows is
// mostly its consequence.
func differ(a, b any, path string) string {
	x, xok := a.(object)
	y, yok := b.(object)
	if !xok || !yok {
		if same(a, b) {
			return ""
		}
		return fmt.Sprintf("%s: recorded %s, replayed %s", path, show(a), show(b))
	}
	both := object{}
	for k := range x { //drydock:unordered fills a map
		both[k] = nil
	}
	for k := range y { //drydock:unordered fills a map
		both[k] = nil
	}
	for _, k := range decode.SortedKeys(both) {
		at := k
		if path != "" {
			at = path + "." + k
		}
		if d := differ(x[k], y[k], at); d != "" {
			return d
		}
	}
	return ""
}

// show is a value as a difference names it. JSON, since a message of Go's own formatting hides
// whether 1 was a number or a text.
func show(v any) string {
	if v == nil {
		return "nothing"
	}
	return string(encode(v))
}

// brief is a status in a few words. It is for messages and columns; it is never compared.
func brief(v object) string {
	words := []string{text(v, "phase")}
	if r := text(v, "reason"); r != "" {
		words = append(words, r)
	}
	if truth(v, "deleted") {
		words = append(words, "deleted")
	}
	for _, k := range kinds {
		list := child(v, k)
		for _, n := range decode.SortedKeys(list) {
			c, _ := list[n].(object)
			s := n + " " + text(c, "state")
			if r := text(c, "reason"); r != "" {
				s += " " + r
			}
			words = append(words, fmt.Sprintf("(%s, restarts %v)", s, number(c, "restartCount")))
		}
	}
	return strings.Join(words, " ")
}

// waitsOnBackOff reports whether what lies between two statuses is a back-off or
// a retry. Only restarts from the second on count: the first restart of a container comes at once
// (pkg/kubelet/kuberuntime doBackOff has no entry of it yet), and its time is the kubelet's own.
func waitsOnBackOff(prev, cur object) bool {
	if loose.Match(encode(prev)) || loose.Match(encode(cur)) {
		return true
	}
	for _, k := range loopKinds {
		before := child(prev, k)
		for n, v := range child(cur, k) { //drydock:unordered any will do
			c, _ := v.(object)
			p := child(before, n)
			if number(c, "restartCount") >= 2 && (!same(c["state"], p["state"]) || !same(c["restartCount"], p["restartCount"])) {
				return true
			}
		}
	}
	return false
}

// timingDiff returns the first time from one matched status to the next that is
// not as recorded, or "". waits says that something waited for a mount or a
// sandbox, so that retries decide. Gaps are compared rather than times since the start: a
// recording's clock begins when its pod was created by somebody, and one delay would move
// everything after it.
//
// What is allowed is slack and a twentieth of the recorded gap, for clocks and load of the
// machine that was recorded. Retries and back-off are looser: they end when the pod worker next looks, which has a period of its own, so seconds of difference mean nothing; beyond 100 seconds the share counts.
func timingDiff(rec, rep object, waits bool, slack float64) string {
	a, b := distinct(rec), distinct(rep)
	pairs, _, _ := align(a, b)
	for n := 0; n+1 < len(pairs); n++ {
		p, q := pairs[n], pairs[n+1]
		ga, gb := a[q.i].at-a[p.i].at, b[q.j].at-b[p.j].at
		allowed := slack + 0.05*ga
		if waits || waitsOnBackOff(a[p.i].view, a[q.i].view) {
			allowed = slack + 16.5
			if ga >= 100 {
				allowed = slack + 0.35*ga
			}
		}
		// Late after a status that was early itself can be on time by the case's
		// clock. Both must be off, the gap and the time since the start, for it to be a
		// difference.
		if math.Abs(gb-ga) > allowed && math.Abs(b[q.j].at-a[q.i].at) > allowed {
			return fmt.Sprintf("status %d: %.1fs after the one before, recorded %.1fs (%s)", q.i+1, gb, ga, brief(a[q.i].view))
		}
	}
	return ""
}
