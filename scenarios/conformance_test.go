package scenarios_test

import (
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
)

// TestConformanceMark wants a mark on what only a simulated runtime could run
// to be refused, with the reason.
func TestConformanceMark(t *testing.T) {
	const doc = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: x}
spec:
  conformance: MARK
  nodes:
  - {name: worker}
MORE
`
	pod := func(image string) string {
		return "  timeline:\n  - at: 1s\n    apply:\n      manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: \"" + image + "\"}]}}"
	}
	for _, x := range []struct{ mark, more, want string }{
		{"{}", pod("drydock-actor:1"), ""},
		{"{level: optional, reason: it is new, needs: [mounts, root], parallel: true}", pod("some/where/drydock-actor:1"), ""},
		{"{level: desired}", "", `"desired" is none of required, optional`},
		{"{needs: [podNetwrk]}", "", `"podNetwrk" is none of podNetwork, mounts, root (did you mean`},
		{"{}", pod("busybox"), "uses images of drydock-actor"},
		{"{}", "  programs:\n  - {match: {}, runFor: 1s}", "spec.programs"},
		{"{}", "  timeline:\n  - {at: 1s, powerCut: {for: 1s}}", "there is no powerCut"},
		{"{}", "  timeline:\n  - {at: 1s, stopRuntime: {}}", "there is no stopRuntime"},
		{"{}", "  timeline:\n  - {at: 1s, fault: {cri: {method: Version, hang: true}}}", "there is no fault"},
		{"{}", "  api: {faults: [{verb: get, refuse: true}]}", "there are no faults"},
		{"{}", "  - {name: other}", "it has one node"},
	} {
		text := strings.NewReplacer("MARK", x.mark, "MORE", x.more).Replace(doc)
		_, err := scenarios.Parse("f.yaml", []byte(text), scenarios.LoadOptions{})
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s %s: %v", x.mark, x.more, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s %s: got %v, want %q", x.mark, x.more, err, x.want)
		}
	}
}
