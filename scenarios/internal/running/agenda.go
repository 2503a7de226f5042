package running

import (
	"math"
	"slices"
	"time"
)

// agenda is what the timeline still has to do, in order of time and then of
// entry.
type agenda struct {
	items []item
	// creations counts the items that create pods, which start-up waits for.
	creations int
}

// item is something to do between two runs of the engine.
type item struct {
	at      time.Duration
	creates bool
	do      func() error
}

// add enters something; what is entered for one time happens in the order of
// entry.
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

// runDue does all that is due at now.
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
