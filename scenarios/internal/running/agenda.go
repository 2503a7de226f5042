package running

import (
	"math"
	"slices"
	"time"
)

// agenda is what the timeline still has to do, in order of time and then of
// entry. Actions may add items while they are done (Stage.Later), at times to come or at the
// present one; these are done in the same round.
type agenda struct {
	items []item
	// creations counts the items that create pods, which start-up waits for.
	creations int
}

// item is something to do between two runs of the engine. An item runs between runs of the
// engine, so it may touch any node: no loop is running then. Within a run, even the API's loop
// must not look at a node's.
type item struct {
	at      time.Duration
	creates bool
	do      func() error
}

// add enters something; what is entered for one time happens in the order of
// entry. The search finds the place after all items of the same time.
func (a *agenda) add(at time.Duration, creates bool, do func() error) {
	i, _ := slices.BinarySearchFunc(a.items, at, func(it item, at time.Duration) int {
		if it.at <= at {
			return -1
		}
		return 1
	})
	a.items = slices.Insert(a.items, i, item{at, creates, do})
	if creates {
		a.creations++
	}
}

// next returns when something is to be done; far in the future if nothing is.
func (a *agenda) next() time.Duration {
	if len(a.items) == 0 {
		return math.MaxInt64
	}
	return a.items[0].at
}

// runDue does all that is due at now. The item is taken off before it is done, since doing it may
// add others at the front.
func (a *agenda) runDue(now time.Duration) error {
	for len(a.items) > 0 && a.items[0].at <= now {
		it := a.items[0]
		a.items = a.items[1:]
		if it.creates {
			a.creations--
		}
		if err := it.do(); err != nil {
			return err
		}
	}
	return nil
}
