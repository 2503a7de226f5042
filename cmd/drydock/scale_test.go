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
