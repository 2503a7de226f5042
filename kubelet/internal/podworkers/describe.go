package podworkers

import (
	"fmt"
	"hash/fnv"
	"io"
)

// Describe says what the versions of the workers stand for, so that a check of
// elision finds who changes it without telling.
func (w *Workers) Describe() {
	each := func(write func(out io.Writer, s *record)) func() uint64 {
		return func() uint64 {
			h := fnv.New64a()
			for _, s := range w.records.sorted(func(*record) bool { return true }) {
				write(h, s)
			}
			return h.Sum64()
		}
	}
	w.l.Describe(&w.records.lifecycle, "records", each(func(out io.Writer, s *record) {
		fmt.Fprint(out, s.uid(), s.isStarted, s.isTerminating, s.isTerminated, s.startedTerminating, s.deleted, s.evicted, s.finished, s.restartRequested)
	}))
	w.l.Describe(&w.records.work, "updates", each(func(out io.Writer, s *record) {
		if idle(s) {
			fmt.Fprint(out, s.uid())
		}
	}))
}
