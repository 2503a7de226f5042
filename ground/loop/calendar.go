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
// numbered by time/lookahead. Near ones are slots of a wheel, each the list of its
// loops, so that putting a loop in and taking it out cost no more than some stores
// and no memory; far ones wait in a heap, where a loop that moves leaves a stale
// entry behind.
type calendar struct {
	wheel [slots]int32       // the first loop's number, plus 1
	full  [slots / 64]uint64 // a bit for each slot that has a loop
	base  int64              // the number of the first window of the wheel
	seats []seat             // by loop
	far   []farEntry         // a binary heap, by window
}

// seat is what the engine needs to know of a loop between its runs: one cache
// line, so that it need not touch the loop's own memory, which another core's
// cache may hold.
type seat struct {
	loop  *Loop
	inbox []message // what it takes in when it runs next
	due   int64     // when its next step was due after its last run
	w     int64     // the window it is entered for, or none
	// prev and next are its neighbours in the wheel, plus 1.
	prev, next int32
	near       bool // in the wheel
	sent       bool // its outbox holds something
	failed     bool
	marked     bool
	calm       uint8 // see emptied
}

type farEntry struct {
	w   int64
	idx int32
}

const none = math.MaxInt64

func (c *calendar) add(l *Loop) { c.seats = append(c.seats, seat{loop: l, w: none}) }

// enter puts a loop down for window w, wherever it was before; w is not before
// the window that is due next.
func (c *calendar) enter(idx int32, w int64) {
	s := &c.seats[idx]
	if s.w == w {
		return
	}
	if s.near {
		c.unlink(s)
	}
	s.w = w
	switch {
	case w == none:
	case w < c.base+slots:
		c.put(idx, w)
	default:
		c.pushFar(farEntry{w, idx})
	}
}

func (c *calendar) put(idx int32, w int64) {
	at := w & (slots - 1)
	s := &c.seats[idx]
	s.near, s.prev, s.next = true, 0, c.wheel[at]
	if s.next != 0 {
		c.seats[s.next-1].prev = idx + 1
	}
	c.wheel[at] = idx + 1
	c.full[at/64] |= 1 << (at % 64)
}

// unlink takes a loop out of the wheel.
func (c *calendar) unlink(s *seat) {
	at := s.w & (slots - 1)
	if s.next != 0 {
		c.seats[s.next-1].prev = s.prev
	}
	if s.prev != 0 {
		c.seats[s.prev-1].next = s.next
	} else if c.wheel[at] = s.next; s.next == 0 {
		c.full[at/64] &^= 1 << (at % 64)
	}
	s.near = false
}

// next returns the number of the next window that may have something due, or
// none. It moves the wheel there.
func (c *calendar) next() int64 {
	w := c.scan()
	for len(c.far) > 0 && c.stale(c.far[0]) {
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
		if f := c.popFar(); !c.stale(f) {
			c.put(f.idx, f.w)
		}
	}
}

func (c *calendar) stale(f farEntry) bool { return c.seats[f.idx].near || c.seats[f.idx].w != f.w }

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

// take empties window w's slot into due: the loops entered for it, in order.
func (c *calendar) take(w int64, due []int32) []int32 {
	at := w & (slots - 1)
	for n := c.wheel[at]; n != 0; {
		s := &c.seats[n-1]
		due = append(due, n-1)
		s.w, s.near = none, false
		n = s.next
	}
	c.wheel[at] = 0
	c.full[at/64] &^= 1 << (at % 64)
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
