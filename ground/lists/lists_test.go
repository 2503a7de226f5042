package lists_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/drydock-sim/drydock/ground/lists"
)

func TestLists(t *testing.T) {
	list := []int{3, 1, 2}
	odd := func(n int) bool { return n%2 == 1 }
	if got := lists.Map(list, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("Map: %q", got)
	}
	if got := lists.Filter(list, odd); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("Filter: %v", got)
	}
	if got := lists.Count(list, odd); got != 2 {
		t.Errorf("Count: %d", got)
	}
	if got := lists.Sum(list, func(n int) int64 { return int64(10 * n) }); got != 60 {
		t.Errorf("Sum: %d", got)
	}
}

// Callers take what is empty for what is not there.
func TestListsOfNothing(t *testing.T) {
	if lists.Map([]int{}, strconv.Itoa) != nil || lists.Filter([]int{2}, func(int) bool { return false }) != nil {
		t.Error("what is empty is not nil")
	}
}
