package parity

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

var anyID = regexp.MustCompile(`<id>|<uid>`)

// configDiff is the first difference of what plugins and volumes put into containers, or
// "".
func configDiff(rec, rep object) string {
	for _, name := range decode.SortedKeys(child(rec, "pods")) {
		x, y := configs(child(child(rec, "pods"), name)), configs(child(child(rep, "pods"), name))
		for _, k := range decode.SortedKeys(x) {
			if have, ok := y[k]; ok && !same(x[k], have) {
				return fmt.Sprintf("%s %s: %s, recorded %s", name, k, encode(have), encode(x[k]))
			}
		}
	}
	return ""
}

// configs are what containers were made with, by name and attempt; later ones count.
func configs(pod object) map[string]object {
	out := map[string]object{}
	for _, c := range children(pod, "cri") {
		if text(c, "method") != "CreateContainer" {
			continue
		}
		f := child(c, "config")
		view := object{"CDI_devices": len(children(f, "CDI_devices"))}
		list := func(key, from string, of func(o object) []any) {
			items := []any{}
			for _, o := range children(f, from) {
				items = append(items, of(o))
			}
			slices.SortFunc(items, func(a, b any) int { return strings.Compare(string(encode(a)), string(encode(b))) })
			view[key] = items
		}
		list("mounts", "mounts", func(o object) []any {
			return []any{o["container_path"], truth(o, "readonly"), anyID.ReplaceAllString(text(o, "host_path"), "#"), o["propagation"]}
		})
		list("devices", "devices", func(o object) []any { return []any{o["container_path"], o["permissions"]} })
		list("envs", "envs", func(o object) []any { return []any{o["key"], len(strings.Split(text(o, "value"), ","))} })
		view["annotations"] = decode.SortedKeys(child(f, "annotations"))
		out[fmt.Sprint(text(c, "container"), " ", c["attempt"])] = view
	}
	return out
}

// tokensDiff is the first difference of the requests for tokens, or "".
func tokensDiff(rec, rep object) string {
	group := func(run object) map[string][]object {
		out := map[string][]object{}
		for _, t := range children(run, "tokenRequests") {
			k := string(encode(t["spec"]))
			out[k] = append(out[k], t)
		}
		return out
	}
	a, b := group(rec), group(rep)
	for _, k := range both(a, b) {
		x, y := a[k], b[k]
		switch {
		case len(y) == 0:
			return "token request missing: " + k
		case len(x) == 0:
			return "token request not recorded: " + k
		}
		allowed := 0.0
		if len(x) > 3 {
			allowed = 0.35 * float64(len(x))
		}
		if math.Abs(float64(len(x)-len(y))) > allowed {
			return fmt.Sprintf("%d token requests, recorded %d: %s", len(y), len(x), k)
		}
		for i := range min(len(x), len(y)) {
			p, q := x[i], y[i]
			if !same(p["code"], q["code"]) {
				return fmt.Sprintf("token request answered %v, recorded %v: %s", q["code"], p["code"], k)
			}
			if math.Abs(number(p, "at")-number(q, "at")) > 2+0.1*number(p, "at") {
				return fmt.Sprintf("token request at %vs, recorded %vs: %s", q["at"], p["at"], k)
			}
		}
	}
	return ""
}

// steps are the distinct states of one of a run's lists.
type steps struct {
	list string
	// keep are the fields that are compared; slack is in seconds. States that live no
	// longer than short may be seen or not.
	keep         []string
	slack, short float64
}

// nodeSteps are those of the node, and of what belongs to it.
var nodeSteps = []steps{
	{"resources", []string{"resources"}, 11, 11},
	{"csiNode", []string{"drivers"}, 3, 0},
	{"volumeAttachments", []string{"attached", "attachError", "deleting", "deleted"}, 3.5, 0},
	{"nodeVolumes", []string{"inUse", "attached"}, 11, 11},
	{"claimsVolumes", []string{"name", "phase", "capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"}, 20, 0},
	{"resourceSlices", []string{"what", "name"}, 5, 0},
}

// step is one state, as the JSON of what is compared of it.
type step struct {
	at   float64
	view string
}

func (s steps) of(run object) []step {
	var out []step
	for _, r := range children(run, s.list) {
		view := object{}
		for _, k := range s.keep {
			view[k] = r[k]
		}
		text := string(encode(view))
		if n := len(out); n == 0 || out[n-1].view != text {
			out = append(out, step{number(r, "at"), text})
		}
	}
	return out
}

// lasting leaves out states that live no longer than short, and that the other run doesn't
// show at that place either.
func (s steps) lasting(list, other []step) []step {
	var out []step
	for i, e := range list {
		if i+1 < len(list) && list[i+1].at-e.at <= s.short {
			near := other[min(max(0, i-1), len(other)):min(i+2, len(other))]
			if !slices.ContainsFunc(near, func(o step) bool { return o.view == e.view }) {
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// diff is the first difference, or "".
func (s steps) diff(rec, rep object) string {
	x, y := s.of(rec), s.of(rep)
	view := func(e step) string { return e.view }
	if s.short > 0 && !slices.EqualFunc(x, y, func(a, b step) bool { return view(a) == view(b) }) {
		x, y = s.lasting(x, y), s.lasting(y, x)
		equal := func(a, b step) bool { return a.view == b.view }
		x, y = slices.CompactFunc(x, equal), slices.CompactFunc(y, equal)
	}
	for i := range max(len(x), len(y)) {
		switch {
		case i >= len(x):
			return fmt.Sprintf("%s: not recorded: %s at %vs", s.list, y[i].view, y[i].at)
		case i >= len(y):
			return fmt.Sprintf("%s: missing: %s at %vs", s.list, x[i].view, x[i].at)
		case x[i].view != y[i].view:
			return fmt.Sprintf("%s step %d: %s, recorded %s", s.list, i+1, y[i].view, x[i].view)
		case math.Abs(x[i].at-y[i].at) > s.slack:
			return fmt.Sprintf("%s step %d: at %vs, recorded %vs", s.list, i+1, y[i].at, x[i].at)
		}
	}
	return ""
}

// snapshotsDiff is the first difference of what was read, or "". The replay may have read
// more often.
func snapshotsDiff(rec, rep object) string {
	for _, s := range children(rec, "snapshots") {
		t := snapshotAt(children(rep, "snapshots"), text(s, "what"), number(s, "at"))
		if t == nil {
			return fmt.Sprintf("snapshot %s at %vs is missing", s["what"], s["at"])
		}
		if x, y := blurred(s["value"]), blurred(t["value"]); !same(x, y) {
			return fmt.Sprintf("%s at %vs: %s, recorded %s", s["what"], s["at"], encode(y), encode(x))
		}
	}
	return ""
}

// snapshotAt is the one of that second, or else one that is near; nil: there is none.
func snapshotAt(list []object, what string, at float64) object {
	var near object
	for _, s := range list {
		if text(s, "what") != what {
			continue
		}
		if math.RoundToEven(number(s, "at")) == math.RoundToEven(at) {
			return s
		}
		if near == nil && math.Abs(math.RoundToEven(number(s, "at"))-at) <= 1.5 {
			near = s
		}
	}
	return near
}
