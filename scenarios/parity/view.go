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
	// The kubelet's PLEG relists once a second and its status manager writes at once what
	// changed; half a second is less than anything that a pod does by its own timing in the
	// recorded cases.
	short = 0.5 // a status that lives no longer may be there or not: it depends on latencies
	slack = 1.5
)

// kinds are the lists of containers of a status; loopKinds those that restart.
var (
	kinds = [...]string{"initContainers", "containers", "ephemeralContainers"}
	// Ephemeral containers are never restarted.
	loopKinds = kinds[:2]
)

var (
	// The reasons with which the kubelet says that it is retrying: of containers
	// (CrashLoopBackOff, the errors of their creation) and of images
	// (pkg/kubelet/images/types.go).
	loose = regexp.MustCompile(`CrashLoopBackOff|ImagePullBackOff|ErrImage|CreateContainer\w*Error|RunContainerError|InvalidImageName|PostStartHookError`)
	// Where a runtime's own words begin in a message of the kubelet's. The recordings' runtime
	// and the fake one word their errors differently, and neither is what is compared.
	runtimeText = regexp.MustCompile(`rpc error:|failed to pull and unpack|failed to resolve|OCI runtime|failed to create|: exec: `)
	// Amounts differ with the machine: bytes left, ports, ages.
	amount = regexp.MustCompile(`\d+(Ki|Mi|Gi)?\b`)
)

// cut is the kubelet's own part of a message as a bag of words: the runtime's
// own words are dropped, numbers are blurred, the order of maps doesn't matter. Words are sorted
// since the kubelet prints maps and sets in Go's random order, such as the unready containers of
// a condition. What is lost is the order within a sentence, which no case depends on.
func cut(text string) string {
	if at := runtimeText.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	words := strings.Fields(amount.ReplaceAllString(text, "#"))
	slices.Sort(words)
	return strings.Join(words, " ")
}

// containerView is what is compared of a container. Left out are image IDs, container IDs and
// times: they are the runtime's, or belong to one run.
func containerView(c object) object {
	out := object{}
	for _, k := range [...]string{"state", "reason", "exitCode", "signal", "restartCount", "ready", "started"} {
		out[k] = c[k]
	}
	if last := child(c, "last"); len(last) > 0 {
		// Of the previous termination only how it ended: its times are compared by the statuses
		// in which it happened.
		out["last"] = []any{last["exitCode"], last["reason"]}
		if m := text(last, "message"); m != "" {
			out["lastMessage"] = cut(m)
		}
	}
	if c["state"] != "terminated" {
		if list := children(c, "allocatedResourcesStatus"); len(list) > 0 {
			out["allocated"] = deviceHealth(list)
		}
	}
	if m := text(c, "message"); m != "" {
		out["message"] = cut(m)
	}
	return out
}

// deviceHealth is how a container's devices are, by resource; which they are is free.
func deviceHealth(list []object) []any {
	byJSON := func(a, b any) int { return strings.Compare(string(encode(a)), string(encode(b))) }
	out := make([]any, len(list))
	for i, r := range list {
		health := []any{}
		for _, d := range children(r, "resources") {
			health = append(health, []any{d["health"], text(d, "message")})
		}
		slices.SortFunc(health, byJSON)
		out[i] = []any{r["name"], health}
	}
	slices.SortFunc(out, byJSON)
	return out
}

// viewOf is what is compared of a status. IP addresses, start times, resource versions and
// observed generations are left out; a UID is in it only where the recording put a name for it,
// to see whether a pod is the same one.
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
		// Times of transitions are not in it; that a condition changed shows by itself.
		conditions[k] = []any{c["status"], c["reason"], cut(text(c, "message"))}
	}
	out["conditions"] = conditions
	// A pod has its IP once it runs; how long before that it is published is
	// chance.
	if s["phase"] == "Running" {
		out["hasPodIP"] = s["hasPodIP"]
	}
	if claims := children(s, "resourceClaimStatuses"); len(claims) > 0 {
		names := make([]any, len(claims))
		for i, c := range claims {
			names[i] = []any{c["name"], c["resourceClaimName"]}
		}
		out["claims"] = names
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

// seen is one of a run's distinct statuses. at is in seconds since the case began.
type seen struct {
	at       float64
	view     object
	lifetime float64 // seconds until the next
	states   []containerState
}

// containerState is one state of a container. It is comparable, to be a map's key. exitCode and
// counts are texts of values that may be absent: "<nil>" differs from "0".
type containerState struct {
	name                            string
	state, reason, exitCode, counts string
}

// distinct lists a run's distinct statuses. Status writes that change nothing compared, a
// condition's time say, are no statuses of their own. Lifetimes are rounded to hundredths, since
// short is compared with differences of decimal numbers.
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

// loops reports whether a status is one of a restart or retry loop. A restart count of two shows
// a loop also in the moment in which the container runs, when no reason says so.
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
