package scenarios_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/compare"
)

// comparedText has a pod that stays, one that is OOM-killed after 20 s, for ever
// again, and one that comes when a node of two pods is full.
const comparedText = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: compared}
spec:
  duration: 100s
  nodes:
  - name: worker
    kubelet: {maxPods: 10}
  images: [{name: "app:1", size: 10M, pull: {takes: 1s}}]
  programs:
  - {match: {pod: hungry}, runFor: 20s, oomKilled: true}
  timeline:
  - at: 10s
    apply:
      manifest:
      - {apiVersion: v1, kind: Pod, metadata: {name: stays}, spec: {nodeName: worker, containers: [{name: main, image: "app:1", resources: {requests: {cpu: 100m}}}]}}
      - {apiVersion: v1, kind: Pod, metadata: {name: hungry}, spec: {nodeName: worker, containers: [{name: main, image: "app:1"}]}}
  - at: 50s
    apply:
      manifest: {apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {nodeName: worker, containers: [{name: main, image: "app:1", imagePullPolicy: Always}]}}
  expect:
  - {at: end, that: 'ready(pod("default/late"))'}
`

// compared runs the two sides with the seeds.
func compared(t *testing.T, a, b string, seeds ...uint64) *compare.Comparison {
	t.Helper()
	c := compare.New(parse(t, a), parse(t, b))
	c.Seeds = seeds
	for _, s := range []*compare.Side{&c.A, &c.B} {
		for i := range seeds {
			s.Runs = append(s.Runs, run(t, s.Scenario, scenarios.RunOptions{Seed: &seeds[i], Metrics: true}))
		}
	}
	return c
}

func TestCompare(t *testing.T) {
	full := strings.Replace(comparedText, "maxPods: 10", "maxPods: 2", 1)
	c := compared(t, comparedText, full, 1, 2, 3)
	if got := fmt.Sprint(c.Differences, c.Warnings); got != "[{spec.nodes[0].kubelet.maxPods 10 2}] []" {
		t.Errorf("differences: %s", got)
	}
	var out bytes.Buffer
	c.WriteText(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"spec.nodes[0].kubelet.maxPods A: 10 B: 2",
		"3 seeds, 1-3: means",
		"OOM kills 3 3 =", // after 20 s; again at once; 10 s later again
		"container restarts 2 2 =",
		"rejected pods 0 1 +1 OutOfpods 0 1 +1",
		"image pulls 3 2 -1", // the first two ask at once
		"pulled bytes 10.0 MB 10.0 MB =",
		"time in MemoryPressure 0s 0s =",
		"A: 1 expectation held",
		"B: FAILED in 3 of 3 runs seed 1: at end: ready(pod(\"default/late\"))",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if c.Passed() {
		t.Error("passed")
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Seeds []int
		Pods  []struct {
			Pod, QoS string
			A, B     struct{ Evictions, OOMKills, Restarts, Availability float64 }
		}
		A, B struct {
			Passed bool
			Runs   []struct {
				Metrics struct {
					OOMKills               []struct{ Pod, Container, Node string }
					AvailabilityByWorkload []struct {
						Name                       string
						ReadySeconds, AskedSeconds float64
					}
				}
			}
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range doc.Pods {
		got[p.Pod] = fmt.Sprintf("%s %v %v %v/%v", p.QoS, p.A.OOMKills, p.A.Restarts, p.A.Availability > 0.9, p.B.Availability > 0)
	}
	if want := "map[default/hungry:BestEffort 3 2 false/true default/late:BestEffort 0 0 true/false]"; fmt.Sprint(got) != want {
		t.Errorf("pods: %v", got)
	}
	m := doc.A.Runs[0].Metrics
	if len(m.OOMKills) != 3 || m.OOMKills[0].Pod != "default/hungry" || m.OOMKills[0].Container != "main" || m.OOMKills[0].Node != "worker" {
		t.Errorf("OOM kills: %v", m.OOMKills)
	}
	for _, a := range m.AvailabilityByWorkload {
		if want := map[string]float64{"default/stays": 90, "default/hungry": 90, "default/late": 50}[a.Name]; a.AskedSeconds > want || a.AskedSeconds < want-0.1 {
			t.Errorf("%s was asked for %v s, want %v", a.Name, a.AskedSeconds, want)
		}
	}
	if !doc.A.Passed || doc.B.Passed || fmt.Sprint(doc.Seeds) != "[1 2 3]" {
		t.Errorf("passed %v and %v, seeds %v", doc.A.Passed, doc.B.Passed, doc.Seeds)
	}
}

func TestCompareWarnsOfOtherWorkloads(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"runFor: 20s", "runFor: 30s", "[A and B do not have the same workload: spec.programs[0].runFor]"},
		{"name: late}", "name: later}", "[A and B do not have the same workload: spec.timeline[1].apply.manifest.metadata.name]"},
		{"- name: worker\n", "- name: worker\n    capacity: {cpu: 8}\n", "[A and B do not have the same machines: spec.nodes[0].capacity.cpu]"},
		{"- name: worker\n", "- name: worker\n    usage: {memory: 1Gi}\n", "[A and B do not have the same machines: spec.nodes[0].usage.memory]"},
		{"maxPods: 10", "maxPods: 9", "[]"},
		{"name: compared", "name: other", "[]"},
		{"at: end, that: 'ready", "at: end, that: '!ready", "[]"},
	} {
		c := compare.New(parse(t, comparedText), parse(t, strings.Replace(comparedText, tt.old, tt.new, 1)))
		if got := fmt.Sprint(c.Warnings); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.new, got, tt.want)
		}
	}
}

// TestMeasuringChangesNothing compares the traces with and without.
func TestMeasuringChangesNothing(t *testing.T) {
	plain := run(t, parse(t, comparedText), scenarios.RunOptions{})
	measured := run(t, parse(t, comparedText), scenarios.RunOptions{Metrics: true, Census: true})
	if plain.Summary.Hash != measured.Summary.Hash {
		t.Errorf("hash %s without metrics and census, %s with", plain.Summary.Hash, measured.Summary.Hash)
	}
	if plain.Metrics != nil || plain.Census != nil || len(measured.Census.Leaks) > 0 || measured.Census.Pods != 3 {
		t.Errorf("%+v", measured.Census)
	}
}

// TestCompareUnderPressure has a machine run low on memory at 60 s, by its own
// use, on one side only: there the pod over its request is evicted, once.
func TestCompareUnderPressure(t *testing.T) {
	const text = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: pressed}
spec:
  duration: 200s
  nodes:
  - name: worker
    capacity: {memory: 8Gi}
    kubelet: {evictionHard: {memory.available: 100Mi}}
    usage: {memory: {steps: [{value: 1Gi}, {at: 60s, value: 6Gi}, {at: 120s, value: 1Gi}]}}
  images: [{name: "app:1", present: true}]
  programs:
  - {match: {pod: greedy}, memory: 1Gi}
  - {match: {pod: modest}, memory: 100Mi}
  timeline:
  - at: 10s
    apply:
      manifest:
      - {apiVersion: v1, kind: Pod, metadata: {name: greedy}, spec: {containers: [{name: main, image: "app:1", resources: {requests: {memory: 100Mi}}}]}}
      - {apiVersion: v1, kind: Pod, metadata: {name: modest}, spec: {containers: [{name: main, image: "app:1", resources: {requests: {memory: 200Mi}}}]}}
`
	c := compared(t, text, strings.Replace(text, "available: 100Mi", "available: 1500Mi", 1), 5)
	a, b := c.A.Runs[0].Metrics, c.B.Runs[0].Metrics
	if len(a.Evictions)+len(a.Pressure) > 0 {
		t.Errorf("A: %v %v", a.Evictions, a.Pressure)
	}
	if len(b.Evictions) != 1 || b.Evictions[0].Pod != "default/greedy" || b.Evictions[0].QoS != "Burstable" || b.Evictions[0].Reason != "memory" || b.Evictions[0].Node != "worker" {
		t.Errorf("B: %v", b.Evictions)
	}
	if len(b.Pressure) != 1 || b.Pressure[0].Condition != "MemoryPressure" || b.Pressure[0].Times != 1 || b.Pressure[0].For < 60e9 {
		t.Errorf("B: %v", b.Pressure)
	}
	for _, m := range b.Availability {
		if share := m.Ready.Seconds() / m.Asked.Seconds(); m.Name == "default/modest" && share < 0.98 || m.Name == "default/greedy" && (share < 0.2 || share > 0.5) {
			t.Errorf("%s was ready for %v of %v", m.Name, m.Ready, m.Asked)
		}
	}
}
