package topologymanager

import "math/bits"

// Mask is a set of NUMA nodes, one bit for each ID. 0 in a hint means: any.
type Mask uint64

// NewMask is the set of these nodes.
func NewMask(ids ...int) Mask {
	var m Mask
	for _, id := range ids {
		m |= 1 << id
	}
	return m
}

// Count is how many nodes the mask has.
func (m Mask) Count() int { return bits.OnesCount64(uint64(m)) }

// Has reports whether a node is in the mask.
func (m Mask) Has(id int) bool { return m>>id&1 != 0 }

// Bits are the nodes, ascending.
func (m Mask) Bits() []int {
	out := make([]int, 0, m.Count())
	for ; m != 0; m &= m - 1 {
		out = append(out, bits.TrailingZeros64(uint64(m)))
	}
	return out
}

// NarrowerThan reports whether a mask has fewer nodes than another, or as many and
// lower ones.
func (m Mask) NarrowerThan(o Mask) bool {
	if m.Count() == o.Count() {
		return m < o
	}
	return m.Count() < o.Count()
}

// Masks calls fn with every mask of these nodes that is not empty: those of one
// node first, then of two, in the order of the nodes.
func Masks(nodes []int, fn func(Mask)) {
	var next func(from []int, m Mask, left int)
	next = func(from []int, m Mask, left int) {
		if left == 0 {
			fn(m)
			return
		}
		for i, id := range from {
			next(from[i+1:], m|NewMask(id), left-1)
		}
	}
	for size := 1; size <= len(nodes); size++ {
		next(nodes, 0, size)
	}
}
