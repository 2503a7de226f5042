package report

import (
	_ "embed" // the styles
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/ground/lists"
)

//go:embed page.css
var pageStyle string

// pageRows is how many rows of a table the page shows; the file has all. A page with a table of a
// hundred thousand nodes would not open.
const pageRows = 60

// page is an HTML page that is being written. Tags are written as they stand and values through
// printf, which escapes them. A template would be shorter, but package template looks up methods
// by name: with it in the command, the linker keeps all methods of all types, 20 MB of them.
type page struct{ strings.Builder }

// printf writes HTML. Strings among the values are text, and are escaped.
func (p *page) printf(format string, values ...any) {
	for i, v := range values {
		if s, ok := v.(string); ok {
			values[i] = html.EscapeString(s)
		}
	}
	fmt.Fprintf(p, format, values...)
}

// soft writes a paragraph of explanation, if there is one.
func (p *page) soft(text string) {
	if text != "" {
		p.printf("<p class=\"soft\">%s</p>\n", text)
	}
}

// writeHTML writes the page. Everything is in it: styles and drawings.
func (r *Report) writeHTML(w io.Writer) error {
	p := &page{}
	files := r.tables()
	byFile := map[string]*table{}
	for i := range files {
		byFile[files[i].File] = &files[i]
	}
	sections := r.sections()
	p.head(r, sections)
	p.verdicts(r)
	p.slos(r, byFile[fileSLOs])
	for _, s := range sections {
		p.section(r, s, byFile)
	}
	p.files(files)
	p.WriteString("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// head writes all that stands above the first section.
func (p *page) head(r *Report, sections []section) {
	p.printf(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>%s</title>
<style>
`, r.Title)
	p.WriteString(pageStyle)
	p.printf("</style>\n</head>\n<body>\n<header>\n<h1>%s</h1>\n", r.Title)
	p.soft(fmt.Sprintf("%v of virtual time. All times are virtual: those of the simulated cluster.", round(r.For)))
	if r.Partial != "" {
		p.printf("<p class=\"partial\" role=\"note\">Not the whole run: %s.</p>\n", r.Partial)
	}
	p.WriteString(`<nav aria-label="Sections"><a href="#slos">SLOs</a>`)
	for _, s := range sections {
		p.printf(" <a href=\"#%s\">%s</a>", s.ID, s.Title)
	}
	p.WriteString(" <a href=\"#files\">Files</a></nav>\n<dl class=\"facts\">")
	for _, f := range r.Facts {
		p.printf("<dt>%s</dt><dd>%s</dd>", f.Name, f.Value)
	}
	p.WriteString("</dl>\n</header>\n<main>\n")
}

// verdicts writes what came of the expectations: what failed first, with what led to it; then
// warnings and errors.
func (p *page) verdicts(r *Report) {
	if len(r.Verdicts)+len(r.Notes) == 0 {
		return
	}
	p.WriteString("<section id=\"verdicts\" aria-labelledby=\"h-verdicts\">\n<h2 id=\"h-verdicts\">Verdicts</h2>\n")
	failed := lists.Count(r.Verdicts, func(v Verdict) bool { return v.Outcome == "failed" })
	p.soft(fmt.Sprintf("%d expectations, %d failed.", len(r.Verdicts), failed))
	for _, outcome := range []string{"failed", "undecided"} {
		for _, v := range r.Verdicts {
			if v.Outcome != outcome {
				continue
			}
			p.printf("<div class=\"slo missed\"><h3>%s</h3><strong>%s</strong><p>%s</p>\n", v.Title, v.Outcome, v.Reason)
			if lines := slices.Concat(v.Values, v.History); len(lines) > 0 {
				p.printf("<pre class=\"scroll\" tabindex=\"0\">%s</pre>\n", strings.Join(lines, "\n"))
			}
			p.WriteString("</div>\n")
		}
	}
	if len(r.Notes) > 0 {
		p.WriteString("<ul id=\"notes\">\n")
		for _, n := range r.Notes {
			p.printf("<li>%s</li>\n", n)
		}
		p.WriteString("</ul>\n")
	}
	if held := len(r.Verdicts) - failed; held > 0 {
		p.WriteString("<details><summary>What held</summary>\n<ul>\n")
		for _, v := range r.Verdicts {
			if v.Outcome == "held" {
				p.printf("<li>%s</li>\n", v.Title)
			}
		}
		p.WriteString("</ul></details>\n")
	}
	p.WriteString("</section>\n")
}

// slos writes the verdicts.
func (p *page) slos(r *Report, t *table) {
	p.WriteString("<section id=\"slos\" aria-labelledby=\"h-slos\">\n<h2 id=\"h-slos\">Scalability SLOs</h2>\n")
	p.soft("Kubernetes' service level objectives (sig-scalability), judged over the whole run.")
	p.WriteString("<div class=\"slos\">\n")
	for i := range r.SLOs {
		s := &r.SLOs[i]
		class := "slo"
		if v := s.Verdict(); v == "met" || v == "missed" {
			class += " " + v
		}
		p.printf("<div class=\"%s\"><h3>%s</h3><strong>%s</strong>\n", class, s.Name, s.Verdict())
		switch {
		case s.Count == 0:
		case s.Unmodelled:
			p.soft("requests took the API server no time")
		default:
			p.printf("<p>p99 %s s, at most %s s</p>", short(s.P99.Seconds()), short(s.Limit.Seconds()))
			p.soft(fmt.Sprintf("%s; %d in all", s.Worst, s.Count))
		}
		p.soft(s.Objective)
		p.WriteString("</div>\n")
	}
	p.WriteString("</div>\n")
	p.table(t)
	p.WriteString("</section>\n")
}

// section writes a section with its charts and tables.
func (p *page) section(r *Report, s section, byFile map[string]*table) {
	p.printf("<section id=\"%[1]s\" aria-labelledby=\"h-%[1]s\">\n<h2 id=\"h-%[1]s\">%[2]s</h2>\n", s.ID, s.Title)
	p.soft(s.About)
	if s.ID == "startup" {
		text := fmt.Sprintf("%d pods started", r.Startup.Pods)
		if n := r.Startup.Waiting; n > 0 {
			text += fmt.Sprintf(", %d were on their way at the end", n)
		}
		if sampled := max(r.Startup.Sampled, 1); r.Startup.Pods/sampled > 1 {
			text += fmt.Sprintf("; percentiles are of %d of them, evenly spread", r.Startup.Sampled)
		}
		p.soft(text + ".")
	}
	p.WriteString("<div class=\"charts\">\n")
	for _, c := range s.charts {
		if c.empty() {
			continue
		}
		p.printf("<figure id=\"%s\"><h3>%s</h3>\n", c.id, c.title)
		p.WriteString(c.svg())
		p.WriteString("<ul class=\"legend\">")
		for i, l := range c.lines {
			p.printf("<li><i style=\"background: var(--c%d)\"></i>%s</li>", i%seriesColors, l.name)
		}
		p.printf("</ul>\n<figcaption>%[1]s Figures: <a href=\"%[2]s\">%[2]s</a></figcaption></figure>\n", c.about, c.file)
	}
	p.WriteString("</div>\n")
	for _, f := range s.tables {
		p.table(byFile[f])
	}
	p.WriteString("</section>\n")
}

// table writes a table's first rows. A cell is a number if it parses as one, which decides only
// how it is aligned.
func (p *page) table(t *table) {
	p.printf("<div class=\"scroll\" tabindex=\"0\"><table id=\"table-%[1]s\"><caption>%[2]s (<a href=\"%[1]s\">%[1]s</a>)</caption>\n<thead><tr>", t.File, t.Title)
	for _, c := range t.Columns {
		p.printf("<th scope=\"col\" title=\"%s\">%s</th>", c.About, c.Name)
	}
	p.WriteString("</tr></thead>\n<tbody>")
	shown, more := 0, 0
	for row := range t.rows {
		if t.File == fileTotals && row[1] == "0" {
			continue // most kinds of trouble did not happen
		}
		if shown == pageRows {
			more++
			continue
		}
		shown++
		p.WriteString("<tr>")
		for _, v := range row {
			class := ""
			if _, err := strconv.ParseFloat(v, 64); err == nil {
				class = ` class="n"`
			} else if len(v) > 30 {
				class = ` class="w"`
			}
			p.WriteString("<td" + class + ">" + html.EscapeString(v) + "</td>")
		}
		p.WriteString("</tr>\n")
	}
	p.WriteString("</tbody></table>")
	if more > 0 {
		p.soft(fmt.Sprintf("%d more in the file.", more))
	}
	p.WriteString("</div>\n")
}

// files writes what the files beside the page are, with their columns.
func (p *page) files(list []table) {
	p.WriteString("<section id=\"files\" aria-labelledby=\"h-files\">\n<h2 id=\"h-files\">Files</h2>\n")
	p.soft("Beside this page. Times are seconds.")
	for _, f := range list {
		p.printf("<details><summary><a href=\"%[1]s\">%[1]s</a>: %[2]s</summary>\n<dl class=\"facts\">", f.File, f.Title)
		for _, c := range f.Columns {
			p.printf("<dt><code>%s</code></dt><dd>%s</dd>", c.Name, c.About)
		}
		p.WriteString("</dl></details>\n")
	}
	p.WriteString("</section>\n")
}
