package scenarios_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

const shaken = `
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: shaken}
spec:
  duration: 10m
  nodes: [{name: worker}]
  programs:
  - {match: {pod: crash}, runFor: 20s..40s, exit: 1}
  timeline:
  - at: 1s
    template:
      replicas: 5
      manifest: &pod
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: app, image: "app:1"}]}
  - at: 1s
    apply:
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: crash}
        spec: {containers: [{name: app, image: "app:1"}]}
  - {at: 1m, restartKubelet: {node: "worker*", down: 5s}}
  - {at: 2m, powerCut: {node: "worker*", for: 30s}}
  - {at: 4m, fault: {node: "worker*", partition: {for: 1m}}}
  - {at: 6m, fault: {node: "worker*", cri: {method: "*", hang: true, for: 30s}}}
  expect:
  - {by: end, that: 'pods().filter(p, p.metadata.name != "crash").all(p, ready(p))'}
`

func parse(t testing.TB, text string, set ...string) *scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Parse("test.yaml", []byte(text), scenarios.LoadOptions{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func run(t testing.TB, s *scenarios.Scenario, opts scenarios.RunOptions) *scenarios.Result {
	t.Helper()
	res, err := scenarios.Run(context.Background(), s, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRunsLeaveNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := parse(t, shaken)
	for _, until := range []time.Duration{0, 62 * time.Second, 2*time.Minute + time.Second, 250 * time.Second, 370 * time.Second} {
		run(t, s, scenarios.RunOptions{Until: until, Workers: 2})
	}
	goleak.VerifyNone(t, before)
}

func TestHashesRepeat(t *testing.T) {
	s := parse(t, shaken, "spec.nodes[0].count=3")
	hashes := map[uint64]string{}
	for seed := range uint64(3) {
		for _, workers := range []int{1, 2, 8, 1} {
			res := run(t, s, scenarios.RunOptions{Seed: &seed, Workers: workers})
			if want := hashes[seed]; want != "" && res.Summary.Hash != want {
				t.Errorf("seed %d, %d workers: hash %s, before %s", seed, workers, res.Summary.Hash, want)
			}
			hashes[seed] = res.Summary.Hash
		}
	}
	if hashes[0] == hashes[1] || hashes[1] == hashes[2] {
		t.Errorf("seeds share a hash: %v", hashes)
	}
}

// What is only looked at must not change what happens.
func TestLookingChangesNothing(t *testing.T) {
	var timeline, jsonl bytes.Buffer
	want := run(t, parse(t, shaken), scenarios.RunOptions{}).Summary.Hash
	got := run(t, parse(t, shaken), scenarios.RunOptions{Timeline: &timeline, Trace: &jsonl, Verbose: true, Clock: time.Now}).Summary.Hash
	if got != want {
		t.Error("with a timeline and a trace the hash differs")
	}
	if got := run(t, parse(t, shaken, `spec.expect[0].that=time() < duration("1h")`), scenarios.RunOptions{}).Summary.Hash; got != want {
		t.Error("with another expectation the hash differs")
	}
	if n := strings.Count(jsonl.String(), "\n"); n < 100 {
		t.Errorf("%d lines of trace", n)
	}
	if !strings.Contains(timeline.String(), "power is cut") {
		t.Error("the timeline lacks the power cut")
	}
}

func TestInterruptedRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := parse(t, shaken)
	res, err := scenarios.Run(ctx, s, scenarios.RunOptions{Progress: func(p scenarios.Progress) {
		if p.Now > 3*time.Minute {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Interrupted || res.Passed || res.Summary.Virtual > 4*time.Minute || res.Verdicts[0].Outcome != expect.Held && res.Verdicts[0].Outcome != expect.Undecided {
		t.Errorf("%+v", res)
	}
}

func TestFailuresTellWhatLedToThem(t *testing.T) {
	s := parse(t, shaken, `spec.expect[0]={at: 90s, that: 'restarts("default/crash") == 0'}`)
	res := run(t, s, scenarios.RunOptions{})
	v := res.Verdicts[0]
	if res.Passed || v.Outcome != expect.Failed {
		t.Fatalf("%+v", v)
	}
	if !slices.ContainsFunc(v.History, func(l string) bool { return strings.Contains(l, "exits with code 1") }) {
		t.Errorf("the history lacks the exit:\n%s", strings.Join(v.History, "\n"))
	}
	if len(res.Logs) == 0 {
		t.Error("no kubelet log lines are kept")
	}
	var text bytes.Buffer
	res.WriteText(&text, true)
	for _, want := range []string{"FAILED", `restarts("default/crash") = `, "--until 1m29.999s", "--seed 0"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
}

// TestHistoryTellsRepeatedEventsOnce has a node that stays low on memory: that the
// kubelet says so every ten seconds must not hide what it did about it.
func TestHistoryTellsRepeatedEventsOnce(t *testing.T) {
	res := run(t, parse(t, `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: low}
spec:
  duration: 3m
  nodes: [{name: worker, capacity: {memory: 4Gi}, usage: {memory: {steps: [{value: 0}, {at: 1m, value: 4000Mi}]}}}]
  timeline:
  - {at: 1s, apply: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: "web:1"}]}}}}
  expect:
  - {at: end, that: 'usage("worker").memoryAvailable > 4000000000'}
`), scenarios.RunOptions{})
	text := strings.Join(res.Verdicts[0].History, "\n")
	if !strings.Contains(text, "Evicted: The node was low on resource: memory") || strings.Count(text, "EvictionThresholdMet") > 4 {
		t.Errorf("history:\n%s", text)
	}
}

func TestWarnsOfWhatIsNotActedOn(t *testing.T) {
	s := parse(t, strings.Replace(shaken, `image: "app:1"}]}`, `image: "app:1"}], volumes: [{name: disk, iscsi: {targetPortal: "10.0.0.1:3260", iqn: "iqn.2001-04.com.example:disk", lun: 0}}]}`, 1))
	res := run(t, s, scenarios.RunOptions{})
	if len(res.Warnings) != 2 || !strings.Contains(res.Warnings[0], "spec.volumes[0]") || !strings.Contains(res.Warnings[1], "these images run: app:1.") {
		t.Errorf("warnings: %q", res.Warnings)
	}
	res = run(t, parse(t, `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: dropped}
spec:
  duration: 10s
  nodes: [{name: worker}]
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {name: db}
        spec:
          updateStrategy: {rollingUpdate: {maxUnavailable: 2}}
          selector: {matchLabels: {app: db}}
          template: {metadata: {labels: {app: db}}, spec: {containers: [{name: app, image: "app:1"}]}}
`), scenarios.RunOptions{})
	if len(res.Warnings) != 2 || res.Warnings[0] != "statefulset default/db: spec.updateStrategy.rollingUpdate.maxUnavailable: dropped, the gate MaxUnavailableStatefulSet is off" {
		t.Errorf("warnings: %q", res.Warnings)
	}
}

func TestFailedActionsFailTheRun(t *testing.T) {
	s := parse(t, shaken, "spec.timeline[2]={at: 1m, delete: {kind: Pod, name: nobody}}", "spec.expect=[]")
	res := run(t, s, scenarios.RunOptions{})
	if res.Passed || len(res.Errors) != 1 || !strings.Contains(res.Errors[0], `"nobody" not found`) {
		t.Errorf("passed %v, errors %q", res.Passed, res.Errors)
	}
}

// BenchmarkOneNode is a one-node scenario of ten virtual minutes as a warm
// process runs it: loading, start and end included.
//
//	go test ./scenarios -run '^$' -bench OneNode -benchtime 20x
func BenchmarkOneNode(b *testing.B) {
	data, err := os.ReadFile("library/first/one-pod.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		list, err := scenarios.Parse("one-pod.yaml", data, scenarios.LoadOptions{Set: []string{"spec.duration=10m"}})
		if err != nil {
			b.Fatal(err)
		}
		if res := run(b, list[0], scenarios.RunOptions{}); !res.Passed {
			b.Fatal("fails")
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
}

// TestWarnsOfProbedNames: a name that a probe asks is named, and that the port isn't served
// while the container is started again for it is no reason to blame the port.
func TestWarnsOfProbedNames(t *testing.T) {
	res := run(t, parse(t, `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: names}
spec:
  duration: 5m
  nodes: [{name: worker}]
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: api}
        spec:
          initContainers:
          - {name: log, image: busybox, restartPolicy: Always, command: [sleep, 1d]}
          containers:
          - name: api
            image: nginx
            readinessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 1}
            livenessProbe: {httpGet: {path: /, port: 80, host: api.default.svc}}
`), scenarios.RunOptions{})
	if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], `the host "api.default.svc", and can't succeed`) {
		t.Errorf("warnings: %q", res.Warnings)
	}
}

// TestWarnsOfHopelessProbes: a probe or hook that can't succeed is named once, for all
// replicas.
func TestWarnsOfHopelessProbes(t *testing.T) {
	res := run(t, parse(t, `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: hopeless}
spec:
  duration: 1m
  nodes: [{name: worker}]
  timeline:
  - at: 1s
    template:
      replicas: 2
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec:
          containers:
          - name: web
            image: "nginx:1.27"
            ports: [{name: http, containerPort: 8080}]
            readinessProbe: {httpGet: {path: /, port: http}}
            livenessProbe: {tcpSocket: {port: 8080}}
            startupProbe: {httpGet: {path: /, port: 80}}
`), scenarios.RunOptions{})
	want := []string{"its readiness probe and liveness probe can't succeed: nothing in the pod serves port 8080 (served: 80)"}
	if len(res.Warnings) != len(want) {
		t.Fatalf("warnings: %q", res.Warnings)
	}
	for i, w := range want {
		if !slices.ContainsFunc(res.Warnings, func(s string) bool { return strings.Contains(s, w) }) {
			t.Errorf("warning %d: no %q in %q", i, w, res.Warnings)
		}
	}
}
