package memfs

import (
	"bytes"
	"slices"
)

// block is the unit in which space is taken.
const block = 4096

// sparse is the content of a file with long runs of zeros, which are not kept. What is written as
// zeros takes blocks, what is skipped does not: both read as zeros.
type sparse struct {
	size int64
	runs []run // by offset, without overlap; what is between is a hole
}

// run is a piece of a file that takes space.
type run struct {
	off, n int64
	data   []byte // nil for zeros
}

// clone copies the runs; their bytes stay shared, and are clipped so that an
// append copies them.
func (s *sparse) clone() *sparse {
	if s == nil {
		return nil
	}
	c := &sparse{size: s.size, runs: slices.Clone(s.runs)}
	for i := range c.runs {
		c.runs[i].data = slices.Clip(c.runs[i].data)
	}
	return c
}

// cut removes [from,to) from the runs and returns where one for it would go. Runs are few, so the
// list is made anew.
func (s *sparse) cut(from, to int64) int {
	var out []run
	at := -1
	for _, r := range s.runs {
		end := r.off + r.n
		if end <= from {
			out = append(out, r)
			continue
		}
		if r.off < from {
			out = append(out, r.part(r.off, from))
		}
		if at < 0 {
			at = len(out)
		}
		if end > to {
			out = append(out, r.part(max(r.off, to), end))
		}
	}
	if at < 0 {
		at = len(out)
	}
	s.runs = out
	return at
}

// part is what lies between two offsets.
func (r run) part(from, to int64) run {
	p := run{off: from, n: to - from}
	if r.data != nil {
		p.data = slices.Clip(r.data[from-r.off : to-r.off])
	}
	return p
}

// put writes n bytes, or zeros if data is nil. data is copied, unless it extends the last run.
func (s *sparse) put(off, n int64, data []byte) {
	if n == 0 {
		return
	}
	// Most files are written from the front to the end.
	if k := len(s.runs) - 1; k >= 0 && s.runs[k].off+s.runs[k].n == off && (s.runs[k].data == nil) == (data == nil) {
		last := &s.runs[k]
		last.n += n
		if data != nil {
			last.data = append(last.data, data...)
		}
		s.size = max(s.size, off+n)
		return
	}
	at := s.cut(off, off+n)
	if data != nil {
		data = bytes.Clone(data)
	}
	s.runs = slices.Insert(s.runs, at, run{off, n, data})
	s.size = max(s.size, off+n)
}

// readAt reads zeros where no run is.
func (s *sparse) readAt(b []byte, off int64) int {
	if off >= s.size {
		return 0
	}
	b = b[:min(int64(len(b)), s.size-off)]
	clear(b)
	for _, r := range s.runs {
		if r.off >= off+int64(len(b)) {
			break
		}
		if r.data == nil || r.off+r.n <= off {
			continue
		}
		from := max(r.off, off)
		copy(b[from-off:], r.data[from-r.off:])
	}
	return len(b)
}

// allocated counts the blocks that hold something. Two runs may share a block, which counts once.
func (s *sparse) allocated() int64 {
	total, done := int64(0), int64(0)
	for _, r := range s.runs {
		from, to := max(r.off/block, done), (r.off+r.n+block-1)/block
		if to > from {
			total += to - from
			done = to
		}
	}
	return total * block
}

// content returns the bytes of a file, which must not be written to. It must not be written to,
// since the file may still have it.
func (b *body) content() []byte {
	if b.ext != nil && b.ext.sparse != nil {
		out := make([]byte, b.ext.sparse.size)
		b.ext.sparse.readAt(out, 0)
		return out
	}
	return slices.Clip(b.data)
}

// size is the size of a file, or the length of what a link says.
func (n *node) size() int64 {
	b := n.body
	if b == nil {
		return 0
	}
	if b.ext != nil && b.ext.sparse != nil {
		return b.ext.sparse.size
	}
	return int64(len(b.data) + len(b.target))
}

// allocated is what an entry takes on disk, in bytes. Links are short enough to be in the inode.
func (n *node) allocated() int64 {
	switch {
	case n.isDir():
		return block
	case n.body == nil || n.isLink():
		return 0
	case n.body.ext != nil && n.body.ext.sparse != nil:
		return n.body.ext.sparse.allocated()
	}
	return (int64(len(n.body.data)) + block - 1) / block * block
}

// setContent replaces what a file holds; data is kept. The caller gives data up.
func (n *node) setContent(data []byte) {
	n.body.data = data
	if n.body.ext != nil {
		n.body.ext.sparse = nil
	}
}

// sparse returns the runs, nil for a file of plain bytes.
func (n *node) sparse() *sparse {
	if n.body.ext == nil {
		return nil
	}
	return n.body.ext.sparse
}

// makeSparse has a file keep its content as runs. It never goes back: a file that was large may
// be again.
func (n *node) makeSparse() *sparse {
	e := n.extended()
	if e.sparse == nil {
		e.sparse = &sparse{size: int64(len(n.body.data))}
		if len(n.body.data) > 0 {
			e.sparse.runs = []run{{0, e.sparse.size, slices.Clip(n.body.data)}}
		}
		n.body.data = nil
	}
	return e.sparse
}

// readAt copies what a file has at an offset and returns how much that is.
func (n *node) readAt(b []byte, off int64) int {
	if s := n.sparse(); s != nil {
		return s.readAt(b, off)
	}
	if off >= int64(len(n.body.data)) {
		return 0
	}
	return copy(b, n.body.data[off:])
}

// writeAt writes into a file, which grows as needed. Whoever was given the
// content before keeps what he has. A block of zeros or a gap of a block makes the file sparse;
// anything smaller is not worth it.
func (n *node) writeAt(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	size := n.size()
	if n.sparse() == nil && off-size < block && (len(b) < block || !zeros(b)) {
		d := n.body.data
		if off < size { // readers may have the slice
			d = slices.Clone(d)
		}
		for int64(len(d)) < off {
			d = append(d, 0)
		}
		m := copy(d[off:], b)
		n.body.data = append(d, b[m:]...)
		return
	}
	s := n.makeSparse()
	if zeros(b) {
		s.put(off, int64(len(b)), nil)
	} else {
		s.put(off, int64(len(b)), b)
	}
}

// writeZerosAt is writeAt for n zeros.
func (n *node) writeZerosAt(off, count int64) {
	if count < block && n.sparse() == nil {
		n.writeAt(make([]byte, count), off)
		return
	}
	n.makeSparse().put(off, count, nil)
}

// truncate sets a file's size. Growing leaves a hole if that is a block or more.
func (n *node) truncate(size int64) {
	s := n.sparse()
	have := n.size()
	switch {
	case s != nil && size < have:
		s.cut(size, have)
		s.size = size
	case s != nil:
		s.size = size
	case size <= have:
		n.body.data = slices.Clip(n.body.data[:size])
	case blocks(size) == blocks(have):
		n.body.data = append(n.body.data, make([]byte, size-have)...)
	default:
		n.makeSparse().size = size
	}
}

// zeros reports whether all bytes are 0, by blocks: comparing is faster than a
// loop.
func zeros(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeroBlock))
		if !bytes.Equal(b[:n], zeroBlock[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// zeroBlock is what zeros compares with.
var zeroBlock [block]byte
