package report

import (
	_ "embed" // the page
	"html/template"
	"io"
	"strconv"
	"time"
)

//go:embed page.html
var pageText string

// page is what the template gets. The template's fields are exported for the template's sake.
type page struct {
	*Report
	Sections []pageSection
	Files    []table
	// Share is how many starts there are for each that the percentiles are of.
	Share    int
	SLOTable pageTable
}

// The rest are what the template ranges over: sections with their charts and
// tables.
type pageSection struct {
	ID, Title, About string
	Charts           []pageChart
	Tables           []pageTable
}

type pageChart struct {
	ID, Title, About, File, Note string
	SVG                          template.HTML
	Legend                       []legendEntry
}

type legendEntry struct {
	Color int
	Name  string
}

type pageTable struct {
	File, Title string
	Head        []column
	Rows        [][]cell
	// More counts the rows that only the file has.
	More int
}

// cell is a value; numbers are set to the right.
type cell struct {
	Text   string
	Number bool
}

// pageRows is how many rows of a table the page shows; the file has all. A page with a table of a
// hundred thousand nodes would not open.
const pageRows = 60

// writeHTML writes the page. Everything is in it: styles, drawings and scripts. html/template
// escapes all text; the drawings alone are put in as they are, having escaped theirs.
func (r *Report) writeHTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"round": round, "seconds": func(d time.Duration) string { return short(d.Seconds()) + " s" },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Report: r, Files: r.tables(), Share: r.Startup.Pods / max(r.Startup.Sampled, 1)}
	byFile := map[string]*table{}
	for i := range p.Files {
		byFile[p.Files[i].File] = &p.Files[i]
	}
	p.SLOTable = byFile[fileSLOs].forPage()
	for _, s := range r.sections() {
		out := pageSection{ID: s.ID, Title: s.Title, About: s.About}
		for _, c := range s.charts {
			if c.empty() {
				continue
			}
			svg, err := c.svg()
			if err != nil {
				return err
			}
			pc := pageChart{ID: c.id, Title: c.title, About: c.about, File: c.file, SVG: template.HTML(svg)} // escaped by chart.embed
			for i, l := range c.lines {
				pc.Legend = append(pc.Legend, legendEntry{i % seriesColors, l.name})
			}
			out.Charts = append(out.Charts, pc)
		}
		for _, f := range s.tables {
			out.Tables = append(out.Tables, byFile[f].forPage())
		}
		p.Sections = append(p.Sections, out)
	}
	return t.Execute(w, p)
}

// forPage is a table's first rows, as text for the page. A cell is a number if it parses as one,
// which decides only how it is aligned.
func (t *table) forPage() pageTable {
	out := pageTable{File: t.File, Title: t.Title, Head: t.Columns}
	for row := range t.rows {
		if t.File == fileTotals && row[1] == "0" {
			continue // most kinds of trouble did not happen
		}
		if len(out.Rows) == pageRows {
			out.More++
			continue
		}
		cells := make([]cell, len(row))
		for i, v := range row {
			_, err := strconv.ParseFloat(v, 64)
			cells[i] = cell{v, err == nil}
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}
