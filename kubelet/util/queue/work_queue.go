// Package queue holds the work queue that says when a pod is due for its next
// sync. It answers to upstream's pkg/kubelet/util/queue; a heap beside the map
// makes "is anything due?" a look at one entry.
package queue

import (
	"container/heap"

	"k8s.io/apimachinery/pkg/types"
)

// WorkQueue maps UIDs to the times at which they are due (nanoseconds since
// the Unix epoch).
type WorkQueue struct {
	byUID map[types.UID]*entry
	h     entries
}

type entry struct {
	uid types.UID
	due int64
	idx int
}

// NewWorkQueue returns an empty queue.
func NewWorkQueue() *WorkQueue { return &WorkQueue{byUID: map[types.UID]*entry{}} }

// Enqueue makes uid due at due, in place of an earlier or later time.
func (q *WorkQueue) Enqueue(uid types.UID, due int64) {
	if e := q.byUID[uid]; e != nil {
		e.due = due
		heap.Fix(&q.h, e.idx)
		return
	}
	e := &entry{uid: uid, due: due}
	q.byUID[uid] = e
	heap.Push(&q.h, e)
}

// Due tells whether anything was due before now.
func (q *WorkQueue) Due(now int64) bool { return len(q.h) > 0 && q.h[0].due < now }

// Len returns how many UIDs are waiting.
func (q *WorkQueue) Len() int { return len(q.h) }

// Take removes and returns what was due strictly before now, by due time, then
// UID.
func (q *WorkQueue) Take(now int64) []types.UID {
	var out []types.UID
	for q.Due(now) {
		e := heap.Pop(&q.h).(*entry)
		delete(q.byUID, e.uid)
		out = append(out, e.uid)
	}
	return out
}

type entries []*entry

func (h entries) Len() int { return len(h) }
func (h entries) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].uid < h[j].uid
}
func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].idx, h[j].idx = i, j
}
func (h *entries) Push(x any) {
	e := x.(*entry)
	e.idx = len(*h)
	*h = append(*h, e)
}
func (h *entries) Pop() any {
	old := *h
	n := len(old) - 1
	e := old[n]
	old[n] = nil
	*h = old[:n]
	return e
}
