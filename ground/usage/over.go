package usage

import (
	"math"
	"time"
)

// User is somebody who uses what a curve says, from a time on. Key is the seed of the noise: two
// users of one curve don't move together.
type User struct {
	Curve *Curve
	// Start of the curve on the clock of all users.
	Start time.Duration
	Key   uint64
}

// At is what is used at a time of the clock.
func (u User) At(now time.Duration) int64 { return u.Curve.At(now-u.Start, u.Key) }

// steps bounds how long a search goes on before it says that it has to be asked
// again. It keeps a search on the loop short, however odd the curves are.
const steps = 2000

// finest is what a search in a sum looks between: what it exceeds a limit for
// less than this may be passed over.
const finest = time.Millisecond

// Over is the first time, from after on, with an amount above limit; false if
// there never is one. With noise it may also be a time until which there is none
// and after which nobody has looked: whoever waits for it asks again then. after and the result
// are times since the curve's start.
func (c *Curve) Over(limit int64, after time.Duration, key uint64) (time.Duration, bool) {
	after = max(after, 0)
	if c.Peak() <= limit {
		return 0, false
	}
	one := [1]User{{Curve: c, Key: key}}
	return FirstOver(one[:], limit, after)
}

// FirstOver is the first time, from after on, at which the users' sum is above
// limit; false if there never is one. As with Over, it may be a time at which to
// ask again: then it is at least a millisecond after after. Times are the clock's. The work is
// bounded, see steps.
func FirstOver(users []User, limit int64, after time.Duration) (time.Duration, bool) {
	s := search{users: users, limit: limit, left: steps, finest: finest}
	// For a single user the time is exact to the nanosecond.
	if len(users) == 1 {
		s.finest = 1
	}
	var peak int64
	for _, u := range users {
		peak += u.Curve.Peak()
	}
	if peak <= limit {
		return 0, false
	}
	if s.at(after) > limit {
		return after, true
	}
	// The search goes by spans that double: near ones are looked at closely, since most limits
	// are passed soon.
	end, forever := s.end(after)
	for from, span := after, time.Second; from < end; span *= 2 {
		to := end
		if span > 0 && span < end-from {
			to = from + span
		}
		if t, found := s.find(from, to); found {
			// It has given up: the caller asks again, and later than now, or it would ask for
			// ever.
			if s.left < 0 {
				t = max(t, after+finest)
			}
			return t, true
		}
		from = to
	}
	if forever {
		return end, true
	}
	return 0, false
}

// search looks for the first time of a sum above a limit. It halves spans of time, and drops
// those whose highest value is below the limit.
type search struct {
	users []User
	limit int64
	// left are the steps to take; below 0 the search has given up.
	left   int
	finest time.Duration
}

// at is the sum at a time.
func (s *search) at(t time.Duration) int64 {
	var sum int64
	for _, u := range s.users {
		sum += u.At(t)
	}
	return sum
}

// end is the time by which everything that can happen has: after the users'
// last points, or their period. If more than one repeats, or there is noise,
// there is none, and the search goes on from where it ends. forever says that end is only how far
// was looked.
func (s *search) end(after time.Duration) (end time.Duration, forever bool) {
	const farthest = time.Duration(math.MaxInt64 / 4)
	end = after + 1
	repeating := 0
	for _, u := range s.users {
		c := u.Curve
		if _, ok := c.Constant(); ok {
			continue
		}
		from := max(after, u.Start)
		switch {
		case c.every > 0:
			repeating++
			end = max(end, from+c.every)
		default:
			end = max(end, u.Start+c.points[len(c.points)-1].At+1)
		}
		forever = forever || c.noise > 0
	}
	if repeating > 0 && len(s.users) > 1 {
		// What repeats starts over when the others have come to an end.
		for _, u := range s.users {
			if u.Curve != nil && u.Curve.every > 0 {
				end += u.Curve.every
			}
		}
	}
	if repeating > 1 || forever {
		return max(end, after+horizon), true
	}
	return min(end, farthest), false
}

// horizon is how far a search for ever looks at once. After a day of virtual time the caller asks
// again.
const horizon = 24 * time.Hour

// find is the first time in (from, to] with a sum above the limit, or the one up
// to which there is none if the search gives up. The sum at from is not above. bound may be above
// what the sum ever is, never below: so dropping a span is safe.
func (s *search) find(from, to time.Duration) (time.Duration, bool) {
	var bound int64
	for _, u := range s.users {
		bound += u.Curve.highest(from+1-u.Start, to-u.Start, u.Key)
	}
	if bound <= s.limit {
		return 0, false
	}
	if s.left--; s.left < 0 {
		return from, true
	}
	// Within the finest span the sum is taken to cross the limit once.
	if to-from <= s.finest {
		if s.at(to) <= s.limit {
			return 0, false
		}
		for to-from > 1 {
			if mid := from + (to-from)/2; s.at(mid) > s.limit {
				to = mid
			} else {
				from = mid
			}
		}
		return to, true
	}
	mid := from + (to-from)/2
	if t, found := s.find(from, mid); found {
		return t, true
	}
	return s.find(mid, to)
}
