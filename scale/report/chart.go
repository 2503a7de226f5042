package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// chart is a picture of some lines or bars over common axes. It knows nothing of
// what its figures mean: charts.go says that, and draw.go draws it.
type chart struct {
	// id names the chart's elements, title heads it, about says what it shows.
	id, title, about string
	xLabel, yLabel   string
	lines            []line
	// stacked puts each line on top of those before it, and fills it.
	stacked bool
	// groups, if any, has the lines drawn as bars: one group for each x of 0, 1, ...
	groups []string
	// logX has a logarithmic x axis.
	logX bool
	// xMax, if any, has the x axis go from 0 to it.
	xMax float64
	// points marks each point of a line; for lines that may have one only.
	points bool
	// limitX and limitY draw a line at a limit; 0 is none.
	limitX, limitY float64
	// file is the CSV file with the figures.
	file string
}

// line is one series of a chart. An empty line is kept, so that colours stay with their series.
type line struct {
	name string
	xy   []point
}

// point is a value at a place of the x axis.
type point struct{ X, Y float64 }

// seriesColors is how many colours the page has for series; they are --c0 and so on.
const seriesColors = 8

// Chart sizes, in points of the drawing's own coordinates; the page scales it.
const (
	chartWidth  = 480
	chartHeight = 230
)

// limitFar reports whether the chart's limit is so far above its figures that it is left out.
func (c *chart) limitFar() bool {
	d := &drawing{chart: c}
	for _, l := range c.lines {
		for _, p := range l.xy {
			d.yMax = max(d.yMax, p.Y)
		}
	}
	return d.isFar(c.limitY)
}

// empty tells that there is nothing to draw.
func (c *chart) empty() bool {
	return !slices.ContainsFunc(c.lines, func(l line) bool { return len(l.xy) > 0 })
}

// stack adds up lines that have the same x. The lines are cumulated from the first; the sum is
// the top line.
func stack(lines []line) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		out[i] = line{l.name, slices.Clone(l.xy)}
		for k := range out[i].xy {
			if i > 0 {
				out[i].xy[k].Y += out[i-1].xy[k].Y
			}
		}
	}
	return out
}

// describe says in words what the lines show. It is the drawing's text for who
// can't see it. The figures are those that somebody would read off: the highest and the last.
func (c *chart) describe() string {
	var out []string
	for _, l := range c.lines {
		if len(l.xy) == 0 {
			continue
		}
		most := l.xy[0]
		for _, p := range l.xy {
			if p.Y > most.Y {
				most = p
			}
		}
		if len(c.groups) > 0 {
			out = append(out, fmt.Sprintf("%s: most %s (%s)", l.name, short(most.Y), c.groups[int(most.X)]))
		} else {
			out = append(out, fmt.Sprintf("%s: most %s, at the end %s", l.name, short(most.Y), short(l.xy[len(l.xy)-1].Y)))
		}
	}
	return c.about + " " + strings.Join(out, "; ") + "."
}

// mark is a value with a label on an axis.
type mark struct {
	value float64
	label string
}

// shortTicks are four to eight multiples of 1, 2 or 5 times a power of ten, with
// labels such as 150k. The step is the largest of 1, 2 and 5 times a power of ten that
// gives at least four ticks.
func shortTicks(min, max float64) (out []mark) {
	step := math.Pow(10, math.Floor(math.Log10((max-min)/4)))
	for _, m := range []float64{5, 2} {
		if (max-min)/(m*step) >= 4 {
			step *= m
			break
		}
	}
	for k := math.Ceil(min / step); k*step <= max; k++ {
		out = append(out, mark{k * step, short(k * step)})
	}
	return out
}

// logTicks are 1, 2 and 5 of each power of ten.
// A thousandth of slack keeps the axis's own ends, which rounding
// may have moved.
func logTicks(min, max float64) (out []mark) {
	for e := math.Floor(math.Log10(min)); e <= math.Log10(max); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= min*0.999 && v <= max*1.001 {
				out = append(out, mark{v, short(v)})
			}
		}
	}
	return out
}

// short writes a number with about three digits. Labels of thousands stay in full up to 9999, as
// in the tables.
func short(v float64) string {
	unit := ""
	switch a := math.Abs(v); {
	case a >= 1e9:
		v, unit = v/1e9, "G"
	case a >= 1e6:
		v, unit = v/1e6, "M"
	case a >= 1e4:
		v, unit = v/1e3, "k"
	case a < 1e-9:
		return "0"
	}
	digits := max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0)
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + unit
}
