package record

import (
	"math/bits"
)

// key is a 128-bit hash. Keys are compared instead of the texts behind them,
// which would cost hundreds of bytes per event.
type key struct{ a, b uint64 }

// hasher builds a key out of strings, each closed by its length.
type hasher key

func (h *hasher) str(s string) {
	n := len(s)
	for len(s) >= 8 {
		h.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
		s = s[8:]
	}
	var w uint64
	for i := 0; i < len(s); i++ {
		w |= uint64(s[i]) << (8 * i)
	}
	h.word(w)
	h.word(uint64(n))
}

func (h *hasher) word(w uint64) {
	h.a = mix(h.a ^ w)
	h.b = mix(bits.RotateLeft64(h.b, 29) + w*0x9e3779b97f4a7c15)
}

// mix is the SplitMix64 finaliser, a bijection.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// lru maps keys to values and forgets the least recently used beyond max
// entries, as k8s.io/utils/lru does. It takes memory only for what it holds:
// entries stand in one slice and are linked by number.
type lru[T any] struct {
	max     int
	entries []entry[T]
	buckets []uint16 // number of the first entry, plus one
	newest  uint16   // entry number plus one; 0 is none
	oldest  uint16
}

type entry[T any] struct {
	key                key
	val                T
	newer, older, next uint16 // recency list, bucket chain: entry number plus one
}

// get returns the value of k, which becomes the most recently used, or nil.
func (c *lru[T]) get(k key) *T {
	if len(c.buckets) == 0 {
		return nil
	}
	for i := c.buckets[c.bucket(k)]; i != 0; i = c.entries[i-1].next {
		if c.entries[i-1].key == k {
			c.touch(i)
			return &c.entries[i-1].val
		}
	}
	return nil
}

// put sets the value of k, which becomes the most recently used. The pointer
// holds until the next put.
func (c *lru[T]) put(k key, v T) *T {
	if p := c.get(k); p != nil {
		*p = v
		return p
	}
	var i uint16
	if len(c.entries) < c.max {
		c.grow()
		c.entries = append(c.entries, entry[T]{})
		i = uint16(len(c.entries))
	} else {
		i = c.oldest
		c.unlink(i)
		c.unchain(i)
	}
	e := &c.entries[i-1]
	*e = entry[T]{key: k, val: v}
	b := c.bucket(k)
	e.next, c.buckets[b] = c.buckets[b], i
	c.linkNewest(i)
	return &e.val
}

func (c *lru[T]) len() int { return len(c.entries) }

func (c *lru[T]) bucket(k key) int { return int(k.a & uint64(len(c.buckets)-1)) }

// grow makes room for one more entry: the slice by a quarter at a time, since
// doubling would leave half of it unused in thousands of recorders.
func (c *lru[T]) grow() {
	if n := len(c.entries); n == cap(c.entries) {
		bigger := make([]entry[T], n, min(c.max, n+max(4, n/4)))
		copy(bigger, c.entries)
		c.entries = bigger
	}
	if len(c.entries) < len(c.buckets) {
		return
	}
	c.buckets = make([]uint16, max(8, 2*len(c.buckets)))
	for i := range c.entries {
		b := c.bucket(c.entries[i].key)
		c.entries[i].next, c.buckets[b] = c.buckets[b], uint16(i+1)
	}
}

func (c *lru[T]) touch(i uint16) {
	if c.newest != i {
		c.unlink(i)
		c.linkNewest(i)
	}
}

func (c *lru[T]) linkNewest(i uint16) {
	e := &c.entries[i-1]
	e.newer, e.older = 0, c.newest
	if c.newest != 0 {
		c.entries[c.newest-1].newer = i
	} else {
		c.oldest = i
	}
	c.newest = i
}

func (c *lru[T]) unlink(i uint16) {
	e := &c.entries[i-1]
	if e.newer != 0 {
		c.entries[e.newer-1].older = e.older
	} else {
		c.newest = e.older
	}
	if e.older != 0 {
		c.entries[e.older-1].newer = e.newer
	} else {
		c.oldest = e.newer
	}
}

func (c *lru[T]) unchain(i uint16) {
	p := &c.buckets[c.bucket(c.entries[i-1].key)]
	for *p != i {
		p = &c.entries[*p-1].next
	}
	*p = c.entries[i-1].next
}
