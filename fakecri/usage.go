package fakecri

import (
	"fmt"
	"math/bits"
	"time"
)

// Usage is what a process uses of something, by the time since its start:
// straight lines between points, level before the first and after the last.
type Usage []Point

// Point is one corner of a Usage.
type Point struct {
	At    time.Duration
	Value int64
}

// Constant is a usage that never changes.
func Constant(v int64) Usage { return Usage{{Value: v}} }

// Ramp is a usage that goes from one value to another over a time, and stays.
func Ramp(from, to int64, over time.Duration) Usage {
	return Usage{{Value: from}, {At: over, Value: to}}
}

func (u Usage) validate() error {
	for i, p := range u {
		switch {
		case p.Value < 0 || p.At < 0:
			return fmt.Errorf("point %d: negative", i)
		case i > 0 && p.At <= u[i-1].At:
			return fmt.Errorf("point %d: not after the one before", i)
		}
	}
	return nil
}

// at returns the usage a time after the start.
func (u Usage) at(t time.Duration) int64 {
	if len(u) == 0 {
		return 0
	}
	if t <= u[0].At {
		return u[0].Value
	}
	for i := 1; i < len(u); i++ {
		if a, b := u[i-1], u[i]; t < b.At {
			return a.Value + mulDiv(b.Value-a.Value, int64(t-a.At), int64(b.At-a.At))
		}
	}
	return u[len(u)-1].Value
}

// total returns the integral from the start up to t, in value-nanoseconds
// divided by div.
func (u Usage) total(t time.Duration, div int64) int64 {
	if len(u) == 0 || t <= 0 {
		return 0
	}
	sum := mulDiv(u[0].Value, int64(min(t, u[0].At)), div)
	for i := 1; i < len(u) && t > u[i-1].At; i++ {
		end := min(t, u[i].At)
		sum += mulDiv(u[i-1].Value+u.at(end), int64(end-u[i-1].At), 2*div)
	}
	if last := u[len(u)-1]; t > last.At {
		sum += mulDiv(last.Value, int64(t-last.At), div)
	}
	return sum
}

// over returns the first time, from after on, at which the usage is above
// limit.
func (u Usage) over(limit int64, after time.Duration) (time.Duration, bool) {
	if len(u) == 0 {
		return 0, false
	}
	if u.at(after) > limit {
		return after, true
	}
	for i := 1; i < len(u); i++ {
		a, b := u[i-1], u[i]
		if b.At <= after || b.Value <= limit {
			continue
		}
		// The line rises through the limit between here and b.
		from := max(after, a.At)
		t := a.At
		if a.Value <= limit {
			t += time.Duration(mulDiv(limit-a.Value+1, int64(b.At-a.At), b.Value-a.Value))
		}
		for t = max(t, from); t < b.At && u.at(t) <= limit; t++ {
		}
		return t, true
	}
	return 0, false
}

// mulDiv is a*b/c, without overflow on the way; b and c are not negative.
func mulDiv(a, b, c int64) int64 {
	neg := a < 0
	if neg {
		a = -a
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi%uint64(c), lo, uint64(c))
	if neg {
		return -int64(q)
	}
	return int64(q)
}
