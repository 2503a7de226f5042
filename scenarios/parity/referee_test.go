package parity

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// trial is one comparison: recorded runs and a run that claims to be like them.
type trial struct {
	Name string   `json:"name"`
	Runs []object `json:"runs"`
	Rep  object   `json:"rep"`
}

// referee asks judge.py which aspects differ, trial by trial.
const referee = `
import json, sys
sys.path.insert(0, sys.argv[1])
import judge
out = {}
for t in json.load(open(sys.argv[2])):
    out[t['name']] = sorted(judge.judge(t, t['rep']))
json.dump(out, sys.stdout)
`

// TestReferee holds the comparison here to judge.py, which is the rule: on the
// replays, on each recording's second run as a replay of its first, and on
// mutated recordings.
func TestReferee(t *testing.T) {
	if testing.Short() {
		t.Skip("replays each recording: nothing more for the race detector")
	}
	holdToReferee(t, referee, recordings, allTrials(t), judge, 100)
}

// holdToReferee asks a referee in Python, in the directory of its recordings, and compares.
// At least so many trials pass, and differ.
func holdToReferee(t *testing.T, script, at string, trials []trial, judge func([]object, object) Verdict, atLeast int) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the referee needs python3:", err)
	}
	file := filepath.Join(t.TempDir(), "trials.json")
	if err := os.WriteFile(file, encode(trials), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-B", "-c", script, at, file)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	passes, differs := 0, 0
	for _, x := range trials {
		got := []string{}
		verdict := judge(x.Runs, x.Rep)
		for _, d := range verdict {
			got = append(got, string(d.Aspect))
		}
		slices.Sort(got)
		if !slices.Equal(got, want[x.Name]) {
			t.Errorf("%s: differs in %v, the referee says in %v\n%s", x.Name, got, want[x.Name], verdict)
		}
		if len(got) == 0 {
			passes++
		} else {
			differs++
		}
	}
	t.Logf("%d trials pass, %d differ", passes, differs)
	if passes < atLeast || differs < atLeast {
		t.Errorf("%d trials pass and %d differ: too few of one kind to tell", passes, differs)
	}
}

func allTrials(t *testing.T) []trial {
	var out []trial
	for _, file := range recordingFiles(t) {
		c := readCase(t, file)
		seen, err := c.Replay(Options{})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		rep, err := asObject(seen)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, trial{c.Name + " replayed", c.runs, rep})
		if len(c.runs) > 1 {
			out = append(out, trial{c.Name + " again", c.runs[:1], c.runs[1]})
		}
		for i, mutate := range mutations {
			run := copyOf(t, c.runs[0])
			pod := run
			if pods := child(run, "pods"); pods != nil {
				names := decode.SortedKeys(pods)
				if len(names) == 0 {
					continue
				}
				pod = child(pods, names[i%len(names)])
			}
			mutate(pod)
			out = append(out, trial{fmt.Sprintf("%s mutated %d", c.Name, i), c.runs[:1], run})
		}
	}
	return out
}

func copyOf(t *testing.T, o object) object {
	t.Helper()
	var out object
	if err := json.Unmarshal(encode(o), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// mutations are what a replay could get wrong.
var mutations = []func(pod object){
	func(o object) { drop(o, "events", 0) },
	func(o object) { drop(o, "cri", 1) },
	func(o object) { drop(o, "status", 1) },
	func(o object) {
		for _, s := range children(o, "status") {
			for _, k := range kinds {
				for _, c := range child(s, k) {
					if m := c.(object); m["exitCode"] != nil {
						m["exitCode"] = number(m, "exitCode") + 1
					}
				}
			}
		}
	},
	func(o object) {
		for _, c := range children(o, "cri") {
			if c["timeout"] != nil {
				c["timeout"] = number(c, "timeout") + 7
			}
		}
	},
	func(o object) {
		list := children(o, "status")
		for _, c := range child(list[len(list)/2], "containers") {
			m := c.(object)
			m["ready"] = !truth(m, "ready")
		}
	},
	func(o object) {
		for i, s := range children(o, "status") {
			s["at"] = number(s, "at") + 3*float64(i)
		}
	},
	func(o object) {
		for _, e := range children(o, "events") {
			e["message"] = strings.ReplaceAll(text(e, "message"), "container", "pod")
		}
	},
	func(o object) {
		for _, e := range children(o, "events") {
			e["at"] = 100 - number(e, "at")
		}
	},
	func(o object) {
		list := children(o, "status")
		o["status"] = toAny(list[:len(list)-1])
	},
	func(o object) {
		for _, e := range children(o, "events") {
			e["count"] = number(e, "count") * 2
		}
	},
	func(o object) {
		list := children(o, "cri")
		o["cri"] = toAny(append(list, list[max(0, len(list)-2):]...))
	},
}

func drop(o object, key string, i int) {
	if list := children(o, key); i >= 0 && i < len(list) {
		o[key] = toAny(slices.Delete(list, i, i+1))
	}
}

func toAny(list []object) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}
