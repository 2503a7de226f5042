package cluster

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var caseSeeds = flag.Uint64("cluster.seeds", 2, "with how many seeds TestSeedsRestAlike replays each case")

// TestSeedsRestAlike holds that chance decides when things happen, and nothing of what is there in
// the end: with each seed the statuses at the end of a case are the same. What differs must be
// listed, with the reason.
func TestSeedsRestAlike(t *testing.T) {
	b, err := os.ReadFile("testdata/restless.json")
	if err != nil {
		t.Fatal(err)
	}
	restless := map[string]string{}
	if err := json.Unmarshal(b, &restless); err != nil {
		t.Fatal(err)
	}
	files := recordingFiles(t)
	for name, reason := range restless {
		if _, err := os.Stat(filepath.Join(recordings, name+".json")); err != nil || strings.TrimSpace(reason) == "" {
			t.Errorf("restless.json: %s: %q: %v", name, reason, err)
		}
	}
	alike := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		c := readCase(t, file)
		var one map[string]string
		differs := ""
		for seed := uint64(1); seed <= *caseSeeds && differs == ""; seed++ {
			seen, err := c.Replay(Options{Seed: seed})
			if err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			now := atEnd(t, seen)
			if one == nil {
				one = now
			}
			if d := firstDifference(one, now); d != "" {
				differs = fmt.Sprintf("seeds 1 and %d: %s", seed, d)
			}
		}
		switch reason, listed := restless[name]; {
		case differs != "" && !listed:
			t.Errorf("%s: %s", name, differs)
		case differs != "":
			t.Logf("%s: %s (%s)", name, differs, reason)
		default:
			alike++
		}
	}
	t.Logf("%d of %d cases end alike with seeds 1 to %d", alike, len(files), *caseSeeds)
}

// atEnd are the last states: of objects and nodes by name, of pods by owner without their numbers
// and nodes, which a seed may choose among equal ones, of endpoints by service without addresses.
func atEnd(t *testing.T, seen *Observation) map[string]string {
	t.Helper()
	b, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Objects, Nodes map[string][]object
	}
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, states := range o.Objects {
		if len(states) > 0 {
			out[name] = dump(without(states[len(states)-1], "at"))
		}
	}
	// Which of several nodes a pod was on decides which of them is changed: they are counted.
	var nodes []string
	for _, states := range o.Nodes {
		if len(states) > 0 {
			nodes = append(nodes, dump(without(states[len(states)-1], "at")))
		}
	}
	slices.Sort(nodes)
	out["nodes"] = strings.Join(nodes, "\n")
	pods := map[string][]string{}
	for _, p := range seen.Pods {
		if p.Gone != nil {
			continue
		}
		owner, ready := "", any(nil)
		if p.Owner != nil {
			owner = *p.Owner
		}
		if n := len(p.Ready); n > 0 {
			ready = p.Ready[n-1][1:]
		}
		pods[owner] = append(pods[owner], fmt.Sprintf("%s %s ready %v bound %v going %v", p.Phase, p.Image, ready, p.Bound != nil, p.Deleting != nil))
	}
	for owner, list := range pods {
		slices.Sort(list)
		out["pods of "+owner] = strings.Join(list, "\n")
	}
	return out
}

func firstDifference(a, b map[string]string) string {
	var names []string
	for _, m := range []map[string]string{a, b} {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a[name] != b[name] {
			return fmt.Sprintf("%s:\n%s\n%s", name, a[name], b[name])
		}
	}
	return ""
}
