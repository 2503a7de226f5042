package binder

// heap holds the nodes that take pods, the least used on top.
type heap struct {
	items []*nodeInfo
	front []int // scratch of search
}

// fix puts a node where its score belongs, in or out of the heap.
func (h *heap) fix(n *nodeInfo) {
	n.rescore()
	switch {
	case n.takes() && n.pos < 0:
		n.pos = len(h.items)
		h.items = append(h.items, n)
		h.up(n.pos)
	case !n.takes() && n.pos >= 0:
		h.remove(n)
	case n.pos >= 0:
		h.up(n.pos)
		h.down(n.pos)
	}
}

func (h *heap) remove(n *nodeInfo) {
	if n.pos < 0 {
		return
	}
	i, last := n.pos, len(h.items)-1
	h.swap(i, last)
	h.items[last] = nil
	h.items = h.items[:last]
	n.pos = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].pos, h.items[j].pos = i, j
}

func (h *heap) up(i int) {
	for i > 0 && h.items[i].before(h.items[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *heap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.items) {
			return
		}
		if c+1 < len(h.items) && h.items[c+1].before(h.items[c]) {
			c++
		}
		if !h.items[c].before(h.items[i]) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

// search returns the least used node that ok accepts, or nil: it walks the
// heap in order without changing it.
func (h *heap) search(ok func(*nodeInfo) bool) *nodeInfo {
	f := h.front[:0]
	push := func(pos int) {
		if pos >= len(h.items) {
			return
		}
		f = append(f, pos)
		for i := len(f) - 1; i > 0; {
			p := (i - 1) / 2
			if !h.items[f[i]].before(h.items[f[p]]) {
				break
			}
			f[i], f[p] = f[p], f[i]
			i = p
		}
	}
	pop := func() int {
		top := f[0]
		f[0] = f[len(f)-1]
		f = f[:len(f)-1]
		for i := 0; ; {
			c := 2*i + 1
			if c >= len(f) {
				break
			}
			if c+1 < len(f) && h.items[f[c+1]].before(h.items[f[c]]) {
				c++
			}
			if !h.items[f[c]].before(h.items[f[i]]) {
				break
			}
			f[i], f[c] = f[c], f[i]
			i = c
		}
		return top
	}
	defer func() { h.front = f[:0] }()
	push(0)
	for len(f) > 0 {
		pos := pop()
		if ok(h.items[pos]) {
			return h.items[pos]
		}
		push(2*pos + 1)
		push(2*pos + 2)
	}
	return nil
}
