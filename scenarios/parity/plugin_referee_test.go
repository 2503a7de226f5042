package parity

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// pluginReferee asks judge_plugins.py which aspects differ, trial by trial.
const pluginReferee = `
import json, sys
sys.path.insert(0, sys.argv[1]); sys.path.insert(0, sys.argv[1] + '/../recordings')
import judge_plugins
out = {}
for t in json.load(open(sys.argv[2])):
    out[t['name']] = sorted(judge_plugins.verdict(t, t['rep']))
json.dump(out, sys.stdout)
`

// TestPluginReferee holds the comparison here to judge_plugins.py, as TestReferee does for
// pods.
func TestPluginReferee(t *testing.T) {
	if testing.Short() {
		t.Skip("replays each recording: nothing more for the race detector")
	}
	files, err := filepath.Glob(filepath.Join(pluginRecordings, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var trials []trial
	for _, file := range files {
		c := readPluginCase(t, file)
		seen, err := c.Replay(Options{})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		rep, err := asObject(seen)
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, trial{c.Name + " replayed", c.runs, rep})
		if len(c.runs) > 1 {
			trials = append(trials, trial{c.Name + " again", c.runs[:1], c.runs[1]})
		}
		for i, mutate := range pluginMutations() {
			run := copyOf(t, c.runs[0])
			mutate(run)
			trials = append(trials, trial{fmt.Sprintf("%s mutated %d", c.Name, i), c.runs[:1], run})
		}
	}
	holdToReferee(t, pluginReferee, pluginRecordings, trials, judgePlugins, 40)
}

// pluginMutations are what a replay could get wrong: of its first pod, and of what plugins
// showed.
func pluginMutations() []func(run object) {
	var out []func(run object)
	for _, mutate := range mutations {
		out = append(out, func(run object) {
			pods := child(run, "pods")
			if names := decode.SortedKeys(pods); len(names) > 0 && len(children(child(pods, names[0]), "status")) > 0 {
				mutate(child(pods, names[0]))
			}
		})
	}
	each := func(list string, fn func(i int, o object)) func(run object) {
		return func(run object) {
			for i, o := range children(run, list) {
				fn(i, o)
			}
		}
	}
	return append(out,
		func(run object) { drop(run, "plugins", len(children(run, "plugins"))-1) },
		func(run object) { drop(run, "plugins", 4) },
		func(run object) { drop(run, "resources", 0) },
		func(run object) { drop(run, "tokenRequests", 0) },
		func(run object) { drop(run, "snapshots", 0) },
		each("plugins", func(i int, o object) { o["at"] = number(o, "at") + 4*float64(i) }),
		each("plugins", func(_ int, o object) {
			if text(o, "method") == "Allocate" {
				o["code"] = "Unavailable"
			}
		}),
		each("plugins", func(_ int, o object) {
			if list := children(child(o, "req"), "container_requests"); len(list) > 0 {
				list[0]["devices_ids"] = []any{"x"}
			}
		}),
		each("resources", func(_ int, o object) { o["at"] = number(o, "at") + 12 }),
		each("resources", func(_ int, o object) {
			for _, v := range child(o, "resources") {
				v.(object)["capacity"] = "7"
			}
		}),
		each("tokenRequests", func(_ int, o object) { o["code"] = 403.0 }),
		each("tokenRequests", func(_ int, o object) { o["at"] = number(o, "at") + 5 }),
		each("snapshots", func(_ int, o object) { o["value"] = object{"what": "else"} }),
		each("snapshots", func(_ int, o object) { o["at"] = number(o, "at") + 2 }),
		func(run object) {
			for _, p := range child(run, "pods") {
				for _, c := range children(p.(object), "cri") {
					if f := child(c, "config"); f != nil {
						delete(f, "mounts")
						delete(f, "envs")
					}
				}
			}
		},
		func(run object) {
			for _, p := range child(run, "pods") {
				for _, s := range children(p.(object), "status") {
					for _, c := range child(s, "containers") {
						for _, r := range children(c.(object), "allocatedResourcesStatus") {
							for _, d := range children(r, "resources") {
								d["health"] = "Unhealthy"
							}
						}
					}
				}
			}
		},
	)
}
