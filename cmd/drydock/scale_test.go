package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScaleBadInput(t *testing.T) {
	trace := write(t, "t.csv", "arrival,cpu\nsoon,1\n0,x\n")
	good, ends := write(t, "ok.csv", "arrival\n0\n"), write(t, "ends.csv", "arrival,lifetime\n0,60\n")
	cluster := write(t, "ok.yaml", "kind: Node\nmetadata: {name: node1}\n")
	load := func(spec string) string {
		return write(t, "w.yaml", "apiVersion: drydock.dev/v1alpha1\nkind: Workload\nspec: {"+spec+"}\n")
	}
	counted := load("classes: [{name: a, count: 1, lifetime: 1h}]")
	for _, tt := range []struct{ args, want string }{
		{"--nodes 0", "nodes: 0 is not within 1 and 100000"},
		{"--nodes many", `invalid argument "many"`},
		{"--nodes 200000", "nodes: 200000 is not within 1 and 100000"},
		{"--churn 20/d", `"20/d" is no rate such as 20/s`},
		{"--churn -1", `"-1" is no rate`},
		{"--nodes 1000000000", "nodes: 1000000000 is not within"},
		{"--for -1m", "for: -1m0s is negative"},
		{"--startup-timeout -5s", "startup timeout: -5s is negative"},
		{"--scheduler-qps 0", "--scheduler-qps: 0 would let nothing through"},
		{"--controller-manager-burst -3", "a burst is negative"},
		{"--api-cores 3", "--api-cores goes with --api-load"},
		{"--api-load --max-requests-inflight 0", "--max-requests-inflight: 0 is not more than 0"},
		{"--memory 20", "--memory: 20 is less than 256Mi"},
		{"--trace-nodes /dev/null --trace " + write(t, "ok.csv", "arrival\n0\n"), "/dev/null: there is no line of column names"},
		{"--from-cluster " + write(t, "wide.txt", "NAME STATUS\nn1 Ready\n"), "wide.txt:1:1: is no Kubernetes object"},
		{"--from-cluster " + write(t, "c.yaml", "kind: Pod\nmetadata: {name: p, namespace: x}\nspec: {priority: high}\n"), "c.yaml:3:18: pod x/p: spec.priority: is a string; want int32"},
		{"--trace " + good + " --pods-per-node 3", "--pods-per-node would do nothing: a trace says which pods there are"},
		{"--trace " + good + " --probes 0.5", "--probes would do nothing: a trace says"},
		{"--trace " + good + " --create-rate 5/s", "--create-rate would do nothing: a trace says"},
		{"--trace " + good + " --startup-timeout 5m", "--startup-timeout would do nothing: a trace says"},
		{"--trace " + good + " --trace-speed NaN", "--trace-speed: NaN is not more than 0"},
		{"--trace " + good + " --trace-from -5s", "--trace-from: -5s is negative"},
		{"--trace " + ends + " --trace-from 1h", "--trace-from: all pods have ended by 1h0m0s: the trace ends at 1m0s"},
		{"--from-cluster " + cluster + " --pods-per-node 3", "--pods-per-node would do nothing: the pods are those of the cluster"},
		{"--from-cluster " + cluster + " --workload " + load("nodes: [{name: n}], classes: [{name: a, share: 1}]"), "spec.nodes would do nothing: the nodes are those of --from-cluster"},
		{"--workload " + counted + " --probes 0.5", "--probes would do nothing: a workload says itself"},
		{"--workload " + counted + " --pods-per-node 3", "--pods-per-node would do nothing: no class of the workload has a share"},
		{"--workload " + counted + " --churn 1/s", "churn: no class of the workload has pods"},
		{"--scheduler-qps NaN", "--scheduler-qps: NaN is no rate"},
		{"--for 100000h", "more than ten years are too long"},
		{"--memory 1e30", "--memory: 1e30 is more than 1Pi"},
		{crash + " --for -1m", "--for: -1m0s is negative"},
		{crash + " --progress -1s", "--progress: -1s is negative"},
		{"--probes 2", "share of probes: 2 is not within 0 and 1"},
		{"--workers 5000", "--workers: 5000 is more than"},
		{"--workload no.yaml", "--workload: open no.yaml: no such file"},
		{"--workload " + crash, crash + ":1:1: want a document that begins with"},
		{"--from-cluster no.yaml", "--from-cluster: open no.yaml: no such file"},
		{"--from-cluster " + crash, "there are no nodes in this file"},
		{"--from-cluster x --nodes 3", "exclude each other: the file has the nodes"},
		{"--trace " + trace, trace + `:2:1: arrival: "soon" is no time`},
		{"--trace-speed 2", "go with --trace"},
		{"--trace-speed 0", "--trace-speed: 0 is not more than 0"},
		{"--kubelet-config " + write(t, "k.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPds: 3\n"), `k.yaml:3:1: maxPds: unknown field "maxPds" (did you mean "maxPods"?)`},
		{"--disable foo", `no controller is called "foo"`},
		{"--memory lots", `--memory: "lots" is no quantity`},
		{"--report /dev/null/x", "--report: mkdir /dev/null"},
		{"--verify --report " + t.TempDir(), "--verify excludes --report and --json"},
		{"--verify --json", "--verify excludes --report and --json"},
		{"no.yaml", "no.yaml: no such file or directory"},
		{crash + " --nodes 3", "--nodes is not for a scenario file"},
		{"testdata", "has 2 scenarios; drydock scale runs one"},
		{"../../scale/testdata/mixed.yaml", "is a Workload: drydock scale --workload ../../scale/testdata/mixed.yaml"},
		{"a b", "accepts at most 1 arg"},
	} {
		code, stdout, stderr := drydock(t, append([]string{"scale"}, strings.Fields(tt.args)...)...)
		if code != exitBadInput || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

// scaleJSON is what users may rely on.
type scaleJSON struct {
	Result struct {
		Interrupted, Settled        bool
		Nodes, PodsWanted           int
		Pods                        map[string]int
		VirtualSeconds              float64
		Hash                        string
		Wall                        struct{ SetupSeconds, StartupSeconds, SteadySeconds float64 }
		SteadyNodeSecondsPerSecond  float64
		APIRequests, PodsStarted    uint64
		Warnings                    []string
		NodesReadyAtSeconds         float64
		StartedAtSeconds, ProbesRun float64
	}
	Report struct {
		SLOs []struct {
			SLO, Verdict string
			P99Seconds   *float64
			Count        int
		}
		Startup []struct {
			Part       string
			Count      int
			P99Seconds float64
		}
	}
	Cost struct{ LiveHeapBytes, PeakRSSBytes int64 }
}

func TestScaleJSONAndReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := drydock(t, strings.Fields("scale --nodes 5 --pods-per-node 4 --for 2m --probes 0.5 --json --report "+dir)...)
	var d scaleJSON
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, stdout, stderr)
	}
	r := d.Result
	if r.Nodes != 5 || r.PodsWanted != 20 || r.Pods["running"] != 20 || !r.Settled || r.Interrupted || len(r.Hash) != 16 || r.VirtualSeconds != r.StartedAtSeconds+120 || r.ProbesRun == 0 || d.Cost.PeakRSSBytes == 0 {
		t.Errorf("%+v", d)
	}
	if slo, all := d.Report.SLOs, d.Report.Startup; len(slo) != 4 || slo[0].Verdict != "met" || slo[0].Count != 20 || slo[1].Verdict != "not modelled" || slo[1].P99Seconds != nil || len(all) != 8 || all[0].Part != "All" || *slo[0].P99Seconds != all[1].P99Seconds {
		t.Errorf("%+v", d.Report)
	}
	if !strings.Contains(stderr, "scheduler 100/s, burst 100; controllers 100/s, burst 100 each (as in sig-scalability's tests on GCE; upstream's defaults are 50/s and 20/s)") || !strings.Contains(stderr, "steady: ") {
		t.Errorf("stderr:\n%s", stderr)
	}
	for _, name := range []string{"index.html", "slos.csv"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(b) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScaleAPILoad wants a verdict on the API where requests take time, and else
// to be told that there is none.
func TestScaleAPILoad(t *testing.T) {
	for _, tt := range []struct{ flags, head, slo string }{
		{"", "takes no time (see --api-load)", "not modelled  requests took the API server no time"},
		{"--api-load --max-requests-inflight 50", "250 seats for requests", "p99 6ms"},
	} {
		code, stdout, _ := drydock(t, append(strings.Fields("scale --nodes 5 --pods-per-node 4 --for 1m --progress 0"), strings.Fields(tt.flags)...)...)
		if code != exitOK || !strings.Contains(stdout, "API server:  "+tt.head) || !strings.Contains(stdout, tt.slo) || strings.Count(stdout, "API server") != strings.Count(stdout, "API server:")+strings.Count(stdout, "requests took the API server") {
			t.Errorf("%s: exit code %d:\n%s", tt.flags, code, stdout)
		}
	}
}

func TestScaleVerifies(t *testing.T) {
	code, stdout, _ := drydock(t, strings.Fields("scale --nodes 4 --pods-per-node 3 --for 1m --churn 30/m --verify --progress 0")...)
	if code != exitOK || !strings.Contains(stdout, "VERIFIED: runs with 1, 2 and 4 workers have the hash") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

func TestScaleInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	dir := t.TempDir()
	var out, errs bytes.Buffer
	code := execute(ctx, strings.Fields("scale --nodes 20 --pods-per-node 2 --for 80000h --report "+dir), &out, &errs)
	if code != exitInterrupted || !strings.Contains(out.String(), "INTERRUPTED") || !strings.Contains(out.String(), "Partial: interrupted") {
		t.Errorf("exit code %d:\n%s%s", code, &out, &errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		t.Error(err)
	}
}

func TestScaleRunsAScenario(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := drydock(t, "scale", crash, "--seed", "3", "--report", dir)
	if code != exitOK || !strings.Contains(stdout, "scenario crash") && !strings.Contains(stdout, "it is gone in the end") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		t.Error(err)
	}
	fails := write(t, "fails.yaml", head+"  duration: 10s\n  expect: [{at: 5s, that: 'size(pods()) == 1'}]\n")
	dir = t.TempDir()
	if code, stdout, stderr := drydock(t, "run", crash, "--report", dir); code != exitOK || !strings.Contains(stdout, "report: "+filepath.Join(dir, "index.html")) {
		t.Errorf("run --report: exit code %d: %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		t.Error(err)
	}
	if code, _, _ := drydock(t, "scale", fails); code != exitFailed {
		t.Errorf("exit code %d of a scenario that fails", code)
	}
}
