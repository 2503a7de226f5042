//go:build linux

package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteLine writes a result as a line, and what came below it if it failed. A
// line that passes is short; one that fails has all that a runtime's author needs
// without running it again. rpcs is how many of the last calls are shown.
func WriteLine(w io.Writer, r Result, rpcs int) {
	note := ""
	if r.Level == Optional {
		note = " (optional)"
	}
	switch r.Status {
	case Skipped:
		fmt.Fprintf(w, "skipped  %s%s: %s\n", r.Name, note, r.Reason)
		return
	case Passed:
		fmt.Fprintf(w, "passed   %s%s  %s\n", r.Name, note, seconds(r.Duration))
		return
	}
	fmt.Fprintf(w, "FAILED   %s%s  %s\n", r.Name, note, seconds(r.Duration))
	fmt.Fprintf(w, "    expected: %s\n", r.Expected)
	for _, c := range r.Came {
		fmt.Fprintf(w, "    came:     %s\n", strings.ReplaceAll(strings.TrimSpace(c), "\n", "\n              "))
	}
	for _, h := range r.History {
		fmt.Fprintf(w, "    seen:     %s\n", h)
	}
	from := max(0, len(r.RPCs)-rpcs)
	for _, c := range r.RPCs[from:] {
		fmt.Fprintf(w, "    rpc:      %s\n", c)
	}
}

// lineMessage bounds the messages in a text report.
const lineMessage = 160

// String is the call in a line.
func (c RPC) String() string {
	short := func(s string) string {
		if len(s) > lineMessage {
			return s[:lineMessage] + "..."
		}
		return s
	}
	out := fmt.Sprintf("%7.3fs %s %s", c.At, c.Method, short(c.Request))
	if c.Error != "" {
		return out + " -> error " + short(c.Error)
	}
	return out + " -> " + short(c.Response)
}

// seconds is a time as reports show it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// WriteSummary writes the end of a text report. It ends with the verdict, where a
// log is read from. A run in which everything was skipped is no proof.
func (r *Report) WriteSummary(w io.Writer) {
	fmt.Fprintf(w, "\n%s %s (CRI %s) at %s\n", r.Runtime.Name, r.Runtime.Version, r.Runtime.APIVersion, r.Runtime.Endpoint)
	for _, level := range []Level{Required, Optional} {
		fmt.Fprintf(w, "%s: %d passed, %d failed, %d skipped\n", level, r.Count(level, Passed), r.Count(level, Failed), r.Count(level, Skipped))
	}
	fmt.Fprintf(w, "%.0f s\n", r.Seconds)
	switch {
	case r.Interrupted:
		fmt.Fprintln(w, "interrupted: not everything was checked")
	case !r.Conforms():
		fmt.Fprintln(w, "does not conform: a required check failed")
	case r.Count(Required, Passed) == 0:
		fmt.Fprintln(w, "no required check was run")
	default:
		fmt.Fprintln(w, "conforms")
	}
}

// WriteJSON writes the whole report. It is what other programs read; its field
// names stay.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// The elements of a JUnit report.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Failure   *junitMessage `xml:"failure,omitempty"`
		Skipped   *junitMessage `xml:"skipped,omitempty"`
		Out       string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML: a test suite for each level. An
// optional check that fails is skipped there, since it is no failure of the
// whole.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junitSuites{Name: "drydock conformance", Time: fmt.Sprintf("%.3f", r.Seconds)}
	for _, level := range []Level{Required, Optional} {
		s := junitSuite{
			Name: "conformance." + string(level), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"),
			Properties: []junitProperty{{"runtime", r.Runtime.Name}, {"version", r.Runtime.Version}, {"endpoint", r.Runtime.Endpoint}},
		}
		total := 0.0
		for i := range r.Results {
			x := &r.Results[i]
			if x.Level != level {
				continue
			}
			c := junitOf(x)
			s.Tests++
			if c.Failure != nil {
				s.Failures++
			}
			if c.Skipped != nil {
				s.Skipped++
			}
			total += x.Seconds
			s.Cases = append(s.Cases, c)
		}
		s.Time = fmt.Sprintf("%.3f", total)
		out.Tests += s.Tests
		out.Failures += s.Failures
		out.Skipped += s.Skipped
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitOf is a result as a test case; its class is the first part of the name, cri or kubelet.
func junitOf(x *Result) junitCase {
	group, _, _ := strings.Cut(x.Name, "/")
	c := junitCase{Name: x.Name, Classname: "conformance." + group, Time: fmt.Sprintf("%.3f", x.Seconds)}
	switch x.Status {
	case Skipped:
		c.Skipped = &junitMessage{Message: x.Reason}
	case Failed:
		var b strings.Builder
		WriteLine(&b, *x, reportRPCs)
		m := &junitMessage{Message: strings.Join(x.Came, "; "), Type: string(x.Level), Text: printable(b.String())}
		m.Message = printable(m.Message)
		if x.Level == Optional {
			c.Skipped = &junitMessage{Message: "optional, and failed: " + m.Message}
			c.Out = m.Text
		} else {
			c.Failure = m
		}
	}
	return c
}

// printable has what XML cannot hold as question marks. Outputs of containers may have any bytes.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < 0x20 && c != '\n' && c != '\t' {
			return '?'
		}
		return c
	}, s)
}
