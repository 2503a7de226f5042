package running

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// TestWhatLedToIt: an expectation about an owner is explained by what its pods had to suffer,
// and by nothing that every start brings with it.
func TestWhatLedToIt(t *testing.T) {
	const head = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: led}
spec:
  duration: 4m
  nodes: [{name: n1, capacity: {cpu: 2, memory: 4Gi}}]
`
	const deployment = `  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: c, image: "app:1", resources: {requests: {cpu: CPU}}, readinessProbe: {httpGet: {port: 80, path: /}, periodSeconds: 5}}]}
`
	const available = "  expect: [{by: 3m, that: 'deployment(\"web\").status.availableReplicas == 2'}]\n"
	const noise = "Started Created Pulled Scheduled: RunPodSandbox InvalidDiskCapacity NodeAllocatableEnforced SuccessfulCreate"
	for _, tt := range []struct {
		name, spec, wants, not string
	}{
		{"a pod that fits nowhere", strings.Replace(deployment, "CPU", "1500m", 1) + available, "FailedScheduling ScalingReplicaSet", noise},
		{"one of two Deployments", strings.Replace(deployment, "CPU", "100m", 1) + strings.NewReplacer("CPU", "1500m", "name: web", "name: redis", "app: web", "app: redis", "  timeline:\n", "").Replace(deployment) +
			"  expect: [{by: 3m, that: 'pods().size() > 0 && deployments().all(d, d.status.readyReplicas == d.spec.replicas)'}]\n", "FailedScheduling default/redis", noise + " default/web"},
		{"a container that fails", strings.Replace(deployment, "CPU", "100m", 1) + strings.Replace(available, "by", "for: 1m, by", 1) + "  programs: [{match: {image: \"app:*\"}, runFor: 1s, exit: 3}]\n", "BackOff exits", noise},
		{"a probe that fails", strings.Replace(deployment, "CPU", "100m", 1) + available + "  programs: [{match: {image: \"app:*\"}, ports: []}]\n", "Unhealthy", noise},
		{"the node of the pods", strings.Replace(deployment, "CPU", "100m", 1) + "  - {at: 30s, powerCut: {node: n1}}\n  expect: [{from: 25s, always: 'deployment(\"web\").status.availableReplicas == 2'}]\n", "power-is-cut NodeNotReady", noise},
		{"a Job's pod", `  timeline:
  - at: 1s
    apply: {manifest: {apiVersion: batch/v1, kind: Job, metadata: {name: pi}, spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: "app:1"}]}}}}}
  expect: [{by: 1m, that: 'job("pi").status.succeeded == 1'}]
  programs: [{match: {image: "app:*"}, runFor: 1s, exit: 3}]
`, "BackOff exits", noise},
		{"a pod by its name", `  timeline:
  - at: 1s
    apply: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: "app:1"}]}}}
  expect: [{by: 1m, that: 'pod("p").status.phase == "Failed"'}]
`, "starts bound", noise},
		{"a node", "  expect: [{by: 1m, that: 'condition(node(\"n1\"), \"Ready\").status == \"False\" && false'}]\n", "NodeReady starts", noise},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := document.Parse("led.yaml", []byte(head+tt.spec), document.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := Run(t.Context(), list[0], Options{})
			if err != nil || len(res.Verdicts) != 1 || len(res.Errors) > 0 {
				t.Fatal(res.Errors, err)
			}
			told := strings.Join(res.Verdicts[0].History, "\n")
			for _, w := range strings.Fields(tt.wants) {
				if !strings.Contains(told, strings.ReplaceAll(w, "-", " ")) {
					t.Errorf("%s is missing", w)
				}
			}
			for _, w := range strings.Fields(tt.not) {
				if strings.Contains(told, w) {
					t.Errorf("%s is noise", w)
				}
			}
			if t.Failed() {
				t.Log(told)
			}
		})
	}
}

// TestRepeatedWarnings: of a warning that is repeated the first is shown, as far back as it
// is, and the last if it says something else; of other events the last.
func TestRepeatedWarnings(t *testing.T) {
	event := func(object, typ, verb, message, count string) *trace.Record {
		return &trace.Record{Kind: trace.KindEvent, Object: object, Verb: verb, Fields: []trace.Field{trace.Str("type", typ), trace.Str("message", message), trace.Str("count", count)}}
	}
	records := []*trace.Record{
		event("pod default/web", "Warning", "FailedScheduling", "no room", "1"),
		event("pod default/web", "Warning", "Unhealthy", "refused", "1"),
		event("pod default/web", "Normal", "Pulling", "pulling", "1"),
		event("pod default/other", "Warning", "Failed", "other", "1"),
	}
	for range 2 * nearbyLines {
		records = append(records, &trace.Record{Kind: trace.KindPod, Object: "pod default/web", Verb: "status"})
	}
	records = append(records,
		event("pod default/web", "Warning", "FailedScheduling", "no room", "9"),
		event("pod default/web", "Warning", "Unhealthy", "status 500", "9"),
		event("pod default/web", "Normal", "Pulling", "pulling", "9"))
	var j journal
	for i, r := range records {
		j.history = append(j.history, entry{i + 1, r})
	}
	var got []string
	told := j.nearby(expect.Verdict{At: time.Second, Objects: []expect.ObjectRef{{Kind: expect.KindPod, Namespace: "default", Name: "web"}}})
	for _, l := range told {
		if f := strings.Fields(l); f[5] == "event" {
			got = append(got, f[0]+" "+strings.Join(f[6:], " "))
		}
	}
	want := []string{"1 Warning FailedScheduling: no room", "36 Warning Unhealthy: status 500 (x9)", "37 Pulling: pulling (x9)"}
	if !slices.Equal(got, want) || len(told) != nearbyLines {
		t.Errorf("got %q in %d lines, want %q in %d", got, len(told), want, nearbyLines)
	}
}
