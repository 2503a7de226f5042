package loop

// item is an entry of the timer heap. The key is stored beside the pointer, so
// that sifting touches one or two cache lines per level; what is left to decide
// by the timer's own seq is rare.
type item struct {
	at  int64
	tie uint64
	t   *Timer
}

func (a *item) before(b *item) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.t.seq < b.t.seq
}

// heap is a 4-ary heap that keeps each timer's index up to date.
type heap struct {
	items []item
	calm  uint8 // counts the removals since a quarter of the room was last in use
}

func (h *heap) len() int { return len(h.items) }

func (h *heap) push(it item) {
	if h.items == nil {
		h.items = make([]item, 0, keptTimers)
	}
	h.items = append(h.items, it)
	h.up(len(h.items) - 1)
}

func (h *heap) popTop() *Timer {
	t := h.items[0].t
	h.remove(0)
	return t
}

func (h *heap) remove(i int) {
	n := len(h.items) - 1
	h.items[i].t.idx = -1
	last := h.items[n]
	h.items[n] = item{}
	h.items = h.items[:n]
	if i < n {
		h.items[i] = last
		last.t.idx = int32(i)
		if !h.up(i) {
			h.down(i)
		}
	}
	h.shrink()
}

const (
	// keptTimers is for how many timers a heap always keeps room.
	keptTimers = 16
	// calmEnough is how many timers are removed, no more than a quarter of the room
	// being in use, before most of it is given back: bursts come again, one for
	// each pod.
	calmEnough = 250
)

// shrink gives back most of the room of a burst: a node that starts its pods has
// several times the timers that it has later.
func (h *heap) shrink() {
	n := cap(h.items)
	if n <= keptTimers || len(h.items) > n/4 {
		h.calm = 0
		return
	}
	if h.calm++; h.calm >= calmEnough {
		h.items = append(make([]item, 0, max(n/2, keptTimers)), h.items...)
		h.calm = 0
	}
}

// drop removes a group's timers, and with them what they hold.
func (h *heap) drop(g *Group) {
	kept := h.items[:0]
	for _, it := range h.items {
		if it.t.g == g {
			it.t.idx = -1
			continue
		}
		it.t.idx = int32(len(kept))
		kept = append(kept, it)
	}
	if len(kept) == len(h.items) {
		return
	}
	clear(h.items[len(kept):])
	h.items = kept
	for i := (len(kept) - 2) / 4; i >= 0; i-- {
		if len(kept) > 1 {
			h.down(i)
		}
	}
	h.shrink()
}

// fix puts item i, whose key has changed, in its place.
func (h *heap) fix(i int) {
	if !h.up(i) {
		h.down(i)
	}
}

func (h *heap) up(i int) bool {
	it := h.items[i]
	start := i
	for i > 0 {
		p := (i - 1) / 4
		if !it.before(&h.items[p]) {
			break
		}
		h.items[i] = h.items[p]
		h.items[i].t.idx = int32(i)
		i = p
	}
	h.items[i] = it
	it.t.idx = int32(i)
	return i != start
}

func (h *heap) down(i int) {
	it := h.items[i]
	n := len(h.items)
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		best := c
		end := min(c+4, n)
		for j := c + 1; j < end; j++ {
			if h.items[j].before(&h.items[best]) {
				best = j
			}
		}
		if !h.items[best].before(&it) {
			break
		}
		h.items[i] = h.items[best]
		h.items[i].t.idx = int32(i)
		i = best
	}
	h.items[i] = it
	it.t.idx = int32(i)
}
