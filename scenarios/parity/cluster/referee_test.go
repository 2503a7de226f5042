package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// trial is a run that claims to be like a case's recorded ones, and in which aspects judge_cluster.py
// says that it differs.
type trial struct {
	Name string          `json:"name"`
	Case string          `json:"case"`
	Of   int             `json:"of"` // how many of the recorded runs count; 0: all
	Rep  json.RawMessage `json:"rep"`
	Want []string        `json:"want"`
}

// referee makes trials of all recordings (each one's second run as a replay of its first, spoilt
// copies) and of replays, and says what it thinks of them.
const referee = `
import glob, json, os, random, sys
sys.path.insert(0, sys.argv[1])
import judge_cluster as judge
judge.SHORT, judge.SLACK, judge.NODE_SLACK = 2.6, 4.0, 14.0
replays = json.load(open(sys.argv[2]))
out = []
for f in sorted(glob.glob(sys.argv[1] + '/*.json')):
    d = json.load(open(f)); name = d['name']
    def trial(what, of, rep):
        part = dict(d, runs=d['runs'][:of] if of else d['runs'])
        out.append(dict(name=name + ' ' + what, case=os.path.basename(f), of=of, rep=rep, want=sorted(judge.judge(part, rep))))
    if name in replays: trial('replayed', 0, replays[name])
    if len(d['runs']) > 1: trial('again', 1, d['runs'][1])
    for kind, m in judge.mutations(d, random.Random(name)): trial(kind, 0, m)
json.dump(out, open(sys.argv[3], 'w'))
`

// TestReferee holds the comparison here to judge_cluster.py, which is the rule.
func TestReferee(t *testing.T) {
	if testing.Short() {
		t.Skip("replays each recording: nothing more for the race detector")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the referee needs python3:", err)
	}
	cases, replays := map[string]*Case{}, map[string]*Observation{}
	for _, file := range recordingFiles(t) {
		c := readCase(t, file)
		seen, err := c.Replay(Options{})
		if err != nil {
			t.Fatal(err)
		}
		cases[filepath.Base(file)], replays[c.Name] = c, seen
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "replays.json"), filepath.Join(dir, "trials.json")
	b, err := json.Marshal(replays)
	if err == nil {
		err = os.WriteFile(in, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command(python, "-B", "-c", referee, recordings, in, out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if b, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	var trials []trial
	if err := json.Unmarshal(b, &trials); err != nil {
		t.Fatal(err)
	}
	passes, differs := 0, 0
	for i := range trials {
		x := &trials[i]
		c := cases[x.Case]
		runs := c.runs
		if x.Of > 0 {
			runs = runs[:x.Of]
		}
		rep, err := readRun(x.Rep)
		if err != nil {
			t.Fatal(err)
		}
		raw := object{}
		for k, v := range c.raw {
			raw[k] = v
		}
		raw["runs"] = c.raw["runs"].([]any)[:len(runs)]
		verdict := judge(raw, runs, rep)
		got := []string{}
		for _, d := range verdict {
			got = append(got, string(d.Aspect))
		}
		slices.Sort(got)
		if !slices.Equal(got, x.Want) {
			t.Errorf("%s: differs in %v, judge_cluster.py says in %v\n%s", x.Name, got, x.Want, verdict)
		}
		if len(got) == 0 {
			passes++
		} else {
			differs++
		}
	}
	t.Logf("%d trials pass, %d differ", passes, differs)
	if passes < 250 || differs < 1000 {
		t.Errorf("%d trials pass and %d differ: too few of one kind to tell", passes, differs)
	}
}
