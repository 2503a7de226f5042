// Package queue holds the work queue that says when a pod is due for its next
// sync. It mirrors upstream's pkg/kubelet/util/queue; the entries are part
// of their owners' records, so that "is anything due?" is a look at one of them
// and finds the record without a lookup.
package queue

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Item is a UID's entry in a WorkQueue, waiting or not. It is meant to be a
// part of its owner's record.
type Item struct {
	UID types.UID
	// Owner is the record that the item is a part of; nil once that is gone.
	Owner any
	place int32 // in the heap, from 1; 0: not waiting
}

// WorkQueue orders items by the times at which they are due (nanoseconds since
// the Unix epoch), then by UID.
type WorkQueue struct {
	h []entry
	// left are the items whose owner has gone before they were due.
	left    map[types.UID]*Item
	version loop.Version
}

type entry struct {
	due int64
	it  *Item
}

// NewWorkQueue returns an empty queue.
func NewWorkQueue() *WorkQueue { return &WorkQueue{} }

// Join makes an item known that is to stand for its UID. What an earlier owner
// of the UID left in the queue is taken over.
func (q *WorkQueue) Join(it *Item) {
	old := q.left[it.UID]
	if old == nil {
		return
	}
	delete(q.left, it.UID)
	it.place = old.place
	q.h[it.place-1].it = it
}

// Leave is for an owner that goes: if its item waits, the UID goes on waiting
// without an owner.
func (q *WorkQueue) Leave(it *Item) {
	if it.place == 0 {
		return
	}
	left := &Item{UID: it.UID, place: it.place}
	it.place = 0
	q.h[left.place-1].it = left
	if q.left == nil {
		q.left = map[types.UID]*Item{}
	}
	q.left[left.UID] = left
}

// Version grows when somebody enqueues an item.
func (q *WorkQueue) Version() *loop.Version { return &q.version }

// Enqueue makes an item due at due, in place of an earlier or later time.
func (q *WorkQueue) Enqueue(it *Item, due int64) {
	q.version.Grow()
	q.Postpone(it, due)
}

// Postpone is Enqueue by whoever decides when the queue is looked at next, which
// needs no telling.
func (q *WorkQueue) Postpone(it *Item, due int64) {
	if it.place == 0 {
		q.h = append(q.h, entry{due, it})
		it.place = int32(len(q.h))
		q.up(len(q.h) - 1)
	} else {
		i := int(it.place) - 1
		q.h[i].due = due
		if !q.up(i) {
			q.down(i)
		}
	}
}

// Due reports whether anything was due before now.
func (q *WorkQueue) Due(now int64) bool { return len(q.h) > 0 && q.h[0].due < now }

// First returns the item that is due first, and when; nil if none waits.
func (q *WorkQueue) First() (*Item, int64) {
	if len(q.h) == 0 {
		return nil, 0
	}
	return q.h[0].it, q.h[0].due
}

// At returns one of the Len items, in no particular order, and when it is due.
func (q *WorkQueue) At(i int) (*Item, int64) { return q.h[i].it, q.h[i].due }

// Len returns how many items are waiting.
func (q *WorkQueue) Len() int { return len(q.h) }

// Take removes what was due strictly before now and returns the UIDs, by due
// time, then UID.
func (q *WorkQueue) Take(now int64) []types.UID {
	var out []types.UID
	for q.Due(now) {
		it := q.h[0].it
		it.place = 0
		if it.Owner == nil && q.left[it.UID] == it {
			delete(q.left, it.UID)
		}
		out = append(out, it.UID)
		n := len(q.h) - 1
		last := q.h[n]
		q.h[n] = entry{}
		q.h = q.h[:n]
		if n > 0 {
			q.h[0] = last
			last.it.place = 1
			q.down(0)
		}
	}
	return out
}

func (e *entry) before(o *entry) bool {
	if e.due != o.due {
		return e.due < o.due
	}
	return e.it.UID < o.it.UID
}

func (q *WorkQueue) swap(i, j int) {
	q.h[i], q.h[j] = q.h[j], q.h[i]
	q.h[i].it.place, q.h[j].it.place = int32(i)+1, int32(j)+1
}

func (q *WorkQueue) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.h[i].before(&q.h[parent]) {
			return moved
		}
		q.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (q *WorkQueue) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q.h); c++ {
			if q.h[c].before(&q.h[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
