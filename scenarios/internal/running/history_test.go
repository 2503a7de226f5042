package running

import (
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/document"
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
