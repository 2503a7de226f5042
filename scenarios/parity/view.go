package parity

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// The tolerances, in seconds.
const (
	short = 0.5 // a status that lives no longer may be there or not: it depends on latencies
	slack = 1.5
)

// kinds are the lists of containers of a status; loopKinds those that restart.
var (
	kinds     = [...]string{"initContainers", "containers", "ephemeralContainers"}
	loopKinds = kinds[:2]
)

var (
	loose       = regexp.MustCompile(`CrashLoopBackOff|ImagePullBackOff|ErrImage|CreateContainer\w*Error|RunContainerError|InvalidImageName|PostStartHookError`)
	runtimeText = regexp.MustCompile(`rpc error:|failed to pull and unpack|failed to resolve|OCI runtime|failed to create|: exec: `)
	amount      = regexp.MustCompile(`\d+(Ki|Mi|Gi)?\b`)
)

// cut is the kubelet's own part of a message as a bag of words: the runtime's
// own words are dropped, numbers are blurred, the order of maps doesn't matter.
func cut(text string) string {
	if at := runtimeText.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	words := strings.Fields(amount.ReplaceAllString(text, "#"))
	slices.Sort(words)
	return strings.Join(words, " ")
}

// containerView is what is compared of a container.
func containerView(c object) object {
	out := object{}
	for _, k := range [...]string{"state", "reason", "exitCode", "signal", "restartCount", "ready", "started"} {
		out[k] = c[k]
	}
	if last := child(c, "last"); len(last) > 0 {
		out["last"] = []any{last["exitCode"], last["reason"]}
	}
	if m := text(c, "message"); m != "" {
		out["message"] = cut(m)
	}
	return out
}

// viewOf is what is compared of a status.
func viewOf(s object) object {
	// A deletion shows the last status once more, of which only the phase was
	// recorded.
	if truth(s, "deleted") {
		return object{"deleted": true, "phase": s["phase"]}
	}
	out := object{
		"phase": s["phase"], "reason": s["reason"], "message": cut(text(s, "message")), "deleting": s["deleting"],
		"qosClass": s["qosClass"], "mirror": s["mirror"], "uid": s["uid"],
	}
	conditions := object{}
	for k, v := range child(s, "conditions") { //drydock:unordered fills a map
		c, _ := v.(object)
		conditions[k] = []any{c["status"], c["reason"], cut(text(c, "message"))}
	}
	out["conditions"] = conditions
	// A pod has its IP once it runs; how long before that it is published is
	// chance.
	if s["phase"] == "Running" {
		out["hasPodIP"] = s["hasPodIP"]
	}
	for _, k := range kinds {
		list := child(s, k)
		if len(list) == 0 {
			continue
		}
		views := object{}
		for n, c := range list { //drydock:unordered fills a map
			o, _ := c.(object)
			views[n] = containerView(o)
		}
		out[k] = views
	}
	return out
}

// seen is one of a run's distinct statuses.
type seen struct {
	at       float64
	view     object
	lifetime float64 // seconds until the next
	states   []containerState
}

// containerState is one state of a container.
type containerState struct {
	name                            string
	state, reason, exitCode, counts string
}

// distinct lists a run's distinct statuses.
func distinct(run object) []seen {
	var out []seen
	for _, s := range children(run, "status") {
		v := viewOf(s)
		if n := len(out); n == 0 || !same(out[n-1].view, v) {
			// The last status lasts for good, so it is never short-lived.
			out = append(out, seen{at: number(s, "at"), view: v, lifetime: 1e9, states: statesOf(v)})
		}
	}
	for i := 0; i+1 < len(out); i++ {
		out[i].lifetime = math.Round((out[i+1].at-out[i].at)*100) / 100
	}
	return out
}

// statesOf are the states of a status' containers.
func statesOf(v object) []containerState {
	var out []containerState
	for _, k := range kinds {
		list := child(v, k)
		for _, n := range decode.SortedKeys(list) {
			c, _ := list[n].(object)
			out = append(out, containerState{n, fmt.Sprint(c["state"]), fmt.Sprint(c["reason"]), fmt.Sprint(c["exitCode"]), fmt.Sprint(c["restartCount"])})
		}
	}
	return out
}

// loops reports whether a status is one of a restart or retry loop.
func loops(v object) bool {
	if loose.Match(encode(v)) {
		return true
	}
	for _, k := range loopKinds {
		for _, c := range child(v, k) { //drydock:unordered any will do
			if o, _ := c.(object); number(o, "restartCount") >= 2 {
				return true
			}
		}
	}
	return false
}
