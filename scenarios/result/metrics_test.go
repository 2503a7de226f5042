package result

import (
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// TestShortWorkloads: those that were short of most come first, those that never were not at all.
func TestShortWorkloads(t *testing.T) {
	of := func(name string, ready, asked time.Duration) sim.Availability {
		return sim.Availability{Workload: sim.Workload{Kind: "Deployment", Name: name}, Ready: ready, Asked: asked}
	}
	m := &Metrics{Metrics: sim.Metrics{Availability: []sim.Availability{
		of("default/a", 59*time.Minute, time.Hour), of("default/b", time.Hour, time.Hour), of("default/c", 50*time.Minute, time.Hour),
	}}}
	var out strings.Builder
	m.writeText(&out)
	_, lines, _ := strings.Cut(out.String(), "\nnot ready: ")
	const want = `Deployment default/c for 10m, of all its replicas together (available 83.33%)
not ready: Deployment default/a for 1m, of all its replicas together (available 98.33%)
`
	if lines != want {
		t.Errorf("got %q, want %q", lines, want)
	}
}
