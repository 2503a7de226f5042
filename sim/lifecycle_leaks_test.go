package sim_test

import (
	"fmt"
	"testing"

	"github.com/drydock-sim/drydock/sim"
)

func TestLeaks(t *testing.T) {
	type entry struct {
		uid  string //nolint:unused // the walk finds it by reflection
		name string //nolint:unused // the same
	}
	type root struct {
		byUID  map[string]int
		byPath map[string]bool
		list   []*entry
	}
	r := &root{byUID: map[string]int{"u1": 1, "u2": 2}, byPath: map[string]bool{"a/u1/b": true, "a/u3": true}, list: []*entry{{"u1", "x"}, {"u3", "y"}}}
	got := fmt.Sprint(sim.Leaks(r, map[string]bool{"u1": true}))
	if want := "[.byPath has a/u1/b .byUID has u1 .list has u1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
