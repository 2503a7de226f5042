package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
)

// TestRecordsInOrder has records made while no loop runs, some of nodes on which
// nothing happens for long afterwards: they are handed on in their places.
func TestRecordsInOrder(t *testing.T) {
	c, err := sim.New(sim.Options{Seed: 1, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var acts []string
	last := int64(0)
	c.Records(func(r *trace.Record) {
		if r.At < last {
			t.Errorf("%s %s of %s comes after what was %v later", r.Object, r.Verb, r.Node, time.Duration(last-r.At))
		}
		last = r.At
		if r.Kind == trace.KindFault || r.Kind == trace.KindKubelet && r.Verb == "is killed" {
			acts = append(acts, fmt.Sprintf("%v %s %s", time.Duration(r.At-c.Start().UnixNano()).Truncate(time.Second), r.Node, r.Verb))
		}
	})
	for i := range 4 {
		if _, err := c.AddNode(sim.NodeOptions{Name: fmt.Sprint("n", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []time.Duration{10 * time.Second, 20 * time.Second, 100 * time.Second} {
		if err := c.RunUntil(at); err != nil {
			t.Fatal(err)
		}
		switch at {
		case 10 * time.Second:
			c.Nodes()[1].PowerCut(0)
			c.Nodes()[2].PowerCut(50 * time.Second)
		case 20 * time.Second:
			c.Nodes()[3].StopKubelet()
		}
	}
	want := []string{"10s n1 power is cut", "10s n2 power is cut", "20s n3 is killed", "1m0s n2 boots"}
	if !slices.Equal(acts, want) {
		t.Errorf("saw %q, want %q", acts, want)
	}
}
