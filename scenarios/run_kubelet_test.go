package scenarios_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
)

// TestKubeletWarnings runs nodes whose configuration asks for what simulated
// kubelets don't do: each is told of once.
func TestKubeletWarnings(t *testing.T) {
	res := run(t, parse(t, `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: x}
spec:
  duration: 1s
  nodes:
  - {name: plain}
  - {name: a, count: 2, kubelet: {readOnlyPort: 10255, maxPods: 7, cgroupDriver: systemd}}
  - {name: b, kubelet: {readOnlyPort: 10255, healthzPort: 10248}}
  - {name: c, runtime: {cgroupDriver: systemd}, kubelet: {cgroupDriver: systemd, staticPodURL: "http://x"}}
`), scenarios.RunOptions{})
	want := []string{
		"kubelet configuration: readOnlyPort: 10255 has no effect: a simulated kubelet is asked without a socket",
		`kubelet configuration: cgroupDriver: "systemd" has no effect: the runtime's is used`,
		`kubelet configuration: staticPodURL: "http://x" has no effect: a simulated kubelet fetches nothing`,
	}
	if !slices.Equal(res.Warnings, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(res.Warnings, "\n"), strings.Join(want, "\n"))
	}
}
