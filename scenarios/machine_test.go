package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/scenarios/document"
)

func TestMachineMistakes(t *testing.T) {
	node := "  nodes:\n  - name: worker\n    "
	for _, tt := range []struct{ text, want string }{
		{node + "swap: -1Gi", "f.yaml:7:11: spec.nodes[0].swap: -1Gi is negative"},
		{node + "swap: 2Pi", "spec.nodes[0].swap: 2Pi is more than 1Pi"},
		{node + "pidMax: 0", "f.yaml:7:13: spec.nodes[0].pidMax: must be between 1 and 4194304"},
		{node + "pidMax: 4194305", "spec.nodes[0].pidMax: must be between 1 and 4194304"},
		{node + "threadsMax: -5", "spec.nodes[0].threadsMax: must be between 1 and 2147483647"},
		{node + "pidmax: 5", `spec.nodes[0].pidmax: unknown field "pidmax" (did you mean "pidMax"?)`},
		{node + "inhibitDelay: 0s", "spec.nodes[0].inhibitDelay: must be more than 0s"},
		{node + "runtime: {cgroupDriver: system}", `"system" is none of cgroupfs, systemd (did you mean "systemd"?)`},
		{oneNode + "  images: [{name: a, unpacked: 0}]", "spec.images[0].unpacked: must be at least 1"},
		{oneNode + "  images: [{name: a, inodes: 1.5}]", "spec.images[0].inodes: 1500m is no whole number"},
		{oneNode + "  images: [{name: a, size: -1}]", "spec.images[0].size: -1 is negative"},
		{node + "swap: 1Gi\n  conformance: {}", "spec.nodes[0].swap: a scenario for conformance runs against a runtime outside: the machine is as it is"},
		{node + "runtime: {cgroupDriver: systemd}\n  conformance: {}", "spec.nodes[0].runtime: a scenario for conformance runs against a runtime outside: it is not described"},
		{oneNode + "  expect: [{at: end, that: 'cgroups(\"workr\").size() > 0'}]", `f.yaml:6:37: spec.expect[0].that: there is no node "workr" (did you mean "worker"?)`},
	} {
		_, err := parseUsage(head + tt.text + "\n")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.text, err, tt.want)
		} else if n := strings.Count(err.Error(), "\n"); n > 0 {
			t.Errorf("%s: more than one error:\n%v", tt.text, err)
		}
	}
}

func TestMachine(t *testing.T) {
	s, err := parseUsage(head + `  nodes:
  - {name: worker, swap: 8Gi, pidMax: 32768, threadsMax: 100000, inhibitDelay: 30s, runtime: {cgroupDriver: systemd}}
  images:
  - {name: "a:1", size: 10Mi, unpacked: 30Mi, inodes: 2k}
`)
	if err != nil {
		t.Fatal(err)
	}
	g := &s.Spec.Nodes[0]
	if g.Swap.Value() != 8<<30 || *g.PIDMax != 32768 || *g.ThreadsMax != 100000 || g.InhibitDelay != 30*time.Second || g.Runtime.CgroupDriver != "systemd" {
		t.Errorf("got %+v", g)
	}
	if f := document.RuntimeImages(s.Spec.Images)[0]; f.Size != 10<<20 || f.Unpacked != 30<<20 || f.Inodes != 2000 {
		t.Errorf("got %+v", f)
	}
}
