package running

import (
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/document"
)

// TestMissed: each reference that matches nothing is warned of once, at its place; what can be
// known without a run is told by loading.
func TestMissed(t *testing.T) {
	const text = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: miss}
spec:
  duration: 1m
  nodes: [{name: n1, capacity: {memory: 16}}, {name: n2}]
  programs:
  - {match: {image: "ngnix:*"}, runFor: 5s}
  - {match: {pod: "web-*", image: "*nginx:*"}, memory: 1Mi}
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: prod}
        spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "nginx:1"}]}}}
  - at: 2s
    fault: {node: n1, cri: {method: UpdateContainerResources, error: Unavailable}}
  - at: 2s
    fault: {api: {verb: patch, resource: secrets, error: 500}}
  - {at: 20s, evict: {name: "wbe-*", namespace: prod}}
  - {at: 20s, delete: {kind: Deployment, name: "x*"}}
  - at: 3s
    fault: {node: n2, cri: {method: "*Status", latency: 1ms, for: 10s}}
  - {at: 50s, delete: {name: "we?-*", namespace: prod}}
  expect:
  - by: 30s
    that: 'pods("prod").exists(p, p.status.phase in ["Running", "Failed"]) && deployment("prod/web").status.replicas == 1 && condition(node("n2"), "Ready").status == "True"'
  - never: 'exists(pod("prod/gone")) || events("prod/web").exists(e, e.reason == "FailedCreate")'
  - never: 'pod("prod/wbe-0").status.phase == "Rnning"'
  - never: 'pods("prd").exists(p, p.status.reason == "Evictd")'
  - always: 'deployment("prod/wob").status.replicas < 3'
  - never: 'events("prod/nobody").exists(e, e.reason == "BackOff") || condition(node("n2"), "Raedy").status == "False"'
  - never: '"Rnning" in phases("prod/web-x")'
`
	list, err := document.Parse("miss.yaml", []byte(text), document.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), list[0], Options{})
	if err != nil || len(res.Errors) > 0 {
		t.Fatal(res.Errors, err)
	}
	known := []string{
		`miss.yaml:6:41: a machine with 16 of memory (16 bytes) holds nothing: is the unit missing, as in 16Gi?`,
		`miss.yaml:31:47: no pod has the phase "Rnning" (did you mean "Running"?)`,
		`miss.yaml:32:54: nothing in Kubernetes has the reason "Evictd" (did you mean "Evicted"?)`,
		`miss.yaml:34:93: no node has a condition "Raedy" (did you mean "Ready"?)`,
		`miss.yaml:35:13: no pod has the phase "Rnning" (did you mean "Running"?)`,
		`miss.yaml:31:17: there never is a pod "prod/wbe-0" (did you mean "prod/web"?)`,
		`miss.yaml:32:18: there never is a namespace "prd" (did you mean "prod"?)`,
		`miss.yaml:33:25: there never is a deployment "prod/wob" (did you mean "prod/web"?)`,
		`miss.yaml:8:5: no container takes this program: nothing matches it that no program before it matches`,
	}
	later := []string{
		`namespace prod: nothing makes it; it is created, as helm install --create-namespace does`,
		`miss.yaml:22:5: no Pod in the namespace prod matches "wbe-*"`,
		`miss.yaml:23:5: no Deployment in the namespace default matches "x*"`,
		`miss.yaml:18:5: the fault hit no call of the runtime`,
		`miss.yaml:20:5: the fault error 500 for patch secrets hit no request`,
		`miss.yaml:34:20: there never is anything called "prod/nobody"`,
		`miss.yaml:35:32: there never is a pod "prod/web-x"`,
	}
	if got := slices.Clone(list[0].Notices); !slices.Equal(got, known) {
		t.Errorf("loading tells:\n%s", strings.Join(got, "\n"))
	}
	if got := res.Warnings; !slices.Equal(got, append(known, later...)) {
		t.Errorf("the run tells:\n%s", strings.Join(got, "\n"))
	}
}
