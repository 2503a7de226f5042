package scale

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// BenchmarkChurn measures a cluster with thirty pods by node, of which some are
// replaced all the time; an iteration is a run with ten minutes of that.
// DRYDOCK_BENCH_NODES replaces the number of nodes.
func BenchmarkChurn(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Nodes, cfg.For, cfg.Churn, cfg.Bound, cfg.CreateRate = 200, 10*time.Minute, 20, true, 0
	if n, err := strconv.Atoi(os.Getenv("DRYDOCK_BENCH_NODES")); err == nil {
		cfg.Nodes = n
	}
	for range b.N {
		r, err := Run(b.Context(), cfg, Options{Clock: time.Now})
		if err != nil {
			b.Fatal(err)
		}
		_, steady := r.NodeSecondsPerSecond()
		b.ReportMetric(steady, "node-s/s")
		b.ReportMetric(r.StartsPerSecond(), "starts/s")
	}
}
