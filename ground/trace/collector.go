package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Collector brings the records of many recorders into one order: by time, then
// by recorder, then by sequence. Each recorder writes into a buffer of its own
// while loops run; Flush, between windows, merges them.
type Collector struct {
	buffers []*Buffer
	noted   []*Buffer // those that may hold records, see Note
	take    []func(*Record)
}

// Buffer is the sink of one recorder.
type Buffer struct {
	index   int
	keep    func(kind Kind, verb string, fields []Field) bool
	records []*Record
	noted   bool
}

// NewBuffer returns the sink for one more recorder. keep says which records
// are wanted; nil means all.
func (c *Collector) NewBuffer(keep func(kind Kind, verb string, fields []Field) bool) *Buffer {
	b := &Buffer{index: len(c.buffers), keep: keep}
	c.buffers = append(c.buffers, b)
	return b
}

// Take keeps the record until the next Flush.
func (b *Buffer) Take(r *Record) { b.records = append(b.records, r) }

// Wants reports whether a record is worth making.
func (b *Buffer) Wants(kind Kind, verb string, fields []Field) bool {
	return b.keep == nil || b.keep(kind, verb, fields)
}

// Each has fn called with every record, in order, at each Flush.
func (c *Collector) Each(fn func(*Record)) { c.take = append(c.take, fn) }

// Note tells FlushNoted of a buffer.
func (c *Collector) Note(b *Buffer) {
	if !b.noted && len(b.records) > 0 {
		b.noted = true
		c.noted = append(c.noted, b)
	}
}

// Flush hands on, in order, what was recorded before the time before (in
// nanoseconds since the Unix epoch). No loop may run meanwhile.
func (c *Collector) Flush(before int64) { c.flush(c.buffers, before) }

// FlushNoted is Flush of the buffers noted, without a look at the others.
func (c *Collector) FlushNoted(before int64) {
	c.flush(c.noted, before)
	left := c.noted[:0]
	for _, b := range c.noted {
		if b.noted = len(b.records) > 0; b.noted {
			left = append(left, b)
		}
	}
	clear(c.noted[len(left):])
	c.noted = left
}

func (c *Collector) flush(buffers []*Buffer, before int64) {
	type entry struct {
		r   *Record
		idx int
	}
	var all []entry
	for _, b := range buffers {
		n := 0
		for n < len(b.records) && b.records[n].At < before {
			all = append(all, entry{b.records[n], b.index})
			n++
		}
		if n > 0 {
			b.records = append(b.records[:0:0], b.records[n:]...)
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		switch {
		case a.r.At != b.r.At:
			if a.r.At < b.r.At {
				return -1
			}
			return 1
		case a.idx != b.idx:
			return a.idx - b.idx
		case a.r.Seq < b.r.Seq:
			return -1
		}
		return 1
	})
	for _, e := range all {
		for _, fn := range c.take {
			fn(e.r)
		}
	}
}

// Combine makes one hash of the hashes of several recorders, in their order.
func Combine(hashes []uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range hashes {
		for i := range 8 {
			h = (h ^ (x >> (8 * i) & 0xff)) * 1099511628211
		}
	}
	return h
}

// JSONWriter writes records as JSON lines: {"t":12.345678901,"node":...}; t is
// in seconds since start.
type JSONWriter struct {
	w     *bufio.Writer
	start int64
	err   error
}

// NewJSONWriter returns a writer of records whose times count from start.
func NewJSONWriter(w io.Writer, start time.Time) *JSONWriter {
	return &JSONWriter{w: bufio.NewWriterSize(w, 1<<16), start: start.UnixNano()}
}

// Write writes one record. The first error is kept for Close.
func (j *JSONWriter) Write(r *Record) {
	if j.err != nil {
		return
	}
	b := fmt.Appendf(nil, `{"t":%d.%09d`, (r.At-j.start)/1e9, (r.At-j.start)%1e9)
	b = appendMember(b, "node", r.Node)
	b = appendMember(b, "kind", string(r.Kind))
	b = appendMember(b, "object", r.Object)
	b = appendMember(b, "verb", r.Verb)
	for _, f := range r.Fields {
		b = appendMember(b, f.Key, f.Value)
	}
	b = append(b, '}', '\n')
	_, j.err = j.w.Write(b)
}

func appendMember(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	k, _ := json.Marshal(key) // a string always encodes
	v, _ := json.Marshal(value)
	b = append(b, ',')
	b = append(b, k...)
	b = append(b, ':')
	return append(b, v...)
}

// Close flushes what was written and returns the first error.
func (j *JSONWriter) Close() error {
	if err := j.w.Flush(); j.err == nil {
		j.err = err
	}
	return j.err
}
