package usage

import (
	"math"
	"math/bits"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Total is the integral from the start to t in value-nanoseconds, divided by div
// (which is positive). It is CPU time of a rate, say, where div turns units. Computed and not
// summed up, so it is the same however often somebody asks.
func (c *Curve) Total(t time.Duration, key uint64, div int64) int64 {
	if c == nil || t <= 0 {
		return 0
	}
	if v, ok := c.Constant(); ok {
		return mulDiv(v, int64(t), div)
	}
	var sum area
	if c.every > 0 {
		// From the phase on: what lies before it was never used.
		t += c.phase
		whole := c.linesArea(c.every)
		sum = whole.times(uint64(t / c.every)).plus(c.linesArea(t % c.every)).minus(c.linesArea(c.phase))
		t -= c.phase
	} else {
		sum = c.linesArea(t)
	}
	// In the second half of a pair the first is taken back.
	if c.noise > 0 {
		// Pairs of stretches cancel out: only the one begun counts.
		pair := int64(t / (2 * c.noiseEvery))
		in := t - 2*time.Duration(pair)*c.noiseEvery
		if in > c.noiseEvery {
			in = 2*c.noiseEvery - in
		}
		if n := c.pairNoise(pair, key); n < 0 {
			sum = sum.minus(rectangle(-n, in))
		} else {
			sum = sum.plus(rectangle(n, in))
		}
	}
	return sum.over(div)
}

// linesArea is the area below the points' lines up to t. Twice the area of each piece is a whole
// number, which is why area is twice an integral.
func (c *Curve) linesArea(t time.Duration) area {
	if t <= 0 {
		return area{}
	}
	first := c.points[0]
	sum := rectangle(first.Value, min(t, first.At))
	for i := 1; i < len(c.points) && t > c.points[i-1].At; i++ {
		a, b := c.points[i-1], c.points[i]
		if t >= b.At {
			sum = sum.plus(trapezium(a.Value+b.Value, b.At-a.At))
			continue
		}
		// The part of a line: without rounding its end, or a slow descent would
		// seem to give back what was used.
		d, span := t-a.At, b.At-a.At
		sum = sum.plus(rectangle(a.Value, d))
		if rise := b.Value - a.Value; rise >= 0 {
			sum = sum.plus(trapezium(rise, d).scaled(d, span))
		} else {
			sum = sum.minus(trapezium(-rise, d).scaled(d, span))
		}
		return sum
	}
	if last := c.points[len(c.points)-1]; t > last.At {
		sum = sum.plus(rectangle(last.Value, t-last.At))
	}
	return sum
}

// area is twice an integral: 128 bits, since bytes times nanoseconds are more
// than 64 hold. The arithmetic is of whole numbers throughout: floating point would differ
// between machines.
type area struct{ hi, lo uint64 }

// rectangle is v for d.
func rectangle(v int64, d time.Duration) area { return trapezium(v, d).times(2) }

// trapezium is that whose parallel sides' sum is v.
func trapezium(v int64, d time.Duration) area {
	hi, lo := bits.Mul64(uint64(v), uint64(d))
	return area{hi, lo}
}

// plus, minus and times are as for numbers; minus never goes below 0 here.
func (a area) plus(b area) area {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return area{hi, lo}
}

func (a area) minus(b area) area {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return area{hi, lo}
}

func (a area) times(n uint64) area {
	hi, lo := bits.Mul64(a.lo, n)
	return area{hi + a.hi*n, lo}
}

// scaled is a*part/whole; part is not above whole. The division comes in parts, as the product
// needs more than 128 bits.
func (a area) scaled(part, whole time.Duration) area {
	n, d := uint64(part), uint64(whole)
	hi, rest := a.hi/d, a.hi%d
	lo, rest := bits.Div64(rest, a.lo, d)
	more, less := bits.Mul64(rest, n)
	q, _ := bits.Div64(more, less, d)
	return area{hi, lo}.times(n).plus(area{0, q})
}

// over is the integral divided by div, at most what an int64 holds.
func (a area) over(div int64) int64 {
	d := 2 * uint64(div)
	if a.hi >= d {
		return math.MaxInt64
	}
	q, _ := bits.Div64(a.hi, a.lo, d)
	return int64(min(q, math.MaxInt64))
}

// draw is the n-th random number of a key. It depends on nothing else, so asking does not change
// what is drawn later.
func draw(key, n uint64) uint64 { return loop.Hash(key, nil, n) }

// mulDiv is a*b/c, without overflow on the way; b and c are not negative. A result that does not
// fit is the largest number.
func mulDiv(a, b, c int64) int64 {
	neg := a < 0
	if neg {
		a = -a
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	q = min(q, math.MaxInt64)
	if neg {
		return -int64(q)
	}
	return int64(q)
}
