package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// output writes results in the form asked for. JSON and JUnit are written as
// a whole at the end.
type output struct {
	f       *runFlags
	many    bool
	results []namedResult
	bar     *progressLine
}

type namedResult struct {
	s   *scenarios.Scenario
	res *scenarios.Result
	err error
}

func newOutput(f *runFlags, n int) *output {
	o := &output{f: f, many: n > 1 || f.seeds != "" || f.verify}
	if file, ok := f.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		o.bar = &progressLine{w: f.stderr}
	}
	return o
}

// say writes a line of text output; in other forms it goes to stderr.
func (o *output) say(format string, args ...any) {
	w := o.f.stdout
	if o.f.output != "text" {
		w = o.f.stderr
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// begin is called before a scenario runs.
func (o *output) begin(s *scenarios.Scenario, opts *scenarios.RunOptions) {
	if o.f.output == "text" && (!o.many || o.f.verbose) {
		seed := s.Spec.Seed
		if opts.Seed != nil {
			seed = *opts.Seed
		}
		o.say("scenario %s, seed %d", s.Metadata.Name, seed)
		o.say("%s", scenarios.TimelineHeader)
		opts.Timeline = o.f.stdout
	}
	if o.bar != nil {
		opts.Progress = o.bar.show
	}
}

// end is called with a scenario's result.
func (o *output) end(s *scenarios.Scenario, res *scenarios.Result, err error) {
	if o.bar != nil {
		o.bar.clear()
	}
	o.add(s, res, err)
	if o.f.output != "text" {
		return
	}
	if o.many && err == nil && res.Passed && !o.f.verbose {
		if o.f.seeds == "" {
			o.say("PASS %s  (%s, %s virtual in %s, hash %s)", res.Scenario, scenarios.Plural(len(res.Verdicts), "expectation"), res.Summary.Virtual, scenarios.RoundWall(res.Summary.Wall.Total()), res.Summary.Hash)
		}
		return
	}
	o.text(o.f.stdout, s, res, err)
}

// text writes what follows the timeline.
func (o *output) text(w io.Writer, s *scenarios.Scenario, res *scenarios.Result, err error) {
	res.Repeat = o.f.command(s, res.Seed)
	if err != nil {
		fmt.Fprintf(w, "INTERNAL ERROR %v\n", err)
	}
	res.WriteText(w, !o.f.verbose)
}

// add keeps a result for the forms that are written at the end.
func (o *output) add(s *scenarios.Scenario, res *scenarios.Result, err error) {
	o.results = append(o.results, namedResult{s, res, err})
}

// close writes what is written at the end.
func (o *output) close() error {
	switch o.f.output {
	case "json":
		return o.writeJSON()
	case "junit":
		return o.writeJUnit()
	}
	if len(o.results) > 1 {
		passed := 0
		for _, r := range o.results {
			if r.err == nil && r.res.Passed {
				passed++
			}
		}
		o.say("%d of %d scenarios passed", passed, len(o.results))
	}
	return nil
}

func (o *output) writeJSON() error {
	enc := json.NewEncoder(o.f.stdout)
	enc.SetIndent("", "  ")
	type out struct {
		*scenarios.Result
		Error string `json:"error,omitempty"`
	}
	var list []out
	for _, r := range o.results {
		x := out{Result: r.res}
		if r.err != nil {
			x.Error = r.err.Error()
		}
		list = append(list, x)
	}
	return enc.Encode(map[string]any{"results": list})
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (o *output) writeJUnit() error {
	suite := junitSuite{Name: "drydock", Tests: len(o.results)}
	var total time.Duration
	for _, r := range o.results {
		wall := r.res.Summary.Wall.Total()
		total += wall
		c := junitCase{Class: r.s.Pos.File, Name: r.res.Scenario, Time: fmt.Sprintf("%.3f", wall.Seconds())}
		switch {
		case r.err != nil:
			suite.Errors++
			c.Error = &junitMessage{Message: r.err.Error()}
		case !r.res.Passed:
			suite.Failures++
			var b strings.Builder
			o.text(&b, r.s, r.res, nil)
			c.Failure = &junitMessage{Message: firstFailure(r.res), Text: b.String()}
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Time = fmt.Sprintf("%.3f", total.Seconds())
	if _, err := io.WriteString(o.f.stdout, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(o.f.stdout)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(o.f.stdout, "\n")
	return err
}

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

// progressLine shows where a run stands that takes over a second.
type progressLine struct {
	w     io.Writer
	began time.Time
	last  time.Time
	name  string
	shown bool
}

func (p *progressLine) show(x scenarios.Progress) {
	now := time.Now()
	if x.Scenario != p.name || x.Now == 0 {
		p.name, p.began, p.last = x.Scenario, now, now
	}
	if now.Sub(p.began) < time.Second || now.Sub(p.last) < 200*time.Millisecond {
		return
	}
	p.last = now
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%s: %s of %s, %.0fx, %d running, %d pending", x.Scenario, x.Now.Truncate(time.Second), x.Duration,
		x.Now.Seconds()/now.Sub(p.began).Seconds(), x.Pods["Running"], x.Pods["Pending"])
}

func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
