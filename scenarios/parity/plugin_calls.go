package parity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// quiet are calls whose number and moment are the kubelet's private matter: capabilities
// are asked for before each use, statistics on a clock of their own.
var quiet = map[string]bool{
	"NodeGetCapabilities": true, "Probe": true, "GetPluginInfo": true, "GetPluginCapabilities": true, "NodeGetVolumeStats": true, "Register": true,
	"ListAndWatch ends": true, "ListAndWatch sends": true, "NodeWatchResources ends": true, "NodeWatchResources sends": true, "(stopped)": true,
}

// apart are calls that are a sequence of their own for each plugin.
var apart = map[string]string{
	"GetInfo": "registration", "NotifyRegistrationStatus": "registration", "NodeWatchResources": "health", "ListAndWatch": "list",
}

// devices are fields with ids that the kubelet is free to choose: only how many there are
// counts. marks are values that are drawn.
var (
	devices = []string{"devices_ids", "device_ids", "available_deviceIDs", "must_include_deviceIDs", "deviceIDs", "DeviceIDs"}
	marks   = []string{"uid", "last_updated_time", "Checksum", "checksum", "time", "timestamp"}
	amounts = []string{"availableBytes", "capacityBytes", "usedBytes", "inodes", "inodesFree", "inodesUsed"}
)

// blurred is a request as it is compared. Lists are in the order of their JSON.
func blurred(v any) any {
	switch x := v.(type) {
	case object:
		out := object{}
		for k, v := range x { //drydock:unordered fills a map
			_, nested := v.(object)
			switch {
			case slices.Contains(devices, k):
				out[k] = numbers(v)
			case slices.Contains(marks, k) && !nested:
				out[k] = "#"
			case slices.Contains(amounts, k) && !nested:
				out[k] = v
			default:
				out[k] = blurred(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = blurred(x[i])
		}
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(string(encode(a)), string(encode(b))) })
		return out
	}
	return v
}

// numbers are how many devices there are, or how many of each NUMA node.
func numbers(v any) any {
	switch x := v.(type) {
	case []any:
		return float64(len(x))
	case object:
		out := object{}
		for k, list := range x { //drydock:unordered fills a map
			l, _ := list.([]any)
			out[k] = float64(len(l))
		}
		return out
	}
	return v
}

// pluginCall is a call as it is compared; n equal ones in a row are one.
type pluginCall struct {
	at           float64
	method, code string
	request      string
	n            int
}

func (c pluginCall) like(o pluginCall) bool {
	return c.method == o.method && c.request == o.request && c.code == o.code
}

// pluginCalls are those of a run by plugin and group: of CSI a volume's.
func pluginCalls(run object) map[string][]pluginCall {
	out := map[string][]pluginCall{}
	for _, c := range children(run, "plugins") {
		method, req := text(c, "method"), child(c, "req")
		if quiet[method] {
			continue
		}
		group, ok := apart[method]
		if !ok {
			group = text(req, "volume_id")
		}
		if claims, ok := req["claims"].([]any); ok {
			names := make([]any, len(claims))
			for i := range claims {
				claim, _ := claims[i].(object)
				names[i] = []any{claim["namespace"], claim["name"]}
			}
			req = object{"claims": names}
		}
		if req == nil {
			req = object{}
		}
		key := text(c, "plugin") + "/" + group
		out[key] = append(out[key], pluginCall{number(c, "at"), method, text(c, "code"), string(encode(blurred(req))), 1})
	}
	return out
}

// laps has equal calls in a row as one.
func laps(list []pluginCall) []pluginCall {
	var out []pluginCall
	for _, c := range list {
		if n := len(out); n > 0 && out[n-1].like(c) {
			out[n-1].n++
			continue
		}
		out = append(out, c)
	}
	return out
}

// both are the keys of two maps, sorted.
func both[V any](a, b map[string]V) []string {
	keys := decode.SortedKeys(a)
	for _, k := range decode.SortedKeys(b) {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// pluginCallsDiff is the first difference of what plugins were asked, or "". Of calls
// that are made again and again, the number may differ by a third.
func pluginCallsDiff(rec, rep object) string {
	a, b := pluginCalls(rec), pluginCalls(rep)
	for _, k := range both(a, b) {
		x, y, name := laps(a[k]), laps(b[k]), strings.TrimSuffix(k, "/")
		for i := range max(len(x), len(y)) {
			switch {
			case i >= len(x):
				return fmt.Sprintf("%s: call not recorded: %s at %vs %s", name, y[i].method, y[i].at, y[i].code)
			case i >= len(y):
				return fmt.Sprintf("%s: call is missing: %s at %vs %s", name, x[i].method, x[i].at, x[i].code)
			case x[i].method != y[i].method || x[i].code != y[i].code:
				return fmt.Sprintf("%s call %d: %s %s at %vs, recorded %s %s at %vs", name, i+1, y[i].method, y[i].code, y[i].at, x[i].method, x[i].code, x[i].at)
			case x[i].request != y[i].request:
				return fmt.Sprintf("%s %s: request %s, recorded %s", name, x[i].method, y[i].request, x[i].request)
			}
			n, m := x[i].n, y[i].n
			allowed := 0.0
			if n > 3 {
				allowed = max(1, 0.35*float64(n))
			}
			if math.Abs(float64(n-m)) > allowed {
				return fmt.Sprintf("%s %s %s: %d times, recorded %d", name, x[i].method, x[i].code, m, n)
			}
		}
	}
	return ""
}

// pluginTimingDiff is the first difference of when plugins were asked, or "": the first
// call at its moment, each other at its distance from the one before.
func pluginTimingDiff(rec, rep object) string {
	a, b := pluginCalls(rec), pluginCalls(rep)
	for _, k := range decode.SortedKeys(a) {
		x, y, name := a[k], b[k], strings.TrimSuffix(k, "/")
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		if math.Abs(x[0].at-y[0].at) > 2.5+share(x[0].at, 60)*x[0].at {
			return fmt.Sprintf("%s %s: first at %vs, recorded %vs", name, x[0].method, y[0].at, x[0].at)
		}
		for i := 1; i < min(len(x), len(y)) && x[i].like(y[i]); i++ {
			ga, gb := x[i].at-x[i-1].at, y[i].at-y[i-1].at
			allowed := 2 + share(max(ga, gb), 55)*max(ga, gb)
			if math.Abs(ga-gb) > allowed && math.Abs(x[i].at-y[i].at) > allowed {
				return fmt.Sprintf("%s %s: %.1fs after the call before, recorded %.1fs", name, x[i].method, gb, ga)
			}
		}
	}
	return ""
}

// share is how much of a time may differ. What waits for a pod's resync comes after 60 to
// 90 s.
func share(t, long float64) float64 {
	if t < long {
		return 0.1
	}
	return 0.25
}
