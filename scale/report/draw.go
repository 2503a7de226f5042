package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The room around a chart's figures, in points: for labels left and below, and for
// half a label right and above.
const (
	roomLeft, roomRight = 52, 16
	roomTop, roomBottom = 8, 34
)

// drawing is a chart with its axes settled. It is written as SVG by hand: the
// libraries that draw charts bring fonts and formats along that weigh more than the
// whole report. Colours are the page's variables, so that it can be dark.
type drawing struct {
	*chart
	lines            []line // stacked, if the chart is
	xMin, xMax, yMax float64
	strings.Builder
}

// svg draws the chart as an element of a page, with a title and a description
// for those who don't see it. The order is the order of drawing: grid, lines, limits on top.
func (c *chart) svg() string {
	d := &drawing{chart: c, lines: c.lines}
	if c.stacked {
		d.lines = stack(c.lines)
	}
	d.settle()
	fmt.Fprintf(d, `<svg id="chart-%[1]s" role="img" aria-labelledby="title-%[1]s desc-%[1]s" viewBox="0 0 %[2]d %[3]d" font-size="10">
<title id="title-%[1]s">%[4]s</title>
<desc id="desc-%[1]s">%[5]s</desc>
`, c.id, chartWidth, chartHeight, html.EscapeString(c.title), html.EscapeString(c.describe()))
	d.axes()
	if len(c.groups) > 0 {
		d.bars()
	} else {
		d.series()
	}
	d.limits()
	d.WriteString("</svg>\n")
	return d.String()
}

// settle finds the ends of the axes. The y axis begins at 0, with some room above: one that does
// not begin at 0 exaggerates.
func (d *drawing) settle() {
	d.xMin, d.xMax = math.Inf(1), math.Inf(-1)
	for _, l := range d.lines {
		for _, p := range l.xy {
			d.xMin, d.xMax, d.yMax = min(d.xMin, p.X), max(d.xMax, p.X), max(d.yMax, p.Y)
		}
	}
	if d.isFar(d.limitY) {
		d.chart.limitY = 0
	}
	if d.yMax = max(d.yMax, d.limitY) * 1.06; d.yMax <= 0 {
		d.yMax = 1
	}
	switch {
	case len(d.groups) > 0:
		d.xMin, d.xMax = -0.5, float64(len(d.groups))-0.5
	case d.chart.xMax > 0:
		d.xMin, d.xMax = 0, d.chart.xMax
	case d.limitX > 0:
		d.xMax = max(d.xMax, d.limitX*1.05)
	}
	if d.xMax <= d.xMin {
		d.xMax = d.xMin + 1
	}
}

// isFar reports whether a limit is so far above the figures that, with it in the picture, they
// would be a line at its foot.
func (d *drawing) isFar(limit float64) bool { return d.yMax > 0 && limit > 4*d.yMax }

// x is where a value is from the left, in points.
func (d *drawing) x(v float64) float64 {
	share := (v - d.xMin) / (d.xMax - d.xMin)
	if d.logX {
		share = math.Log(v/d.xMin) / math.Log(d.xMax/d.xMin)
	}
	return roomLeft + share*(chartWidth-roomLeft-roomRight)
}

// y is where a value is from the top, in points.
func (d *drawing) y(v float64) float64 {
	return chartHeight - roomBottom - v/d.yMax*(chartHeight-roomTop-roomBottom)
}

// at writes a place as SVG's paths have it.
func (d *drawing) at(x, y float64) string {
	return strconv.FormatFloat(d.x(x), 'f', 1, 64) + "," + strconv.FormatFloat(d.y(y), 'f', 1, 64)
}

// axes draws the grid, which is horizontal only, and the labels.
func (d *drawing) axes() {
	const bottom = chartHeight - roomBottom
	for _, t := range shortTicks(0, d.yMax) {
		fmt.Fprintf(d, "<path style=\"stroke:var(--grid);stroke-width:.5\" d=\"M%d,%.1fH%d\"/>\n", roomLeft, d.y(t.value), chartWidth-roomRight)
		d.text(roomLeft-5, d.y(t.value)+3.5, "end", t.label)
	}
	fmt.Fprintf(d, "<path style=\"stroke:var(--grid);fill:none\" d=\"M%d,%dV%dH%d\"/>\n", roomLeft, roomTop, bottom, chartWidth-roomRight)
	var ticks []mark
	switch {
	case len(d.groups) > 0:
		for i, g := range d.groups {
			ticks = append(ticks, mark{float64(i), g})
		}
	case d.logX:
		ticks = logTicks(d.xMin, d.xMax)
	default:
		ticks = shortTicks(d.xMin, d.xMax)
	}
	free := 0.0 // up to where labels stand already
	for _, t := range ticks {
		// A digit is some six points wide.
		x, half := d.x(t.value), 3*float64(len(t.label))
		if x-half < free {
			continue
		}
		free = x + half + 3
		if len(d.groups) == 0 {
			fmt.Fprintf(d, "<path style=\"stroke:var(--grid)\" d=\"M%.1f,%dv4\"/>\n", x, bottom)
		}
		d.text(min(x, chartWidth-half-1), bottom+14, "middle", t.label)
	}
	d.text((roomLeft+chartWidth-roomRight)/2, chartHeight-5, "middle", d.xLabel)
	const middle = (roomTop + bottom) / 2
	fmt.Fprintf(d, "<text transform=\"rotate(-90 12 %d)\" x=\"12\" y=\"%d\" text-anchor=\"middle\" style=\"fill:var(--ink)\">%s</text>\n", middle, middle, html.EscapeString(d.yLabel))
}

// text writes a label; anchor says which part of it stands at x.
func (d *drawing) text(x, y float64, anchor, s string) {
	fmt.Fprintf(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" style=\"fill:var(--ink)\">%s</text>\n", x, y, anchor, html.EscapeString(s))
}

// series draws the lines, or the areas of a stack. An area is filled from its line down to the
// axis, so the ones in front have to come last.
func (d *drawing) series() {
	for n := range d.lines {
		i := n
		if d.stacked {
			i = len(d.lines) - 1 - n
		}
		xy := d.lines[i].xy
		if len(xy) == 0 {
			continue
		}
		var path strings.Builder
		for k, p := range xy {
			command := "L"
			if k == 0 {
				command = "M"
			}
			path.WriteString(command + d.at(p.X, p.Y))
		}
		style := fmt.Sprintf("stroke:var(--c%d);stroke-width:1.6;fill:none;stroke-dasharray:%s", i%seriesColors, dashes(i))
		if d.stacked {
			path.WriteString("L" + d.at(xy[len(xy)-1].X, 0) + "L" + d.at(xy[0].X, 0) + "Z")
			style = fmt.Sprintf("fill:var(--c%d)", i%seriesColors)
		}
		d.path(i, style, path.String())
		if d.points {
			for _, p := range xy {
				fmt.Fprintf(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" style=\"fill:var(--c%d)\"/>\n", d.x(p.X), d.y(p.Y), i%seriesColors)
			}
		}
	}
}

// path draws something of the i-th line, which names it for whoever points at it.
func (d *drawing) path(i int, style, path string) {
	fmt.Fprintf(d, "<path style=\"%s\" d=\"%s\"><title>%s</title></path>\n", style, path, html.EscapeString(d.lines[i].name))
}

// dashes tells lines apart for those who don't tell their colours apart. They
// repeat after four; with the colours no two lines of a chart are alike.
func dashes(i int) string { return [...]string{"none", "6 2", "2 2", "8 2 2 2"}[i%4] }

// bars draws each line as a bar in every group, which share three quarters of its width.
func (d *drawing) bars() {
	width := 0.75 / float64(len(d.lines))
	for i, l := range d.lines {
		for _, p := range l.xy {
			from := p.X + width*(float64(i)-float64(len(d.lines))/2)
			d.path(i, fmt.Sprintf("fill:var(--c%d)", i%seriesColors),
				"M"+d.at(from, 0)+"L"+d.at(from, p.Y)+"L"+d.at(from+width, p.Y)+"L"+d.at(from+width, 0)+"Z")
		}
	}
}

// limits draws the limits over everything else. A limit beyond the data is still shown: the range
// was made for it.
func (d *drawing) limits() {
	const style = "stroke:var(--limit);stroke-width:1.2;stroke-dasharray:4 3"
	if d.limitY > 0 {
		fmt.Fprintf(d, "<path style=\"%s\" d=\"M%sL%s\"/>\n", style, d.at(d.xMin, d.limitY), d.at(d.xMax, d.limitY))
	}
	if d.limitX > 0 {
		fmt.Fprintf(d, "<path style=\"%s\" d=\"M%sL%s\"/>\n", style, d.at(d.limitX, 0), d.at(d.limitX, d.yMax))
	}
}
