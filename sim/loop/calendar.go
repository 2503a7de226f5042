package loop

import (
	"math"
	"math/bits"
	"slices"
)

// slots is how many windows the calendar's wheel spans: at 5 ms, 20 s, more
// than the periods of nearly everything that is periodic.
const slots = 4096

// calendar knows in which window each loop next has something due. Windows are
// numbered by time/lookahead. Near ones are slots of a wheel, so that putting a
// loop in and taking it out cost no more than a store; far ones wait in a heap.
//
// A loop that moves leaves a stale entry behind; window tells it by comparing
// with slot.
type calendar struct {
	wheel [slots][]int32
	full  [slots / 64]uint64 // a bit for each slot that holds an entry
	base  int64              // the number of the first window of the wheel
	slot  []int64            // by loop: the window it is entered for, or none
	far   []farEntry         // a binary heap, by window
}

type farEntry struct {
	w   int64
	idx int32
}

const none = math.MaxInt64

func (c *calendar) add() { c.slot = append(c.slot, none) }

// enter puts a loop down for window w, wherever it was before; w is not before
// the window that is due next.
func (c *calendar) enter(idx int32, w int64) {
	if c.slot[idx] == w {
		return
	}
	c.slot[idx] = w
	switch {
	case w == none:
	case w < c.base+slots:
		c.put(idx, w)
	default:
		c.pushFar(farEntry{w, idx})
	}
}

func (c *calendar) put(idx int32, w int64) {
	s := w & (slots - 1)
	c.wheel[s] = append(c.wheel[s], idx)
	c.full[s/64] |= 1 << (s % 64)
}

// next returns the number of the next window that may have something due, or
// none. It moves the wheel there.
func (c *calendar) next() int64 {
	w := c.scan()
	for len(c.far) > 0 && c.slot[c.far[0].idx] != c.far[0].w {
		c.popFar()
	}
	if len(c.far) > 0 && c.far[0].w < w {
		w = c.far[0].w
	}
	return w
}

// advance moves the wheel to window w and brings in far entries that it now
// spans.
func (c *calendar) advance(w int64) {
	c.base = w
	for len(c.far) > 0 && c.far[0].w < c.base+slots {
		f := c.popFar()
		if c.slot[f.idx] == f.w {
			c.put(f.idx, f.w)
		}
	}
}

// scan finds the first slot of the wheel, from base on, that holds an entry.
func (c *calendar) scan() int64 {
	start := c.base & (slots - 1)
	for i := int64(0); i <= slots/64; i++ {
		word := (start/64 + i) % (slots / 64)
		b := c.full[word]
		if i == 0 {
			b &= ^uint64(0) << (start % 64)
		} else if i == slots/64 {
			b &= 1<<(start%64) - 1
		}
		if b != 0 {
			s := word*64 + int64(bits.TrailingZeros64(b))
			return c.base + (s-start+slots)%slots
		}
	}
	return none
}

// take empties window w's slot into due: the loops entered for it, in order,
// each once.
func (c *calendar) take(w int64, due []int32) []int32 {
	s := w & (slots - 1)
	for _, idx := range c.wheel[s] {
		if c.slot[idx] == w {
			c.slot[idx] = none
			due = append(due, idx)
		}
	}
	c.wheel[s] = c.wheel[s][:0]
	c.full[s/64] &^= 1 << (s % 64)
	slices.Sort(due)
	return due
}

func (c *calendar) pushFar(f farEntry) {
	c.far = append(c.far, f)
	i := len(c.far) - 1
	for i > 0 && c.far[i].w < c.far[(i-1)/2].w {
		c.far[i], c.far[(i-1)/2] = c.far[(i-1)/2], c.far[i]
		i = (i - 1) / 2
	}
}

func (c *calendar) popFar() farEntry {
	top := c.far[0]
	n := len(c.far) - 1
	c.far[0] = c.far[n]
	c.far = c.far[:n]
	i := 0
	for {
		k := 2*i + 1
		if k >= n {
			return top
		}
		if k+1 < n && c.far[k+1].w < c.far[k].w {
			k++
		}
		if c.far[i].w <= c.far[k].w {
			return top
		}
		c.far[i], c.far[k] = c.far[k], c.far[i]
		i = k
	}
}
