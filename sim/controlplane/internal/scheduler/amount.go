package scheduler

import (
	"math"
	"math/bits"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// wide is a sum that may leave the range of int64: a node of 1E may hold several
// pods that ask for as much.
type wide struct {
	hi int64
	lo uint64
}

func (w *wide) add(v, sign int64) {
	lo, hi := uint64(v), v>>63
	var c uint64
	if sign >= 0 {
		w.lo, c = bits.Add64(w.lo, lo, 0)
		w.hi += hi + int64(c)
		return
	}
	w.lo, c = bits.Sub64(w.lo, lo, 0)
	w.hi -= hi + int64(c)
}

// value returns the sum, at most the largest int64.
func (w wide) value() int64 {
	switch {
	case w.hi == 0 && w.lo <= math.MaxInt64:
		return int64(w.lo)
	case w.hi < 0:
		return 0
	}
	return math.MaxInt64
}

// sum returns a+b of amounts that are not negative, at most the largest int64.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// percent returns part*100/whole of 0 <= part <= whole, whole > 0.
func percent(part, whole int64) int64 {
	if part < math.MaxInt64/maxNodeScore {
		return part * maxNodeScore / whole
	}
	hi, lo := bits.Mul64(uint64(part), maxNodeScore)
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

// milli is Quantity.MilliValue without its overflow.
func milli(q *resource.Quantity) int64 {
	if q.Value() > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return q.MilliValue()
}

// amounts are quantities of the resources that every node has. CPU is in
// thousandths, the rest in bytes.
type amounts struct{ cpu, memory, storage int64 }

type extended struct {
	name   v1.ResourceName
	amount int64
}

func amountsOf(list v1.ResourceList) amounts {
	return amounts{cpu: milli(list.Cpu()), memory: list.Memory().Value(), storage: list.StorageEphemeral().Value()}
}

// extendedOf returns the other resources of a list that are not 0, by name.
func extendedOf(list v1.ResourceList) []extended {
	var out []extended
	for name, q := range list { //drydock:unordered sorted below
		switch name {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods:
			continue
		}
		if !q.IsZero() {
			out = append(out, extended{name, q.Value()})
		}
	}
	slices.SortFunc(out, func(a, b extended) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return out
}

func amountOf(list []extended, name v1.ResourceName) int64 {
	for i := range list {
		if list[i].name == name {
			return list[i].amount
		}
	}
	return 0
}
