package record

// key is a 64-bit hash. Keys are compared instead of the texts behind them,
// which would cost hundreds of bytes per event. Among the 4096 entries that there
// can be, two share one with a probability of 2^-41.
type key uint64

// lru maps keys to values and forgets the least recently used beyond max
// entries, as k8s.io/utils/lru does. It takes memory only for what it holds:
// entries stand in slabs, which stay where they are when there are more, and are
// linked by number. Values without pointers make it nothing for the collector to
// look into.
type lru[T any] struct {
	max     int
	n       int // entries
	slabs   []*[slab]entry[T]
	buckets []uint16 // number of the first entry, plus one
	newest  uint16   // entry number plus one; 0 is none
	oldest  uint16
}

// slab is how many entries are allocated at once: few, since most of a thousand
// nodes' recorders have a dozen.
const slab = 8

// entry is a value and its place in both lists.
type entry[T any] struct {
	key                key
	val                T
	newer, older, next uint16 // recency list, bucket chain: entry number plus one
}

// at returns the entry of a number plus one.
func (c *lru[T]) at(i uint16) *entry[T] { return &c.slabs[(i-1)/slab][(i-1)%slab] }

// get returns the value of k, which becomes the most recently used, or nil.
func (c *lru[T]) get(k key) *T {
	if len(c.buckets) == 0 {
		return nil
	}
	for i := c.buckets[c.bucket(k)]; i != 0; i = c.at(i).next {
		if c.at(i).key == k {
			c.touch(i)
			return &c.at(i).val
		}
	}
	return nil
}

// put sets the value of k, which becomes the most recently used. It returns the
// key that was forgotten for that, if one was.
func (c *lru[T]) put(k key, v T) (forgotten key, full bool) {
	if p := c.get(k); p != nil {
		*p = v
		return 0, false
	}
	var i uint16
	if full = c.n == c.max; full {
		i = c.oldest
		forgotten = c.at(i).key
		c.unlink(i)
		c.unchain(i)
	} else {
		c.grow()
		c.n++
		i = uint16(c.n)
	}
	e := c.at(i)
	*e = entry[T]{key: k, val: v}
	b := c.bucket(k)
	e.next, c.buckets[b] = c.buckets[b], i
	c.linkNewest(i)
	return forgotten, full
}

func (c *lru[T]) len() int { return c.n }

// bucket is where a key's chain begins; the number of buckets is a power of
// two.
func (c *lru[T]) bucket(k key) int { return int(k) & (len(c.buckets) - 1) }

// grow makes room for one more entry.
func (c *lru[T]) grow() {
	if c.n == slab*len(c.slabs) {
		c.slabs = append(c.slabs, new([slab]entry[T]))
	}
	if c.n < len(c.buckets) {
		return
	}
	c.buckets = make([]uint16, max(slab, 2*len(c.buckets)))
	for i := uint16(1); int(i) <= c.n; i++ {
		e := c.at(i)
		b := c.bucket(e.key)
		e.next, c.buckets[b] = c.buckets[b], i
	}
}

// touch makes an entry the newest.
func (c *lru[T]) touch(i uint16) {
	if c.newest != i {
		c.unlink(i)
		c.linkNewest(i)
	}
}

// linkNewest puts an entry that is in no list before all others.
func (c *lru[T]) linkNewest(i uint16) {
	e := c.at(i)
	e.newer, e.older = 0, c.newest
	if c.newest != 0 {
		c.at(c.newest).newer = i
	} else {
		c.oldest = i
	}
	c.newest = i
}

// unlink takes an entry out of the list by recency.
func (c *lru[T]) unlink(i uint16) {
	e := c.at(i)
	if e.newer != 0 {
		c.at(e.newer).older = e.older
	} else {
		c.newest = e.older
	}
	if e.older != 0 {
		c.at(e.older).newer = e.newer
	} else {
		c.oldest = e.newer
	}
}

// unchain takes an entry out of its bucket's chain.
func (c *lru[T]) unchain(i uint16) {
	p := &c.buckets[c.bucket(c.at(i).key)]
	for *p != i {
		p = &c.at(*p).next
	}
	*p = c.at(i).next
}
