package running

import (
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/document"
)

// TestReadinessShows: the timeline shows when pods are made not ready by another than their
// kubelet, and when another number of a Service's endpoints is ready; the run is the same
// whether or not somebody looks.
func TestReadinessShows(t *testing.T) {
	const scenario = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: ready}
spec:
  duration: 8m
  nodes: [{name: n1}, {name: n2}]
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: web}
        spec: {selector: {app: web}, ports: [{port: 80}]}
  - at: 1s
    apply:
      manifest:
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: web}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: c, image: "app:1", ports: [{containerPort: 80}]}]}
  - {at: 1m, powerCut: {node: n1}}
  - {at: 6m, boot: {node: n1}}
  - {at: 7m, delete: {kind: Service, name: web}}
`
	list, err := document.Parse("ready.yaml", []byte(scenario), document.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(opts Options) (hash string, lines []string) {
		var out strings.Builder
		opts.Timeline = &out
		res, err := Run(t.Context(), list[0], opts)
		if err != nil || len(res.Errors) > 0 {
			t.Fatal(res.Errors, err)
		}
		for _, l := range strings.Split(out.String(), "\n") {
			if f := strings.Fields(l); len(f) > 6 && f[5] == "status" && (f[3] == "service" || f[3] == "pod" && f[2] == "-") {
				lines = append(lines, f[3]+" "+strings.Join(f[5:], " "))
			}
		}
		return res.Summary.Hash, lines
	}
	hash, lines := run(Options{})
	got := strings.Join(lines, "\n")
	const want = `service status endpoints: 1 ready of 1
service status endpoints: 2 ready of 2
pod status Running, not ready; c running; IP 10.128.0.2
service status endpoints: 1 ready of 2
service status endpoints: 2 ready of 2`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	loud, all := run(Options{Verbose: true})
	if loud != hash || !slices.Equal(all, lines) {
		t.Errorf("-v: hash %s after %s, lines:\n%s", loud, hash, strings.Join(all, "\n"))
	}
}
