package kubelet

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// podRecords are the workers' records, by UID. What others decide by is written
// through its methods, which have the versions grow.
type podRecords struct {
	byUID map[types.UID]*podState
	// synced: housekeeping has told once which pods there are.
	synced bool
	// lifecycle grows with what housekeeping goes by: which records there are,
	// and how far they have got. work grows with each update of a record.
	lifecycle, work loop.Version
	// changed is told when lifecycle grows; may be nil.
	changed func()
}

func newPodRecords(changed func()) podRecords {
	return podRecords{byUID: map[types.UID]*podState{}, changed: changed}
}

// grow is called with each change that housekeeping could see.
func (r *podRecords) grow() {
	r.lifecycle.Grow()
	if r.changed != nil {
		r.changed()
	}
}

// get returns the record of a pod; nil: there is none.
func (r *podRecords) get(uid types.UID) *podState { return r.byUID[uid] }

func (r *podRecords) add(s *podState) {
	r.byUID[s.uid()] = s
	r.grow()
}

func (r *podRecords) remove(s *podState) {
	delete(r.byUID, s.uid())
	r.grow()
}

// update is podState's.
func (r *podRecords) update(s *podState, o UpdatePodOptions) updateResult {
	r.work.Grow()
	result := s.update(o)
	if result.changed {
		r.grow()
	}
	return result
}

// start notes that a pod may start.
func (r *podRecords) start(s *podState) {
	s.isStarted = true
	r.grow()
}

// closeUnstarted is podState's.
func (r *podRecords) closeUnstarted(s *podState) {
	s.closeUnstarted()
	r.grow()
}

// beginTerminating notes that a pod's containers are being stopped.
func (r *podRecords) beginTerminating(s *podState) {
	if !s.startedTerminating {
		s.startedTerminating = true
		r.grow()
	}
}

// complete is podState's.
func (r *podRecords) complete(s *podState, work workType, runtimeOnly, isTerminal bool, err error) runOutcome {
	outcome := s.complete(work, runtimeOnly, isTerminal, err)
	// A run that is to be repeated changes nothing that housekeeping goes by.
	if outcome != runAgainLater {
		r.grow()
	}
	return outcome
}

// syncKnown is podState's.
func (r *podRecords) syncKnown(s *podState, orphan bool) knownResult {
	if orphan && !s.deleted {
		r.grow()
	}
	return s.syncKnown(orphan)
}

// setSynced notes that housekeeping has told which pods there are.
func (r *podRecords) setSynced() {
	if !r.synced {
		r.synced = true
		r.grow()
	}
}

// sorted returns the records of which want is true, by UID.
func (r *podRecords) sorted(want func(*podState) bool) []*podState {
	var out []*podState
	for _, s := range r.byUID { //drydock:unordered sorted below
		if want(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *podState) int { return strings.Compare(string(a.uid()), string(b.uid())) })
	return out
}
