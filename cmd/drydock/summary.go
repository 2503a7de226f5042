package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/scenarios"
)

// beside writes what is written into files beside the output: JUnit's XML, and the summary that
// CI systems show, which is appended, since other steps of a job write it too.
func (o *output) beside() error {
	if err := writeReport(o.f.reportXML, o.writeJUnit); err != nil {
		return fmt.Errorf("--report-junit: %w", err)
	}
	if o.f.summary == "" {
		return nil
	}
	file, err := os.OpenFile(o.f.summary, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("--report-summary: %w", err)
	}
	if err := errors.Join(o.writeSummary(file), file.Close()); err != nil {
		return fmt.Errorf("--report-summary: %w", err)
	}
	return nil
}

// summaryCases bounds how many failed runs a summary shows whole: CI systems cut it at a MiB.
const summaryCases = 20

// writeSummary writes Markdown: how many runs passed, a row for each scenario, and of those that
// failed what the terminal shows.
func (o *output) writeSummary(w io.Writer) error {
	var b strings.Builder
	passed := 0
	for _, r := range o.results {
		if r.err == nil && r.res.Passed && (r.seeds == nil || r.seeds.Failed == 0) {
			passed++
		}
	}
	fmt.Fprintf(&b, "### Drydock: %d of %s passed\n\n", passed, scenarios.Plural(len(o.results), "scenario"))
	if o.cut {
		b.WriteString("Interrupted: not everything was run.\n\n")
	}
	b.WriteString("| | scenario | file | runs | wall time |\n|---|---|---|---|---|\n")
	var failed []namedResult
	for _, r := range o.results {
		sign, runs := "✅", "1"
		wall := r.res.Summary.Wall.Total()
		if r.err != nil || !r.res.Passed {
			sign = "❌"
			failed = append(failed, r)
		}
		if r.seeds != nil {
			runs = fmt.Sprintf("%d of %d passed", r.seeds.Ran-r.seeds.Failed, r.seeds.Ran)
			wall = 0
			for _, c := range r.seeds.cases {
				wall += c.wall
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", sign, cell(r.res.Scenario), cell(r.s.Pos.File), runs, wall.Round(time.Millisecond))
	}
	for i, r := range failed {
		if i == summaryCases {
			fmt.Fprintf(&b, "\nand %d more.\n", len(failed)-summaryCases)
			break
		}
		c := o.caseOf(r)
		text := c.text
		if c.internal != "" {
			text = c.internal
		}
		// Four spaces make it code, whatever it holds.
		fmt.Fprintf(&b, "\n**%s**, seed %d\n\n", r.res.Scenario, r.res.Seed)
		for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
			b.WriteString("    " + line)
		}
	}
	fmt.Fprintf(&b, "\ndrydock %s\n", version())
	_, err := io.WriteString(w, b.String())
	return err
}

// cell is a text within a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
