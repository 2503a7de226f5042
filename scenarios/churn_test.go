package scenarios_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
)

// churnText has two places on each of two nodes, whose pods live for a minute.
const churnText = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: churn}
spec:
  duration: 10m
  nodes: [{name: worker, count: 2}]
  images: [{name: "app:1", present: true}]
  timeline:
  - at: 10s
    template:
      perNode: 2
      lifetime: 60s
      until: 310s
      manifest: {apiVersion: v1, kind: Pod, metadata: {name: job}, spec: {containers: [{name: main, image: "app:1"}]}}
`

// life is when a pod was created, marked for deletion and removed, in seconds; 0
// is never.
type life struct {
	node                    string
	created, ended, removed float64
}

// churned runs the scenario and returns its pods' lives.
func churned(t *testing.T, text string) map[string]life {
	t.Helper()
	var out bytes.Buffer
	res := run(t, parse(t, text), scenarios.RunOptions{Trace: &out, Census: true})
	if len(res.Errors) > 0 || !res.Passed {
		t.Fatalf("passed %v, %v, leaks %v", res.Passed, res.Errors, res.Census.Leaks)
	}
	lives := map[string]life{}
	for line := range strings.Lines(out.String()) {
		var r struct {
			T                                     float64
			Kind, Object, Verb, Node, By, Removed string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(r.Object, "pod default/")
		if !ok || r.Kind != "api" {
			continue
		}
		l := lives[name]
		switch {
		case r.Verb == "create":
			l.node, l.created = r.Node, r.T
		case r.Verb == "delete" && r.Removed == "true":
			l.removed = r.T
		case r.Verb == "delete" && r.By == "":
			l.ended = r.T
		}
		lives[name] = l
	}
	return lives
}

func TestPodsComeAndGo(t *testing.T) {
	lives := churned(t, churnText)
	// At 10 s, and again each 61 to 63 s until 310 s.
	if len(lives) != 5*4 {
		t.Errorf("%d pods: %v", len(lives), slices.Sorted(maps.Keys(lives)))
	}
	places := map[string]int{}
	for i := range len(lives) {
		name := fmt.Sprintf("job-%d", i)
		l, ok := lives[name]
		if !ok {
			t.Fatalf("there was no %s", name)
		}
		places[l.node]++
		last := i >= 16
		switch d := l.ended - l.created; {
		case last && l.ended != 0:
			t.Errorf("%s ended at %vs", name, l.ended)
		case !last && (d < 59.999 || d > 60.001):
			t.Errorf("%s lived for %vs", name, d)
		}
		// Whoever takes the place comes within a second of the removal.
		if !last && !slices.ContainsFunc(slices.Collect(maps.Values(lives)), func(n life) bool {
			return n.node == l.node && n.created > l.removed && n.created <= l.removed+1.001
		}) {
			t.Errorf("nobody came after %s, which was removed at %vs", name, l.removed)
		}
	}
	if want := map[string]int{"worker-0": 10, "worker-1": 10}; !maps.Equal(places, want) {
		t.Errorf("pods by node: %v", places)
	}
}

func TestPodsComeAndGoThroughFaults(t *testing.T) {
	for _, tt := range []struct {
		name, action string
		from, to     float64 // when worker-1's second pods come
	}{
		{"without", "", 70, 73},
		// A pod is there until its kubelet says that it has ended.
		{"kubelet down", "  - {at: 30s, stopKubelet: {node: worker-1}}\n  - {at: 200s, startKubelet: {node: worker-1}}\n", 200, 206},
		{"machine off", "  - {at: 30s, powerCut: {node: worker-1, for: 170s}}\n", 200, 210},
		{"API away", "  - {at: 60s, fault: {node: worker-1, partition: {for: 60s}}}\n", 120, 150},
		// Somebody else's deletion leaves the place empty until the lifetime's end.
		{"deleted", "  - {at: 20s, delete: {name: job-2}}\n  - {at: 20s, delete: {name: job-3}}\n", 70, 71},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var second []float64
			for name, l := range churned(t, churnText+tt.action) {
				if l.node == "worker-1" && name != "job-2" && name != "job-3" {
					second = append(second, l.created)
				}
			}
			slices.Sort(second)
			if len(second) < 2 || second[0] < tt.from || second[1] > tt.to {
				t.Errorf("later pods of worker-1 came at %v, the first two not within %v and %v", second, tt.from, tt.to)
			}
		})
	}
}

func TestComingAndGoingIsDeterministic(t *testing.T) {
	text := strings.Replace(churnText, "lifetime: 60s", "lifetime: 5s..40s", 1)
	drawn := map[float64]bool{}
	for name, l := range churned(t, text) {
		d := l.ended - l.created
		if drawn[d] = true; l.ended > 0 && (d < 5 || d > 40.001) {
			t.Errorf("%s lived for %vs", name, d)
		}
	}
	if len(drawn) < 10 {
		t.Errorf("only %d different lifetimes", len(drawn))
	}
	seen := map[string]uint64{}
	for seed := range uint64(3) {
		want := ""
		for _, workers := range []int{1, 2, 8} {
			got := run(t, parse(t, text), scenarios.RunOptions{Seed: &seed, Workers: workers}).Summary.Hash
			if want != "" && got != want {
				t.Errorf("seed %d, %d workers: hash %s, before %s", seed, workers, got, want)
			}
			want = got
		}
		if other, ok := seen[want]; ok {
			t.Errorf("seeds %d and %d draw the same", other, seed)
		}
		seen[want] = seed
	}
}

func TestChurnMistakes(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"lifetime: 60s", "lifetime: 500ms", "test.yaml:12:17: spec.timeline[0].template.lifetime: 500ms is less than 1s"},
		{"lifetime: 60s", "lifetime: 60", "test.yaml:12:17: spec.timeline[0].template.lifetime: "},
		{"lifetime: 60s", "lifetime: 2m..1m", "test.yaml:12:17: spec.timeline[0].template.lifetime: "},
		{"lifetime: 60s", "lifetme: 60s", `test.yaml:12:7: spec.timeline[0].template.lifetme: unknown field "lifetme" (did you mean "lifetime"?)`},
		{"      lifetime: 60s\n", "", "test.yaml:12:14: spec.timeline[0].template.until: goes with lifetime only"},
		{"until: 310s", "until: 10s", "test.yaml:13:14: spec.timeline[0].template.until: 10s is not after the action's time, 10s"},
		{"until: 310s", "until: -1s", "test.yaml:13:14: spec.timeline[0].template.until: "},
	} {
		text := strings.Replace(churnText, tt.from, tt.to, 1)
		_, err := scenarios.Parse("test.yaml", []byte(text), scenarios.LoadOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.to, err, tt.want)
		}
	}
}
