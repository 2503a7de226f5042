package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is a picture of some lines or bars over common axes. It knows nothing of
// what its figures mean: charts.go says that. A drawing is SVG made by gonum/plot, then changed
// as a text: colours become CSS variables and series get names for pointers. That keeps the page
// free of scripts for drawing and of files beside it.
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
	xy   plotter.XYs
}

// The colours of a drawing are names: they are replaced by CSS variables of the
// page, which differ between light and dark. Series have the numbers from 0 on.
const (
	seriesColors = 8
	inkColor     = 100
	gridColor    = 101
	limitColor   = 102
)

// named is a colour that stands for a name. Nothing else draws with it. The drawing library wants
// colours, not names: a colour stands for a name by a value that no other part of a drawing has,
// and embed puts the name back.
func named(n int) color.Color { return color.NRGBA{R: 1, G: 0, B: uint8(n), A: 255} }

// seriesColor is that of the i-th line.
func seriesColor(i int) color.Color { return named(i % seriesColors) }

// Chart sizes, in points of the drawing's own coordinates; the page scales it.
const (
	chartWidth  = 480
	chartHeight = 230
)

// empty tells that there is nothing to draw.
func (c *chart) empty() bool {
	return !slices.ContainsFunc(c.lines, func(l line) bool { return len(l.xy) > 0 })
}

// svg draws the chart as an element of a page, with a title and a description
// for those who don't see it. The order is the order of drawing: grid, lines, limits on top.
func (c *chart) svg() (string, error) {
	p := plot.New()
	c.axes(p)
	var err error
	if len(c.groups) > 0 {
		err = c.addBars(p)
	} else {
		err = c.addLines(p)
	}
	if err != nil {
		return "", fmt.Errorf("chart %s: %w", c.id, err)
	}
	// After the data was added, since the library widens axes to fit it.
	c.setRange(p)
	c.addLimits(p)
	out := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight))
	// The labels at the ends of the axes reach beyond them.
	p.Draw(draw.Crop(draw.New(out), 4, -12, 0, -6))
	var b bytes.Buffer
	if _, err := out.WriteTo(&b); err != nil {
		return "", fmt.Errorf("chart %s: %w", c.id, err)
	}
	return c.embed(b.String())
}

// axes sets up both axes: labels, ticks and colours. The grid is horizontal only; the font is one
// that the library knows the widths of.
func (c *chart) axes(p *plot.Plot) {
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = c.xLabel, c.yLabel
	sans := font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Label.TextStyle.Color, a.Tick.Color, a.Tick.Label.Color = named(gridColor), named(inkColor), named(gridColor), named(inkColor)
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans, sans
		a.Tick.Marker = shortTicks{}
		a.Padding = 0
	}
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal = draw.LineStyle{Color: named(gridColor), Width: 0.5}
	p.Add(grid)
}

// addLines draws the lines, or the areas of a stack. An area is filled from its line down to the
// axis, so the ones in front have to come last.
func (c *chart) addLines(p *plot.Plot) error {
	list := c.lines
	if c.stacked {
		list = stack(list)
	}
	// Of a stack the highest is drawn first and the others over it.
	for n := range list {
		i := n
		if c.stacked {
			i = len(list) - 1 - n
		}
		if len(list[i].xy) == 0 {
			continue
		}
		l, err := plotter.NewLine(list[i].xy)
		if err != nil {
			return fmt.Errorf("%s: %w", list[i].name, err)
		}
		l.Color, l.Width = seriesColor(i), 1.6
		if c.stacked {
			l.FillColor = l.Color
		} else {
			l.Dashes = dashes(i)
		}
		p.Add(l)
		if c.points {
			s, err := plotter.NewScatter(list[i].xy)
			if err != nil {
				return fmt.Errorf("%s: %w", list[i].name, err)
			}
			s.GlyphStyle = draw.GlyphStyle{Color: l.Color, Radius: 2, Shape: draw.CircleGlyph{}}
			p.Add(s)
		}
	}
	return nil
}

// dashes tells lines apart for those who don't tell their colours apart. They
// repeat after four; with the colours no two lines of a chart are alike.
func dashes(i int) []vg.Length {
	return [][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}}[i%4]
}

// stack adds up lines that have the same x. The lines are cumulated from the first; the sum is
// the top line.
func stack(lines []line) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		out[i] = line{l.name, append(plotter.XYs(nil), l.xy...)}
		for k := range out[i].xy {
			if i > 0 {
				out[i].xy[k].Y += out[i-1].xy[k].Y
			}
		}
	}
	return out
}

// addBars draws each line as a bar in every group. 300 points are what the bars may share of the
// chart's width, the rest is between groups.
func (c *chart) addBars(p *plot.Plot) error {
	width := vg.Length(300 / (len(c.groups) * len(c.lines)))
	for i, l := range c.lines {
		values := make(plotter.Values, len(l.xy))
		for k := range l.xy {
			values[k] = l.xy[k].Y
		}
		b, err := plotter.NewBarChart(values, width)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		b.Color, b.LineStyle.Width = seriesColor(i), 0
		b.Offset = width * (vg.Length(i) - vg.Length(len(c.lines)-1)/2)
		p.Add(b)
	}
	p.NominalX(c.groups...)
	p.X.Tick.Length = 0
	return nil
}

// setRange has the y axis begin at 0, with some room above. An axis that does not begin at 0
// exaggerates.
func (c *chart) setRange(p *plot.Plot) {
	p.Y.Min, p.Y.Max = 0, math.Max(p.Y.Max, c.limitY)*1.06
	if p.Y.Max <= 0 {
		p.Y.Max = 1
	}
	switch {
	case len(c.groups) > 0:
		p.X.Min, p.X.Max = -0.5, float64(len(c.groups))-0.5
	case c.xMax > 0:
		p.X.Min, p.X.Max = 0, c.xMax
	case c.limitX > 0:
		p.X.Max = math.Max(p.X.Max, c.limitX*1.05)
	}
	if p.X.Max <= p.X.Min {
		p.X.Max = p.X.Min + 1
	}
}

// addLimits draws the limits over everything else. A limit beyond the data is still shown: the
// range was made for it.
func (c *chart) addLimits(p *plot.Plot) {
	style := draw.LineStyle{Color: named(limitColor), Width: 1.2, Dashes: []vg.Length{4, 3}}
	if c.limitY > 0 {
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: p.X.Min, Y: c.limitY}, {X: p.X.Max, Y: c.limitY}}, LineStyle: style})
	}
	if c.limitX > 0 {
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: c.limitX, Y: 0}, {X: c.limitX, Y: p.Y.Max}}, LineStyle: style})
	}
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

var (
	// The colours as the drawing library writes them, and the paths that become
	// focusable.
	colorName = regexp.MustCompile(`#0100([0-9A-F]{2})`)
	pathOf    = regexp.MustCompile(`(<path [^>]*(?:stroke|fill):var\(--c(\d)\)[^>]*?)\s*/>`)
)

// embed makes a drawing an element of the page. What is cut is the XML header and the outer
// element's own attributes; ours have a viewBox, so the drawing scales.
func (c *chart) embed(svg string) (string, error) {
	_, svg, ok := strings.Cut(svg, "<svg ")
	_, svg, ok2 := strings.Cut(svg, ">\n")
	if !ok || !ok2 {
		return "", fmt.Errorf("chart %s: the drawing is no SVG", c.id)
	}
	// The pattern matches the colours of named in the drawing's hexadecimal form: red 1, green 0,
	// blue the number.
	svg = colorName.ReplaceAllStringFunc(svg, func(m string) string {
		n, _ := strconv.ParseUint(m[5:], 16, 8) // as matched
		switch n {
		case inkColor:
			return "var(--ink)"
		case gridColor:
			return "var(--grid)"
		case limitColor:
			return "var(--limit)"
		}
		return "var(--c" + strconv.FormatUint(n, 10) + ")"
	})
	svg = pathOf.ReplaceAllStringFunc(svg, func(m string) string {
		sub := pathOf.FindStringSubmatch(m)
		i, _ := strconv.Atoi(sub[2])
		if i >= len(c.lines) {
			return m
		}
		return sub[1] + "><title>" + html.EscapeString(c.lines[i].name) + "</title></path>"
	})
	return fmt.Sprintf(`<svg id="chart-%[1]s" role="img" aria-labelledby="title-%[1]s desc-%[1]s" viewBox="0 0 %[2]d %[3]d">
<title id="title-%[1]s">%[4]s</title>
<desc id="desc-%[1]s">%[5]s</desc>
%[6]s`, c.id, chartWidth, chartHeight, html.EscapeString(c.title), html.EscapeString(c.describe()), svg), nil
}

// shortTicks are four to eight multiples of 1, 2 or 5 times a power of ten, with
// labels such as 150k; the library's default are three. The library's own ticks
// have too many digits for a small chart.
type shortTicks struct{}

// Ticks implements plot.Ticker. The step is the largest of 1, 2 and 5 times a power of ten that
// gives at least four ticks.
func (shortTicks) Ticks(min, max float64) (out []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((max-min)/4)))
	for _, m := range []float64{5, 2} {
		if (max-min)/(m*step) >= 4 {
			step *= m
			break
		}
	}
	for k := math.Ceil(min / step); k*step <= max; k++ {
		out = append(out, plot.Tick{Value: k * step, Label: short(k * step)})
	}
	return out
}

// logTicks are 1, 2 and 5 of each power of ten.
type logTicks struct{}

// Ticks implements plot.Ticker. A thousandth of slack keeps the axis's own ends, which rounding
// may have moved.
func (logTicks) Ticks(min, max float64) (out []plot.Tick) {
	for e := math.Floor(math.Log10(min)); e <= math.Log10(max); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= min*0.999 && v <= max*1.001 {
				out = append(out, plot.Tick{Value: v, Label: short(v)})
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
