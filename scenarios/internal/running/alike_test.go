package running

import (
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/document"
)

// What is to be said of a workload's pods on several nodes is one warning.
func TestWarningsOfWorkloads(t *testing.T) {
	text := `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: alike}
spec:
  duration: 1m
  nodes: [{name: n, count: 3}]
  programs: [{match: {}, onTerm: {exit: 1}}]
  timeline:
  - at: 1s
    apply:
      manifest:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 6
          selector: {matchLabels: {app: web}}
          template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "app:1", readinessProbe: {exec: {command: [ask]}}}]}}
      - apiVersion: v1
        kind: Pod
        metadata: {name: alone}
        spec: {nodeName: n-1, containers: [{name: c, image: "other:1", readinessProbe: {exec: {command: [ask]}}}]}
      - apiVersion: apps/v1
        kind: StatefulSet
        metadata: {name: one}
        spec:
          replicas: 1
          selector: {matchLabels: {app: one}}
          template: {metadata: {labels: {app: one}}, spec: {containers: [{name: c, image: "third:1", readinessProbe: {exec: {command: [ask]}}}]}}
`
	list, err := document.Parse("alike.yaml", []byte(text), document.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), list[0], Options{})
	if err != nil || len(res.Errors) > 0 {
		t.Fatal(res.Errors, err)
	}
	const said = `: "ask" is not run in the container, since what it runs is stated or not known; it exits 0`
	want := []string{
		"container c of pod default/alone, image other:1" + said,
		"container c of pod default/one-0, image third:1" + said,
		"container c of pods of Deployment default/web on 3 nodes, image app:1" + said,
	}
	slices.Sort(res.Warnings)
	if !slices.Equal(res.Warnings, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(res.Warnings, "\n"), strings.Join(want, "\n"))
	}
}
