package expect

import (
	"sync"
	"testing"
	"time"
)

// TestOneExpectationServesManyRuns judges the same compiled expectations in
// many runs at once; the race detector watches.
func TestOneExpectationServesManyRuns(t *testing.T) {
	c := compiler(t)
	var xs []*Expectation
	for _, expr := range []string{
		`pods().all(p, p.metadata.labels["app"] != "x" && p.spec.containers.all(c, c.resources.requests["memory"].compareTo(quantity("1Gi")) < 0))`,
		`pod("default/web").status.phase == "Failed"`,
		`events().filter(e, since(e.lastTimestamp) > duration("1s")).size() > 5`,
	} {
		xs = append(xs, compile(t, c, Source{Form: By, T: End, Expr: expr}))
	}
	shared := sample()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				e := New(xs, shared, Options{})
				e.Begin()
				e.Changed(Change{Kind: KindPod, Old: shared.pods[0], New: shared.pods[0]}, time.Second)
				got := e.Finish(2*time.Second, false)
				if got[0].Outcome != Held || got[1].Outcome != Failed || got[2].Outcome != Failed {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	wg.Wait()
}
