package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
)

// TestEmptyNodes holds what a node without pods takes: memory once it runs, and
// garbage while it only sends heartbeats. The limits leave some room; who gets
// below them by much may lower them.
func TestEmptyNodes(t *testing.T) {
	const (
		maxLive    = 52_000 // bytes per node
		maxGarbage = 25     // bytes per node-second
		few, many  = 20, 120
	)
	measure := func(nodes int) (live, garbage float64) {
		c, err := sim.New(sim.Options{Seed: 1, Workers: 1, Keep: func(trace.Kind, string, []trace.Field) bool { return false }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		before := liveHeap()
		for i := range nodes {
			if _, err := c.AddNode(sim.NodeOptions{
				Name:     fmt.Sprintf("worker-%d", i),
				Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("16")},
				Runtime:  fakecri.Options{Images: []fakecri.Image{{Name: "app:1", Present: true}}},
			}); err != nil {
				t.Fatal(err)
			}
		}
		at := 90 * time.Second // all is ready and reported
		if err := c.RunUntil(at); err != nil {
			t.Fatal(err)
		}
		live = float64(liveHeap()) - float64(before)
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		if err := c.RunUntil(at + 20*time.Minute); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&to)
		return live, float64(to.TotalAlloc - from.TotalAlloc)
	}
	// The difference is without what the cluster itself takes.
	live1, garbage1 := measure(few)
	live2, garbage2 := measure(many)
	live := (live2 - live1) / (many - few)
	garbage := (garbage2 - garbage1) / (many - few) / (20 * 60)
	t.Logf("%.0f bytes per node, %.1f bytes of garbage per node-second", live, garbage)
	if live > maxLive {
		t.Errorf("a node without pods takes %.0f bytes, not %d at most", live, maxLive)
	}
	if garbage > maxGarbage {
		t.Errorf("a node without pods makes %.1f bytes of garbage a second, not %d at most", garbage, maxGarbage)
	}
}
