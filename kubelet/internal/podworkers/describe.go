package podworkers

import (
	"fmt"
	"hash/fnv"
	"io"

	"k8s.io/apimachinery/pkg/types"
)

// Describe says what the versions of the workers stand for, so that a check of
// elision finds who changes it without telling.
func (w *Workers) Describe() {
	each := func(write func(out io.Writer, s *record)) func() uint64 {
		return func() uint64 {
			h := fnv.New64a()
			fmt.Fprint(h, w.records.synced)
			for _, s := range w.records.sorted(func(*record) bool { return true }) {
				write(h, s)
			}
			return h.Sum64()
		}
	}
	w.Group.Describe(&w.records.lifecycle, "records", each(func(out io.Writer, s *record) {
		fmt.Fprint(out, s.uid(), s.isStarted, s.isTerminating, s.isTerminated, s.startedTerminating, s.deleted, s.evicted, s.finished, s.restartRequested)
	}))
	// A worker that becomes idle enqueues its pod, of which the queue tells.
	was, begun := map[types.UID]bool{}, uint64(0)
	w.Group.Describe(&w.records.work, "updates", func() uint64 {
		for _, s := range w.records.sorted(func(*record) bool { return true }) {
			now := idle(s)
			if was[s.uid()] && !now {
				begun++
			}
			was[s.uid()] = now
		}
		return begun
	})
}
