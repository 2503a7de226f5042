package scale

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseFault(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Fault
		err  string
	}{
		{"node-1*@10m", Fault{Nodes: "node-1*", At: 10 * time.Minute}, ""},
		{"topology.kubernetes.io/zone=a@1d+5m", Fault{Nodes: "topology.kubernetes.io/zone=a", At: 24 * time.Hour, For: 5 * time.Minute}, ""},
		{"node-1", Fault{}, "is no fault such as"},
		{"@5m", Fault{}, "is no fault such as"},
		{"n@soon", Fault{}, "is no fault such as"},
		{"n@5m+0s", Fault{}, `"0s" is no time such as 5m`},
		{"[@5m", Fault{}, "syntax error in pattern"},
	} {
		f, err := ParseFault(tt.text)
		if tt.err == "" && (err != nil || f != tt.want) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %+v, %v", tt.text, f, err)
		}
	}
}

// TestSnapshotWithControllers: controllers of a snapshot adopt their pods, so that none is made
// twice; when a zone is lost they replace what was there.
func TestSnapshotWithControllers(t *testing.T) {
	const file = "testdata/controllers-cluster.yaml"
	s, err := ReadSnapshot(file, bytes.NewReader(readFile(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"stateful sets want claims: their new pods do without (1)"}; !slices.Equal(s.Notes, want) {
		t.Errorf("notes %q", s.Notes)
	}
	cfg := DefaultConfig()
	cfg.Snapshot, cfg.For = s, 5*time.Minute
	calm, err := Run(t.Context(), cfg, Options{})
	if err != nil || calm.Pods.Running != 17 || calm.Created != 17 || calm.Deleted != 0 || len(calm.Warnings) != 1 {
		t.Errorf("%+v, %v", calm, err)
	}
	cfg.Faults, cfg.For = []Fault{{Nodes: "topology.kubernetes.io/zone=a", At: time.Minute}}, 20*time.Minute
	lost, err := Run(t.Context(), cfg, Options{})
	// Four of eight web pods were on three of six nodes; db's wait for their nodes.
	if err != nil || lost.Ready != 3 || lost.Started != 21 {
		t.Errorf("%+v, %v", lost, err)
	}
	cfg.Faults = []Fault{{Nodes: "zone=x", At: time.Minute}, {Nodes: "n1", At: time.Hour}, {Nodes: "n2", At: 5 * time.Minute, For: 10 * time.Minute, Partition: true}}
	healed, err := Run(t.Context(), cfg, Options{})
	if err != nil || healed.Ready != 6 || !slices.Contains(healed.Warnings, "the fault of zone=x hit no node") || !slices.Contains(healed.Warnings, "the fault of n1 comes after the end") {
		t.Errorf("%+v, %v", healed, err)
	}
}

// TestSnapshotWithJobs: a Job of a snapshot goes on with the pods that it has and wants those that
// are left; one that is over doesn't begin again.
func TestSnapshotWithJobs(t *testing.T) {
	const file = "testdata/jobs-cluster.yaml"
	s, err := ReadSnapshot(file, bytes.NewReader(readFile(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"jobs that are over are left out (1)", "pods that have ended are left out (1)"}; !slices.Equal(s.Notes, want) {
		t.Errorf("notes %q", s.Notes)
	}
	cfg := DefaultConfig()
	cfg.Snapshot, cfg.For = s, 5*time.Minute
	calm, err := Run(t.Context(), cfg, Options{})
	if err != nil || calm.Pods.Running != 2 || calm.Created != 2 || calm.Deleted != 0 || len(calm.Warnings) != len(s.Notes) {
		t.Errorf("%+v, %v", calm, err)
	}
	// A pod whose node is lost is replaced, by one that ends as nobody knows what it runs.
	cfg.Faults, cfg.For = []Fault{{Nodes: "n1", At: time.Minute}}, 20*time.Minute
	lost, err := Run(t.Context(), cfg, Options{})
	if err != nil || lost.Started != 3 || lost.Pods.Succeeded != 1 {
		t.Errorf("%+v, %v", lost, err)
	}
}

// TestPendingReasons: pods that nothing has room for say so in the result.
func TestPendingReasons(t *testing.T) {
	w, err := ParseWorkload("w.yaml", []byte(`apiVersion: drydock.dev/v1alpha1
kind: Workload
metadata: {name: w}
spec: {classes: [{name: big, count: 3, requests: {cpu: 12}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Nodes, cfg.Workload, cfg.For, cfg.Startup = 1, w, time.Minute, time.Minute
	res, err := Run(t.Context(), cfg, Options{})
	if err != nil || len(res.Pending) != 1 || !strings.HasPrefix(res.Pending[0], "2 pods: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.") {
		t.Errorf("%q, %v", res.Pending, err)
	}
}
