package result

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
)

// shownLogs is how many of the kubelets' last log lines WriteText shows.
const shownLogs = 20

// WriteText writes the result for a reader: warnings, each expectation with
// its verdict and, where one failed, what was there and what led to it, and one
// summary line. With logs it also shows the kubelets' last log lines of a run
// that failed. A writer's errors are lost; the last bytes then are missing.
func (r *Result) WriteText(w io.Writer, logs bool) {
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", x)
	}
	for _, x := range r.Errors {
		fmt.Fprintf(w, "error: %s\n", x)
	}
	if len(r.Verdicts) > 0 {
		fmt.Fprintln(w)
	}
	failed := len(r.Errors) > 0
	for i := range r.Verdicts {
		r.writeVerdict(w, &r.Verdicts[i])
		failed = failed || r.Verdicts[i].Outcome == expect.Failed
	}
	if logs && len(r.Logs) > 0 && failed {
		fmt.Fprintf(w, "\nthe kubelets' last log lines (of %d; -v shows all):\n", len(r.Logs))
		for _, l := range r.Logs[max(0, len(r.Logs)-shownLogs):] {
			fmt.Fprintf(w, "    %s\n", l)
		}
	}
	if r.Metrics != nil {
		r.Metrics.writeText(w)
	}
	if r.Census != nil {
		r.Census.writeText(w)
	}
	fmt.Fprintf(w, "\n%s\n", r.summaryLine())
	if !r.Passed {
		fmt.Fprintf(w, "repeat it: %s\n", r.Repeat)
	}
}

// Title names the expectation: by its name if it has one, its form, and its
// expression in one line.
func (v *Verdict) Title() string {
	out := v.when() + ": " + strings.Join(strings.Fields(v.Expectation.Expr), " ")
	if name := v.Expectation.Name; name != "" {
		return name + " (" + out + ")"
	}
	return out
}

// when is the expectation's form with its times: "by 10s", "for 1m by end",
// "always from 10s".
func (v *Verdict) when() string {
	x := v.Expectation
	out := string(x.Form)
	at := func(t time.Duration) string {
		if t == expect.End {
			return "end"
		}
		return text.ShortTime(t)
	}
	switch x.Form {
	case expect.At, expect.By:
		out += " " + at(x.T)
	case expect.For:
		out += " " + text.ShortTime(x.Span)
		if x.T != expect.End {
			out += " by " + at(x.T)
		}
	}
	if x.From != 0 {
		out += " from " + at(x.From)
	}
	switch x.Form {
	case expect.Always, expect.Never:
		if x.Until != 0 && x.Until != expect.End {
			out += " until " + at(x.Until)
		}
	}
	return out
}

// writeVerdict writes an expectation in one line, and below a failed one what a
// reader needs to find out why.
func (r *Result) writeVerdict(w io.Writer, v *Verdict) {
	word := map[expect.Outcome]string{expect.Held: "ok       ", expect.Failed: "FAILED   ", expect.Undecided: "undecided"}[v.Outcome]
	fmt.Fprintf(w, "%s %s\n", word, v.Title())
	if v.Outcome == expect.Held {
		return
	}
	fmt.Fprintf(w, "          %s\n", v.Reason)
	if v.Outcome != expect.Failed {
		return
	}
	for _, x := range v.Values {
		fmt.Fprintf(w, "          %s = %s\n", x.Expr, x.Value)
	}
	if len(v.History) > 0 {
		fmt.Fprintln(w, "          what led to it:")
		for _, l := range v.History {
			fmt.Fprintf(w, "    %s\n", l)
		}
	}
	if before := (v.At - time.Millisecond).Truncate(time.Millisecond); before > 0 && !strings.Contains(r.Repeat, " --until ") {
		fmt.Fprintf(w, "          the run up to just before: %s --until %v -v\n", r.Repeat, before)
	}
}

// summaryLine is the last line: what scripts look for, and whoever repeats the
// run.
func (r *Result) summaryLine() string {
	s := &r.Summary
	verdict := "PASS"
	switch {
	case r.Interrupted:
		verdict = "INTERRUPTED"
	case !r.Passed:
		verdict = "FAIL"
	}
	undecided := 0
	for i := range r.Verdicts {
		if r.Verdicts[i].Outcome == expect.Undecided {
			undecided++
		}
	}
	if undecided > 0 {
		verdict += fmt.Sprintf(" (%d undecided)", undecided)
	}
	var phases []string
	for p, n := range s.Pods { //drydock:unordered sorted below
		phases = append(phases, fmt.Sprintf("%d %s", n, p))
	}
	sort.Strings(phases)
	pods := "no pods"
	if len(phases) > 0 {
		pods = "pods " + strings.Join(phases, ", ")
	}
	rate := fmt.Sprintf("%.0f", s.NodeSecondsPerSecond)
	if s.SteadyNodeSecondsPerSecond > 0 {
		rate += fmt.Sprintf(" (steady %.0f)", s.SteadyNodeSecondsPerSecond)
	}
	return fmt.Sprintf("%s %s: %s virtual in %s (load %s, start-up %s, steady %s), %s node-seconds/s; %s, %s; %s, %s, %s, %s, %s; hash %s, seed %d",
		verdict, r.Scenario, text.ShortTime(s.Virtual), text.RoundWall(s.Wall.Total()), text.RoundWall(s.Wall.Load), text.RoundWall(s.Wall.Startup), text.RoundWall(s.Wall.Steady), rate,
		text.Plural(s.Nodes, "node"), pods, text.Plural(s.LeasesRenewed, "lease renewal"), text.Plural(s.Syncs, "sync"), text.Plural(s.Resyncs, "resync"), text.Plural(s.ProbesRun, "probe"), text.Plural(s.Records, "record"), s.Hash, r.Seed)
}
