package scenarios

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxPIDs is the kernel's largest pid_max.
const maxPIDs = 1 << 22

// machine checks what a group's machines have beside their capacity.
func (v *validator) machine(at string, g *NodeGroup) {
	v.positive(at+".swap", g.Swap, bytesUnit(), 0)
	for _, x := range []struct {
		name string
		n    *int
		max  int
	}{{"pidMax", g.PIDMax, maxPIDs}, {"threadsMax", g.ThreadsMax, math.MaxInt32}} {
		if x.n != nil && (*x.n < 1 || *x.n > x.max) {
			v.errorf(at+"."+x.name, "must be between 1 and %d", x.max)
		}
	}
	if g.InhibitDelay == 0 && valueAt(v.doc, at+".inhibitDelay") != nil {
		v.errorf(at+".inhibitDelay", "must be more than 0s")
	}
}

// positive checks an amount that is at least this much.
func (v *validator) positive(at string, q *resource.Quantity, in unit, least int64) {
	if q == nil || v.isBad(at) {
		return
	}
	if n, err := in.amount(*q); err != nil {
		v.errorf(at, "%v", err)
	} else if n < least {
		v.errorf(at, "must be at least %d", least)
	}
}
