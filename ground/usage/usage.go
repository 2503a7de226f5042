// Package usage has amounts that change over time: what a program or a machine uses of memory,
// CPU, disk, inodes or process numbers. It knows neither Kubernetes nor containers.
//
// A [Curve] is made of straight lines, so what is asked of it (its value, its peak, when it first
// passes a limit, its integral) is computed, not sampled. That is what makes ten thousand
// programs with changing usage cheap: an OOM kill, an eviction or a full disk is one timer, set
// for the instant that was computed, and nothing happens in between. [FirstOver] answers for the
// sum of many.
//
// Values are whole numbers in whatever unit the caller has (bytes, millicores), times are
// durations since the curve's start. Noise is drawn by hash from a key and the place in time, so
// the same question always has the same answer, in any order.
//
// usage.go has curves and their values, over.go when they pass a limit, total.go integrals,
// plus.go sums of two, csv.go how they are read.
package usage

import (
	"errors"
	"fmt"
	"sort"
	"time"
)

// Curve is an amount by the time since its start: straight lines between
// points, level before the first and after the last; maybe repeated, maybe with
// noise. It is immutable; a nil Curve is 0 for ever.
type Curve struct {
	// points are at least one, in order of time.
	points []Point
	// every repeats the points; phase is how far in it starts.
	every, phase time.Duration
	noise        int64
	// noise is the amplitude; draws change each noiseEvery.
	noiseEvery time.Duration
	low, high  int64 // of the points
}

// Point is a corner of a curve. Two points at one time are a step: from then on
// the second holds.
type Point struct {
	At    time.Duration
	Value int64
}

// Constant never changes; a negative amount is 0. It has one point, by which At is fast.
func Constant(v int64) *Curve { return newCurve([]Point{{Value: max(v, 0)}}) }

// Ramp goes from one amount to another over a time, and stays; at once if the
// time is not positive.
func Ramp(from, to int64, over time.Duration) *Curve {
	from, to = max(from, 0), max(to, 0)
	if over <= 0 {
		return Constant(to)
	}
	return newCurve([]Point{{Value: from}, {At: over, Value: to}})
}

// newCurve takes the points over; there is at least one.
func newCurve(points []Point) *Curve {
	c := &Curve{points: points, low: points[0].Value, high: points[0].Value}
	for _, p := range points {
		c.low, c.high = min(c.low, p.Value), max(c.high, p.Value)
	}
	return c
}

// Lines is a line through the points, which are copied. It is an error if there
// are none, if an amount or a time is negative, if times descend, or if there
// are three at one time.
func Lines(points []Point) (*Curve, error) {
	if len(points) == 0 {
		return nil, errors.New("no points")
	}
	for i, p := range points {
		switch {
		case p.At < 0:
			return nil, fmt.Errorf("point %d: negative time %s", i+1, p.At)
		case p.Value < 0:
			return nil, fmt.Errorf("point %d: negative amount %d", i+1, p.Value)
		case i > 0 && p.At < points[i-1].At:
			return nil, fmt.Errorf("point %d: its time %s is before that of the point before, %s", i+1, p.At, points[i-1].At)
		case i > 1 && p.At == points[i-2].At:
			return nil, fmt.Errorf("point %d: the third at the time %s", i+1, p.At)
		}
	}
	return newCurve(append([]Point(nil), points...)), nil
}

// Steps holds each amount until the next one's time. Errors are as those of
// Lines; no two may have one time. A step is two points at one time.
func Steps(points []Point) (*Curve, error) {
	steps := make([]Point, 0, 2*len(points))
	for i, p := range points {
		if i > 0 {
			if last := points[i-1]; p.At > last.At {
				steps = append(steps, Point{At: p.At, Value: last.Value})
			} else {
				return nil, fmt.Errorf("point %d: its time %s is not after that of the point before, %s", i+1, p.At, last.At)
			}
		}
		if p.At < 0 || p.Value < 0 {
			return nil, fmt.Errorf("point %d: negative", i+1)
		}
		steps = append(steps, p)
	}
	return Lines(steps)
}

// Shape is a periodic curve's. It is of Periodic.
type Shape int

// All shapes begin low and are high after half a period.
const (
	Triangle Shape = iota
	Square
	Sine
)

// sine is half a wave from low to high in steps of 15 degrees, in thousandths:
// fixed numbers, since machines' sines differ in their last bits.
var sine = [...]int64{0, 17, 67, 146, 250, 371, 500, 629, 750, 854, 933, 983, 1000}

// Periodic goes up and down between two amounts for ever. It is an error if low
// is negative or above high, or if the period is shorter than a millisecond. At time 0 it is low;
// Phase starts elsewhere.
func Periodic(low, high int64, period time.Duration, shape Shape) (*Curve, error) {
	switch {
	case low < 0:
		return nil, fmt.Errorf("negative amount %d", low)
	case high < low:
		return nil, fmt.Errorf("the high amount %d is below the low one, %d", high, low)
	case period < minSpan:
		return nil, fmt.Errorf("the period %s is shorter than %s", period, minSpan)
	}
	var points []Point
	switch shape {
	case Square:
		points = []Point{{0, low}, {period / 2, low}, {period / 2, high}}
	case Sine:
		n := len(sine) - 1
		for i := 0; i <= 2*n; i++ {
			v := sine[n-max(i-n, n-i)]
			points = append(points, Point{time.Duration(mulDiv(int64(period), int64(i), int64(2*n))), low + mulDiv(high-low, v, 1000)})
		}
	default:
		points = []Point{{0, low}, {period / 2, high}, {period, low}}
	}
	return newCurve(points).Repeat(period)
}

// minSpan is the shortest a repetition or a draw of noise may be: without a
// limit a curve could have more corners than anyone can visit. Searches visit corners one by one.
const minSpan = time.Millisecond

// Repeat has the curve begin again after a time, for ever. It is an error if the
// time is shorter than a millisecond or than the curve, or if the curve repeats
// already.
func (c *Curve) Repeat(every time.Duration) (*Curve, error) {
	switch {
	case every < minSpan:
		return nil, fmt.Errorf("repeated every %s, which is less than %s", every, minSpan)
	case c == nil:
		return nil, nil
	case c.every > 0:
		return nil, errors.New("it repeats already")
	case c.points[len(c.points)-1].At > every:
		return nil, fmt.Errorf("repeated every %s, but its last point is at %s", every, c.points[len(c.points)-1].At)
	}
	// A level line has nothing to repeat, and stays one that is cheap to ask.
	if c.low == c.high {
		return c, nil
	}
	r := *c
	r.every = every
	return &r, nil
}

// Phase has a repeated curve start so far into its period; others are not
// changed. Many users of one curve are spread by it.
func (c *Curve) Phase(by time.Duration) *Curve {
	if c == nil || c.every == 0 {
		return c
	}
	r := *c
	// A negative phase counts from the period's end.
	r.phase = ((c.phase+by)%c.every + c.every) % c.every
	return &r
}

// WithNoise adds an amount of up to ±amplitude, drawn for each stretch of the
// given length. What is added in one stretch is taken away in the next, so the
// curve's mean stays; and never more than the curve has above 0 in both. Noise
// does not repeat with the curve. It is an error if the amplitude is negative or
// a stretch shorter than a millisecond. Pairs keep the integral what it would be without noise,
// at the end of each pair.
func (c *Curve) WithNoise(amplitude int64, every time.Duration) (*Curve, error) {
	switch {
	case amplitude < 0:
		return nil, fmt.Errorf("negative amplitude %d of the noise", amplitude)
	case every < minSpan:
		return nil, fmt.Errorf("noise every %s, which is less than %s", every, minSpan)
	case c == nil || amplitude == 0:
		return c, nil
	}
	r := *c
	r.noise, r.noiseEvery = amplitude, every
	return &r, nil
}

// At is the amount a time after the start. key is the noise's seed: all
// questions about one user of the curve give the same. Times before the start are the start.
func (c *Curve) At(t time.Duration, key uint64) int64 {
	if c == nil {
		return 0
	}
	if len(c.points) == 1 && c.noise == 0 {
		return c.points[0].Value
	}
	t = max(t, 0)
	v := c.lineAt(c.local(t))
	if c.noise > 0 {
		v += c.noiseAt(t, key)
	}
	return v
}

// local is the time on the points at a time since the start. The period counts from the start of
// the curve, not from the phase.
func (c *Curve) local(t time.Duration) time.Duration {
	if c.every > 0 {
		return (t%c.every + c.phase) % c.every
	}
	return t
}

// after is the index of the first point after t.
func (c *Curve) after(t time.Duration) int {
	// A few points are searched faster one by one.
	if len(c.points) <= 8 {
		i := 0
		for i < len(c.points) && c.points[i].At <= t {
			i++
		}
		return i
	}
	return sort.Search(len(c.points), func(i int) bool { return c.points[i].At > t })
}

// lineAt is the amount of the lines alone, at a time on the points. Rounding is towards the left
// point.
func (c *Curve) lineAt(t time.Duration) int64 {
	i := c.after(t)
	switch i {
	case 0:
		return c.points[0].Value
	case len(c.points):
		return c.points[i-1].Value
	}
	a, b := c.points[i-1], c.points[i]
	return a.Value + mulDiv(b.Value-a.Value, int64(t-a.At), int64(b.At-a.At))
}

// noiseAt is the noise at a time since the start.
func (c *Curve) noiseAt(t time.Duration, key uint64) int64 {
	slot := int64(t / c.noiseEvery)
	n := c.pairNoise(slot/2, key)
	if slot%2 == 1 {
		return -n
	}
	return n
}

// pairNoise is what is added in the first half of a pair of stretches, and taken
// away in the second. The lower of the two sides of 0 decides, so the curve never is negative.
func (c *Curve) pairNoise(pair int64, key uint64) int64 {
	amp := c.noise
	// Only where the line comes near 0 must the noise be held back.
	if c.low < amp {
		from := 2 * time.Duration(pair) * c.noiseEvery
		lo, _ := c.lineRange(from, from+2*c.noiseEvery-1)
		amp = min(amp, lo)
	}
	if amp == 0 {
		return 0
	}
	return int64(draw(key, uint64(pair))%uint64(2*amp+1)) - amp
}

// Peak is an amount that no value is above. It may be above what is reached, as noise may not be
// drawn so high.
func (c *Curve) Peak() int64 {
	if c == nil {
		return 0
	}
	return c.high + min(c.noise, c.high)
}

// Constant is the amount, if it never changes.
func (c *Curve) Constant() (int64, bool) {
	switch {
	case c == nil:
		return 0, true
	case c.low == c.high && (c.noise == 0 || c.low == 0):
		return c.low, true
	}
	return 0, false
}

// Next is the end of the straight line that t is on; false if the amount does
// not change any more. Up to it the curve is straight, so whoever knows both ends knows all
// between.
func (c *Curve) Next(t time.Duration, key uint64) (time.Duration, bool) {
	if _, ok := c.Constant(); ok {
		return 0, false
	}
	t = max(t, 0)
	next, ok := time.Duration(0), false
	local := c.local(t)
	if i := c.after(local); i < len(c.points) {
		next, ok = t+c.points[i].At-local, true
	} else if c.every > 0 {
		next, ok = t+c.every-local, true
	}
	if c.noise > 0 {
		if end := (t/c.noiseEvery + 1) * c.noiseEvery; !ok || end < next {
			next, ok = end, true
		}
	}
	return next, ok
}

// lineRange is the least and the most of the line, without noise, at the times
// from from to to, both included. A time span longer than the period has it all.
func (c *Curve) lineRange(from, to time.Duration) (low, high int64) {
	if len(c.points) == 1 {
		return c.low, c.high
	}
	if c.every == 0 {
		return c.pointsRange(from, to)
	}
	if to-from >= c.every-1 {
		return c.low, c.high
	}
	a, b := c.local(from), c.local(to)
	if a <= b {
		return c.pointsRange(a, b)
	}
	low, high = c.pointsRange(a, c.every-1)
	l, h := c.pointsRange(0, b)
	return min(low, l), max(high, h)
}

// pointsRange is lineRange on the points themselves.
func (c *Curve) pointsRange(from, to time.Duration) (low, high int64) {
	a, b := c.lineAt(from), c.lineAt(to)
	low, high = min(a, b), max(a, b)
	for i := c.after(from); i < len(c.points) && c.points[i].At <= to; i++ {
		low, high = min(low, c.points[i].Value), max(high, c.points[i].Value)
	}
	return low, high
}

// highest is an amount that no value from from to to, both included, is above:
// the least such unless there is noise. It is what the search drops spans by.
func (c *Curve) highest(from, to time.Duration, key uint64) int64 {
	if c == nil {
		return 0
	}
	from, to = max(from, 0), max(to, 0)
	_, high := c.lineRange(from, to)
	if c.noise == 0 {
		return high
	}
	first, last := from/c.noiseEvery, to/c.noiseEvery
	// Over many stretches the bound is not worth a closer look.
	if last-first > 4 {
		return high + min(c.noise, high)
	}
	noise := c.noiseAt(from, key)
	for s := first + 1; s <= last; s++ {
		noise = max(noise, c.noiseAt(s*c.noiseEvery, key))
	}
	return high + noise
}

// Capped is the curve with what is above limit cut off; with noise, that only
// has what room the limit leaves above the curve's mean. Where a line crosses the limit it gets a
// corner.
func (c *Curve) Capped(limit int64) *Curve {
	limit = max(limit, 0)
	if c.Peak() <= limit {
		return c
	}
	var points []Point
	for i, p := range c.points {
		if i > 0 {
			if a := c.points[i-1]; (a.Value > limit) != (p.Value > limit) && p.At > a.At {
				low, high := min(a.Value, p.Value), max(a.Value, p.Value)
				part := time.Duration(mulDiv(int64(p.At-a.At), limit-low, high-low))
				// A falling line is above the limit first, so the part counts from its
				// end.
				if a.Value > limit {
					part = p.At - a.At - part
				}
				if at := a.At + part; at > a.At && at < p.At {
					points = append(points, Point{at, limit})
				}
			}
		}
		points = append(points, Point{p.At, min(p.Value, limit)})
	}
	r := newCurve(points)
	r.every, r.phase = c.every, c.phase
	r.noise, r.noiseEvery = min(c.noise, limit-r.high), c.noiseEvery
	return r
}
