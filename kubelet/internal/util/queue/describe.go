package queue

import (
	"math"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Describe says what the queue's version stands for: an item is new, or due
// earlier. What is taken out, or due later, is no reason to look.
func (q *WorkQueue) Describe(g *loop.Group) {
	due, changes := map[types.UID]int64{}, uint64(0)
	g.Describe(&q.version, "queue", func() uint64 {
		now := make(map[types.UID]int64, len(q.h))
		for _, e := range q.h {
			now[e.it.UID] = e.due
			was, ok := due[e.it.UID]
			if !ok {
				was = math.MaxInt64
			}
			if e.due < was {
				changes++
			}
		}
		due = now
		return changes
	})
}
