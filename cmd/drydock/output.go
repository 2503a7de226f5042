package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// output writes results in the form asked for. JSON and JUnit are written as a
// whole at the end. many: more than one run is shown, so single timelines are
// not. bar is nil unless stderr is a terminal. It is used by one goroutine at a time; runSeeds
// holds a lock around what it calls of it.
type output struct {
	// f has the form asked for and both writers.
	f       *runFlags
	many    bool
	cut     bool // not everything was run
	results []namedResult
	bar     *progressLine
}

// namedResult is a result with its scenario; seeds is nil for a run with one
// seed.
type namedResult struct {
	s     *scenarios.Scenario
	res   *scenarios.Result
	err   error
	seeds *seedCount
}

// newOutput returns the output for n scenarios. many decides whether passing scenarios are one
// line.
func newOutput(f *runFlags, n int) *output {
	o := &output{f: f, many: n > 1 || f.seedsSet || f.verify}
	if file, ok := f.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		o.bar = &progressLine{w: f.stderr}
	}
	return o
}

// say writes a line of text output; in other forms it goes to stderr. So stdout stays one
// document in the other forms.
func (o *output) say(format string, args ...any) {
	w := o.f.stdout
	if o.f.output != "text" {
		w = o.f.stderr
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// begin is called before a scenario runs. It sets the hooks by which the timeline
// and the progress line are written while the run goes on. The timeline is written while the run
// goes on, since somebody may be watching.
func (o *output) begin(s *scenarios.Scenario, opts *scenarios.RunOptions) {
	if o.f.output == "text" && (!o.many || o.f.verbose) {
		seed := s.Spec.Seed
		if opts.Seed != nil {
			seed = *opts.Seed
		}
		o.say("scenario %s, seed %d", s.Metadata.Name, seed)
		for _, line := range wrap(s.Metadata.Description, 100) {
			o.say("%s", line)
		}
		o.say("%s", scenarios.TimelineHeader)
		opts.Timeline = o.f.stdout
	}
	if o.bar != nil {
		opts.Progress = o.bar.show
	}
}

// wrap breaks a text into lines of at most width bytes, if its words allow it. A word that is
// longer has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// end is called with a scenario's result. err is an internal error; what failed
// of the scenario is in the result. It is called once per scenario, in the order in which they
// were run.
func (o *output) end(s *scenarios.Scenario, res *scenarios.Result, err error) {
	o.clearBar()
	o.add(namedResult{s: s, res: res, err: err})
	if o.f.output != "text" {
		return
	}
	// Of many that pass a line each is enough; what fails is shown whole.
	if o.many && err == nil && res.Passed && !o.f.verbose {
		o.say("PASS %s  (%s, %s virtual in %s, hash %s)", res.Scenario, scenarios.Plural(len(res.Verdicts), "expectation"), scenarios.ShortTime(res.Summary.Virtual), scenarios.RoundWall(res.Summary.Wall.Total()), res.Summary.Hash)
		return
	}
	o.title(s, res)
	o.text(o.f.stdout, s, res, err)
}

// title says which scenario the text is about that follows, if nothing did.
func (o *output) title(s *scenarios.Scenario, res *scenarios.Result) {
	if o.many && !o.f.verbose || o.f.seedsSet || o.f.verify {
		o.say("\nscenario %s, seed %d", s.Metadata.Name, res.Seed)
	}
}

// endSeeds is called with what came of a scenario's seeds. res is nil when a signal came before
// the first run was over.
func (o *output) endSeeds(s *scenarios.Scenario, c *seedCount) {
	o.clearBar()
	if c.res == nil {
		o.cut = true
		o.say("INTERRUPTED %s before a run was over", s.Metadata.Name)
		return
	}
	o.add(namedResult{s: s, res: c.res, err: c.err, seeds: c})
	ran := scenarios.Plural(c.Ran, "seed")
	// The count says over how many seeds the verdict is, when a signal came.
	if c.Ran < len(o.f.seedList) {
		ran = fmt.Sprintf("%d of %s, interrupted", c.Ran, scenarios.Plural(len(o.f.seedList), "seed"))
	}
	if c.Failed == 0 {
		o.say("PASS %s: %s", s.Metadata.Name, ran)
		return
	}
	if o.f.output == "text" {
		o.title(s, c.res)
		o.text(o.f.stdout, s, c.res, c.err)
	}
	o.say("FAIL %s: %d of %s; the first is %d; repeat it: %s", s.Metadata.Name, c.Failed, ran, *c.First, o.f.command(s, *c.First))
}

// text writes what follows the timeline. Last comes the line that repeats the
// run, so that it is found at the end of a CI log. It is used for the terminal and within JUnit's
// failure.
func (o *output) text(w io.Writer, s *scenarios.Scenario, res *scenarios.Result, err error) {
	res.Repeat = o.f.command(s, res.Seed)
	if err != nil {
		// The stack is for whoever mends the simulator, not for whoever wrote the
		// scenario.
		fmt.Fprintf(w, "INTERNAL ERROR %v\n", err)
		var p *loop.PanicError
		switch {
		case !errors.As(err, &p):
		case o.f.verbose:
			fmt.Fprintf(w, "%s\n", p.Stack)
		default:
			fmt.Fprintln(w, "(-v shows the stack)")
		}
	}
	res.WriteText(w, !o.f.verbose)
}

// add keeps a result for the forms that are written at the end. The final state
// is dropped: a thousand seeds of a large cluster would hold on to a thousand
// clusters. The verdicts, the summary and the history of failures are small and stay.
func (o *output) add(r namedResult) {
	r.res.Repeat = o.f.command(r.s, r.res.Seed)
	r.res.Final = scenarios.Final{}
	o.results = append(o.results, r)
}

// close writes what is written at the end. It is called exactly once, also after an interruption.
func (o *output) close() error {
	if err := o.beside(); err != nil {
		return err
	}
	switch o.f.output {
	case "json":
		return o.writeJSON()
	case "junit":
		return o.writeJUnit(o.f.stdout)
	}
	// One result has said it itself.
	if len(o.results) > 1 {
		passed := lists.Count(o.results, func(r namedResult) bool { return r.err == nil && r.res.Passed })
		o.say("\n%d of %d scenarios passed", passed, len(o.results))
	}
	return nil
}

// resultJSON is a result with what the command knows of it. Embedding puts the result's own
// fields beside these.
type resultJSON struct {
	*scenarios.Result
	Seeds *seedCount `json:"seeds,omitempty"`
	// Error is an internal one.
	Error string `json:"error,omitempty"`
}

// writeJSON writes one document for all results. It is written also when a run
// was interrupted, and says so.
func (o *output) writeJSON() error {
	// The field order is the document's.
	out := struct {
		Version string `json:"version"`
		Passed  bool   `json:"passed"`
		// Interrupted tells that not everything was run to its end.
		Interrupted bool         `json:"interrupted,omitempty"`
		Results     []resultJSON `json:"results"`
	}{version(), !o.cut, o.cut, []resultJSON{}}
	for _, r := range o.results {
		x := resultJSON{Result: r.res, Seeds: r.seeds}
		if r.err != nil {
			x.Error = r.err.Error()
		}
		// The document passes only if every run came to its end and held.
		out.Interrupted = out.Interrupted || r.res.Interrupted
		out.Passed = out.Passed && r.err == nil && r.res.Passed
		out.Results = append(out.Results, x)
	}
	return encodeJSON(o.f.stdout, out)
}

// encodeJSON writes a document for people as well: indented, and with < and > in
// expressions as they are.
func encodeJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// junitSuites and what is in it are the part of JUnit's XML that CI systems read: a suite is a
// file, a case a scenario, with many seeds a seed of it, a failure an expectation, an error the
// simulator's own.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	File       string          `xml:"file,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`

	wall time.Duration
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"`
}

// writeJUnit writes a suite for each file. Times are wall times, which is what the readers of
// JUnit compare. Failed expectations are in the text of one failure: a run is a case, however
// much of it failed.
func (o *output) writeJUnit(w io.Writer) error {
	doc := junitSuites{Name: "drydock"}
	for _, r := range o.results {
		if len(doc.Suites) == 0 || doc.Suites[len(doc.Suites)-1].File != r.s.Pos.File {
			doc.Suites = append(doc.Suites, junitSuite{Name: r.s.Pos.File, File: r.s.Pos.File, Properties: []junitProperty{{"drydock.version", version()}}})
		}
		suite := &doc.Suites[len(doc.Suites)-1]
		if r.seeds == nil {
			suite.add(o.caseOf(r))
			continue
		}
		for _, c := range r.seeds.cases {
			if c.name == "" {
				continue // a signal came before it
			}
			if c.seed == r.res.Seed { // the one whose text was kept
				c = o.caseOf(r)
			}
			c.name = fmt.Sprintf("%s (seed %d)", r.res.Scenario, c.seed)
			suite.add(c)
		}
	}
	var total time.Duration
	for i := range doc.Suites {
		s := &doc.Suites[i]
		s.Time = fmt.Sprintf("%.3f", s.wall.Seconds())
		total += s.wall
		doc.Tests, doc.Failures, doc.Errors = doc.Tests+s.Tests, doc.Failures+s.Failures, doc.Errors+s.Errors
	}
	doc.Time = fmt.Sprintf("%.3f", total.Seconds())
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// runCase is what JUnit has of a run. internal is an error of the simulator; failure is what
// failed, in a line, and text more of it.
type runCase struct {
	name                    string
	seed                    uint64
	wall                    time.Duration
	internal, failure, text string
}

// caseOf is the case of a result that was kept.
func (o *output) caseOf(r namedResult) runCase {
	c := runCase{name: r.res.Scenario, seed: r.res.Seed, wall: r.res.Summary.Wall.Total()}
	switch {
	case r.err != nil:
		// The simulator's own failure is an error and not a failure, in JUnit's words.
		c.internal = r.err.Error()
	case !r.res.Passed:
		var b strings.Builder
		o.text(&b, r.s, r.res, nil)
		c.failure, c.text = firstFailure(r.res), b.String()
	}
	return c
}

// add adds a case.
func (s *junitSuite) add(c runCase) {
	x := junitCase{Class: s.File, Name: c.name, File: s.File, Time: fmt.Sprintf("%.3f", c.wall.Seconds())}
	switch {
	case c.internal != "":
		s.Errors++
		x.Error = &junitMessage{Message: c.internal}
	case c.failure != "":
		s.Failures++
		x.Failure = &junitMessage{Message: c.failure, Text: xmlText(c.text)}
	}
	s.Tests++
	s.wall += c.wall
	s.Cases = append(s.Cases, x)
}

// xmlText leaves out what XML can't hold. Control characters come in from containers' output and
// are not allowed in XML 1.0, even escaped.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// firstFailure is the one line that a CI system shows of a failed case. The order is that of the
// expectations in the file.
func firstFailure(res *scenarios.Result) string {
	for _, v := range res.Verdicts {
		if v.Outcome == expect.Failed {
			return v.Title() + ": " + v.Reason
		}
	}
	if len(res.Errors) > 0 {
		return res.Errors[0]
	}
	return "interrupted"
}

// progressLine shows where a run stands that takes over a second. It is for terminals; there is
// none in a CI log.
type progressLine struct {
	w     io.Writer
	began time.Time
	last  time.Time
	name  string
	shown bool
}

// due reports whether the line is to be written; a run's first call starts its
// second. Writing to a terminal costs more than a small run's step; five times a second are
// enough for the eye.
func (p *progressLine) due(name string, first bool) bool {
	now := time.Now()
	if name != p.name || first {
		p.name, p.began, p.last = name, now, now
	}
	if now.Sub(p.began) < time.Second || now.Sub(p.last) < 200*time.Millisecond {
		return false
	}
	p.last, p.shown = now, true
	return true
}

// show writes over the line; \x1b[K clears what was longer.
func (p *progressLine) show(x scenarios.Progress) {
	if p.due(x.Scenario, x.Now == 0) {
		fmt.Fprintf(p.w, "\r\x1b[K%s: %s of %s, %.0fx, %d running, %d pending", x.Scenario, x.Now.Truncate(time.Second), x.Duration,
			x.Now.Seconds()/time.Since(p.began).Seconds(), x.Pods["Running"], x.Pods["Pending"])
	}
}

// clear takes the line away before other text is written.
func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// clearBar is clear where there may be no line.
func (o *output) clearBar() {
	if o.bar != nil {
		o.bar.clear()
	}
}

// seedsDone shows how many seeds of a scenario have run. Calls must not overlap. runSeeds calls
// it under its lock.
func (o *output) seedsDone(s *scenarios.Scenario, n, of, failed int) {
	if o.bar != nil && o.bar.due(s.Metadata.Name, n == 1) {
		fmt.Fprintf(o.bar.w, "\r\x1b[K%s: %d of %d seeds, %d failed", s.Metadata.Name, n, of, failed)
	}
}
