package parity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Aspect is one of the things that are compared.
type Aspect string

// The aspects, in the order in which differences are told.
const (
	AspectStatus Aspect = "status"
	AspectEvents Aspect = "events"
	AspectCRI    Aspect = "cri"
	AspectTiming Aspect = "timing"
	AspectNode   Aspect = "node"
)

// Aspects are all of them. A verdict has them in this order.
var Aspects = []Aspect{AspectStatus, AspectEvents, AspectCRI, AspectTiming, AspectNode}

// Difference is the first difference in one aspect, in words.
type Difference struct {
	Aspect Aspect
	Text   string
}

// Verdict is how a replay differs from a recording: at most one difference per
// aspect; none means that the replay passes. An empty one is a replay that passes.
type Verdict []Difference

// Only keeps the differences of some aspects; no aspects means all.
func (v Verdict) Only(aspects []Aspect) Verdict {
	if len(aspects) == 0 {
		return v
	}
	return slices.DeleteFunc(slices.Clone(v), func(d Difference) bool { return !slices.Contains(aspects, d.Aspect) })
}

// String is the verdict in one line.
func (v Verdict) String() string {
	parts := make([]string, len(v))
	for i, d := range v {
		parts[i] = string(d.Aspect) + ": " + d.Text
	}
	return strings.Join(parts, "; ")
}

// Judge compares a replay with a case's recorded runs. An aspect passes if it
// agrees with at least one of them; the difference that is told is that to the
// first run. The rules' reasons stand in each aspect's file.
func Judge(c *Case, replay *Observation) (Verdict, error) {
	rep, err := asObject(replay)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return judge(c.runs, rep), nil
}

// judge compares a replay with the recorded runs. An aspect counts as differing
// only if it differs from every run: what one run shows is what can happen.
func judge(runs []object, rep object) Verdict {
	var first Verdict
	for i, rec := range runs {
		v := compareRuns(rec, rep)
		if i == 0 {
			first = v
			continue
		}
		first = slices.DeleteFunc(first, func(d Difference) bool {
			return !slices.ContainsFunc(v, func(o Difference) bool { return o.Aspect == d.Aspect })
		})
	}
	return first
}

// compareRuns returns the first difference per aspect of a replay to one
// recorded run.
func compareRuns(rec, rep object) Verdict {
	found := map[Aspect]string{}
	pods := child(rec, "pods")
	// The recording of a pod case is the pod itself, that of a node case has pods
	// by name.
	if _, node := rec["pods"]; !node {
		comparePods(found, "", rec, rep, mountsWaited(rec, "FailedMount"))
	} else {
		for _, name := range decode.SortedKeys(pods) {
			p := child(pods, name)
			q, ok := child(rep, "pods")[name].(object)
			if !ok {
				if found[AspectStatus] == "" {
					found[AspectStatus] = name + " is missing"
				}
				continue
			}
			comparePods(found, name+": ", p, q, mountsWaited(p, "FailedMount", "FailedCreatePodSandBox"))
		}
		found[AspectNode] = nodeDiff(rec, rep)
	}
	var out Verdict
	for _, a := range Aspects {
		if found[a] != "" {
			out = append(out, Difference{a, found[a]})
		}
	}
	return out
}

// comparePods compares what was seen of the pods, aspect by aspect, and keeps
// the first difference of each.
func comparePods(found map[Aspect]string, prefix string, rec, rep object, waits bool) {
	note := func(a Aspect, d string) {
		if d != "" && found[a] == "" {
			found[a] = prefix + d
		}
	}
	note(AspectStatus, statusDiff(rec, rep))
	note(AspectEvents, eventsDiff(rec, rep))
	note(AspectCRI, callsDiff(rec, rep))
	note(AspectTiming, timingDiff(rec, rep, waits, slack))
}

// mountsWaited reports whether a run has an event of one of the reasons, such as
// FailedMount: what follows then has no time of its own. The real kubelet polls for mounts at its
// own times.
func mountsWaited(run object, reasons ...string) bool {
	return slices.ContainsFunc(children(run, "events"), func(e object) bool { return slices.Contains(reasons, text(e, "reason")) })
}

// nodeDiff returns the first difference of what two runs show of the node, or
// "". The replay may show more events than were recorded, not fewer.
func nodeDiff(rec, rep object) string {
	a, b := lastConditions(rec), lastConditions(rep)
	if !same(a, b) {
		return fmt.Sprintf("node conditions: %s, recorded %s", encode(b), encode(a))
	}
	// Events from before the case's start come of what was done before it.
	have := map[[2]string]bool{}
	for _, e := range children(rep, "nodeEvents") {
		if number(e, "at") > 0 {
			have[[2]string{text(e, "type"), text(e, "reason")}] = true
		}
	}
	for _, e := range children(rec, "nodeEvents") {
		k := [2]string{text(e, "type"), text(e, "reason")}
		if number(e, "at") > 0 && k[1] != "CgroupV1" && !have[k] {
			return fmt.Sprintf("node event missing: %s %s", k[0], k[1])
		}
	}
	la, lb := len(children(rec, "leases")), len(children(rep, "leases"))
	// A short case may begin right after a renewal or right before one.
	if la > 3 && math.Abs(float64(la-lb)) > 1 {
		return fmt.Sprintf("%d lease renewals, recorded %d", lb, la)
	}
	if x, y := imagesOf(rec), imagesOf(rep); !slices.Equal(x, y) {
		return fmt.Sprintf("images removed: %v, recorded %v", y, x)
	}
	return ""
}

// lastConditions returns the last three distinct sets of node conditions. Those at the beginning
// depend on what was before the case.
func lastConditions(run object) []object {
	var out []object
	for _, n := range children(run, "node") {
		v := object{}
		for k, x := range child(n, "conditions") { //drydock:unordered fills a map
			list, _ := x.([]any)
			v[k] = list[:min(2, len(list))]
		}
		if l := len(out); l == 0 || !same(out[l-1], v) {
			out = append(out, v)
		}
	}
	return out[max(0, len(out)-3):]
}

// imagesOf are the images that the node had, in order.
func imagesOf(run object) []string {
	out := []string{}
	for _, i := range children(run, "images") {
		out = append(out, text(i, "image"))
	}
	slices.Sort(out)
	return out
}
