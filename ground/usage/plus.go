package usage

import "time"

// Plus is the sum of two curves of one user. Of one that repeats or has noise
// beside another that changes, the second counts with its peak. The result is never below the
// true sum, so a limit is never found too late.
func (c *Curve) Plus(o *Curve) *Curve {
	if v, ok := c.Constant(); ok {
		return o.shifted(v)
	}
	if v, ok := o.Constant(); ok {
		return c.shifted(v)
	}
	if c.every > 0 || c.noise > 0 || o.every > 0 || o.noise > 0 {
		return c.shifted(o.Peak())
	}
	var points []Point
	add := func(at time.Duration) {
		// Before and after a step of either; one of no height is no step.
		before, after := c.before(at)+o.before(at), c.lineAt(at)+o.lineAt(at)
		if at > 0 && before != after {
			points = append(points, Point{at, before})
		}
		points = append(points, Point{at, after})
	}
	for i, k, last := 0, 0, time.Duration(-1); i < len(c.points) || k < len(o.points); {
		var at time.Duration
		if k == len(o.points) || i < len(c.points) && c.points[i].At <= o.points[k].At {
			at, i = c.points[i].At, i+1
		} else {
			at, k = o.points[k].At, k+1
		}
		if at != last {
			add(at)
		}
		last = at
	}
	return newCurve(points)
}

// before is the points' amount just before a time. It differs from At where two points make a
// step.
func (c *Curve) before(t time.Duration) int64 {
	for i := range c.points {
		if c.points[i].At == t {
			return c.points[i].Value // of two at one time the first
		}
	}
	return c.lineAt(t)
}

// shifted is the curve with v more all the time. Noise keeps its size.
func (c *Curve) shifted(v int64) *Curve {
	if c == nil {
		return Constant(v)
	}
	if v == 0 {
		return c
	}
	points := make([]Point, len(c.points))
	for i, p := range c.points {
		points[i] = Point{p.At, p.Value + v}
	}
	r := newCurve(points)
	r.every, r.phase, r.noise, r.noiseEvery = c.every, c.phase, c.noise, c.noiseEvery
	return r
}
