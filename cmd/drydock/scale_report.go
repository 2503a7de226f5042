package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/drydock-sim/drydock/scale/report"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/sim"
)

// reporter collects a run's report and writes it to a directory, if one is
// wanted. Without a directory the figures are collected all the same, for the
// text. A nil collector is a run that never began, and a report that is not
// written. It is made before the run and written after it, once.
type reporter struct {
	dir       string
	opts      report.Options
	collector *report.Collector
	// told: the facts were written already.
	told bool
	// command is what was typed, hash that of the run's trace: facts of the page alone.
	command, hash string
	seed          string // where the facts lack it
	verdicts      []report.Verdict
	notes         []string
}

// newReporter makes the directory, so that a mistake shows before the run. The probe file shows
// also that a directory that is there can be written to.
func newReporter(dir, title string, facts []report.Fact, command string) (*reporter, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, badInput("--report: %w", err)
		}
		probe, err := os.CreateTemp(dir, ".drydock-*")
		if err != nil {
			return nil, badInput("--report: %w", err)
		}
		probe.Close()
		os.Remove(probe.Name())
	}
	return &reporter{dir: dir, opts: report.Options{Title: title, Facts: facts}, command: command}, nil
}

// newScenarioReporter is newReporter for a scenario.
func newScenarioReporter(dir string, s *scenarios.Scenario, command string) (*reporter, error) {
	return newReporter(dir, s.Metadata.Name, []report.Fact{{Name: "Scenario", Value: s.Pos.File}, {Name: "Nodes", Value: strconv.Itoa(len(s.NodeNames()))}}, command)
}

// scenario notes what a scenario's run came to, which the page begins with.
func (r *reporter) scenario(res *scenarios.Result) {
	r.hash, r.seed = res.Summary.Hash, strconv.FormatUint(res.Seed, 10)
	for i := range res.Verdicts {
		v := &res.Verdicts[i]
		out := report.Verdict{Title: v.Title(), Outcome: string(v.Outcome), Reason: v.Reason, History: v.History}
		for _, x := range v.Values {
			out.Values = append(out.Values, x.Expr+" = "+x.Value)
		}
		r.verdicts = append(r.verdicts, out)
	}
	for _, e := range res.Errors {
		r.notes = append(r.notes, "error: "+e)
	}
	for _, w := range res.Warnings {
		r.notes = append(r.notes, "warning: "+w)
	}
}

// figures are the report's, once a run has begun.
func (r *reporter) figures() []report.Figure {
	if r.collector == nil {
		return nil
	}
	return r.collector.Report().Figures()
}

// partial says why a scenario's run ended before its time; "" if it did not. The text is in the
// page and in the text form.
func partial(res *scenarios.Result, err error) string {
	switch {
	case res.Interrupted:
		return "interrupted after " + scenarios.ShortTime(res.Summary.Virtual)
	case err != nil:
		return err.Error()
	}
	return ""
}

// attach begins to collect. It is called before the run: what happened earlier
// would be missing. It is a hook of the run: scenarios and scale both take one.
func (r *reporter) attach(c *sim.Cluster) { r.collector = report.Attach(c, r.opts) }

// summary is the report's figures, once a run has begun. It is for --json.
func (r *reporter) summary() *report.Summary {
	if r.collector == nil {
		return nil
	}
	return r.collector.Report().Summary()
}

// write writes the report, and its text to w unless that is nil. partial says why
// the run ended before its time; "" if it did not. The text goes first: it is there even if the
// directory's disk is full.
func (r *reporter) write(w io.Writer, partial string) error {
	if r.collector == nil {
		return nil
	}
	rep := r.collector.Report()
	rep.Partial = partial
	if w != nil {
		text := *rep
		if r.told {
			text.Facts = nil
		}
		if err := text.Text(w); err != nil {
			return err
		}
	}
	if r.dir == "" {
		return nil
	}
	rep.Facts = append([]report.Fact{{Name: "Drydock", Value: version()}, {Name: "Command", Value: r.command}}, rep.Facts...)
	if r.seed != "" {
		rep.Facts = append(rep.Facts, report.Fact{Name: "Seed", Value: r.seed})
	}
	rep.Facts = append(rep.Facts, report.Fact{Name: "Hash", Value: r.hash})
	rep.Verdicts, rep.Notes = r.verdicts, r.notes
	err := rep.WriteDir(func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(r.dir, name)) })
	if err == nil && w != nil {
		fmt.Fprintf(w, "\nreport: %s\n", filepath.Join(r.dir, "index.html"))
	}
	return err
}
