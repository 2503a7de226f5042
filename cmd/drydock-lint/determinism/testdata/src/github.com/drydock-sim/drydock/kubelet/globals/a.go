package globals

import (
	"errors"

	"github.com/drydock-sim/drydock/kubelet/util"
)

var errGone = errors.New("gone")

var table = map[string]int{"a": 1}

var count int

var state struct {
	n  int
	ps *int
	l  []int
}

func init() { // want `an init function`
	count = 1 // want `a write to the package variable count`
}

func bad() {
	count++            // want `a write to the package variable count`
	count += 2         // want `a write to the package variable count`
	table["b"] = 2     // want `a write to the package variable table`
	delete(table, "a") // want `a write to the package variable table`
	state.n = 1        // want `a write to the package variable state`
	*state.ps = 1      // want `a write to the package variable state`
	state.l[0]++       // want `a write to the package variable state`
	util.Shared = 1    // want `a write to the package variable Shared`
	var err error
	err, count = nil, 1   // want `a write to the package variable count`
	for count = range 3 { // want `a write to the package variable count`
	}
	_ = err
}

type kubelet struct {
	count int
	table map[string]int
}

func (k *kubelet) init() {}

func fine(k *kubelet) error {
	count := 0
	count++
	k.count = table["a"]
	k.table["a"] = 1
	table := map[string]int{}
	table["x"] = 1
	_ = count
	return errGone
}
