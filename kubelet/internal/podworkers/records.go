package podworkers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// records are the workers' records, by UID. What others decide by is written
// through its methods, which have the versions grow.
type records struct {
	byUID map[types.UID]*record
	// synced: housekeeping has told once which pods there are.
	synced bool
	// lifecycle grows with what housekeeping goes by: which records there are,
	// and how far they have got. work grows with each update of a record.
	lifecycle, work loop.Version
	// changed is told when lifecycle grows; may be nil.
	changed func()
}

func newRecords(changed func()) records {
	return records{byUID: map[types.UID]*record{}, changed: changed}
}

// grow is called with each change that housekeeping could see.
func (r *records) grow() {
	r.lifecycle.Grow()
	if r.changed != nil {
		r.changed()
	}
}

// get returns the record of a pod; nil: there is none.
func (r *records) get(uid types.UID) *record { return r.byUID[uid] }

func (r *records) add(s *record) {
	r.byUID[s.uid()] = s
	r.grow()
}

func (r *records) remove(s *record) {
	delete(r.byUID, s.uid())
	r.grow()
}

// update is record's.
func (r *records) update(s *record, o UpdatePodOptions) updateResult {
	r.work.Grow()
	result := s.update(o)
	if result.changed {
		r.grow()
	}
	return result
}

// start notes that a pod may start.
func (r *records) start(s *record) {
	s.isStarted = true
	r.grow()
}

// closeUnstarted is record's.
func (r *records) closeUnstarted(s *record) {
	s.closeUnstarted()
	r.grow()
}

// beginTerminating notes that a pod's containers are being stopped.
func (r *records) beginTerminating(s *record) {
	if !s.startedTerminating {
		s.startedTerminating = true
		r.grow()
	}
}

// complete is record's.
func (r *records) complete(s *record, work workType, runtimeOnly, isTerminal bool, err error) runOutcome {
	outcome := s.complete(work, runtimeOnly, isTerminal, err)
	// A run that is to be repeated changes nothing that housekeeping goes by.
	if outcome != runAgainLater {
		r.grow()
	}
	return outcome
}

// syncKnown is record's.
func (r *records) syncKnown(s *record, orphan bool) knownResult {
	if orphan && !s.deleted {
		r.grow()
	}
	return s.syncKnown(orphan)
}

// setSynced notes that housekeeping has told which pods there are.
func (r *records) setSynced() {
	if !r.synced {
		r.synced = true
		r.grow()
	}
}

// sorted returns the records of which want is true, by UID.
func (r *records) sorted(want func(*record) bool) []*record {
	var out []*record
	for _, s := range r.byUID { //drydock:unordered sorted below
		if want(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *record) int { return strings.Compare(string(a.uid()), string(b.uid())) })
	return out
}

// Version grows with what housekeeping goes by: which pods have workers, and how
// far these have got.
func (w *Workers) Version() *loop.Version { return &w.records.lifecycle }
