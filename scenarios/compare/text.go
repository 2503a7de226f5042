package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/result"
)

// What a text of a comparison shows of long lists.
const (
	shownDifferences = 20
	shownPods        = 30
	shownEvictions   = 20
)

// WriteText writes the comparison for a reader. A writer's errors are lost.
func (c *Comparison) WriteText(w io.Writer) {
	for _, s := range []struct {
		name string
		*Side
	}{{"A", &c.A}, {"B", &c.B}} {
		fmt.Fprintf(w, "%s: scenario %s in %s", s.name, s.Scenario.Metadata.Name, s.Scenario.Pos.File)
		if len(s.Set) > 0 {
			fmt.Fprintf(w, ", with %s", strings.Join(s.Set, ", "))
		}
		fmt.Fprintln(w)
	}
	c.writeDifferences(w)
	for _, x := range c.Warnings {
		fmt.Fprintf(w, "warning: %s\n", x)
	}
	many := len(c.Seeds) > 1
	if many {
		fmt.Fprintf(w, "\n%s, %s: means, and from the least to the most where seeds differ\n\n", text.Plural(len(c.Seeds), "seed"), cmp.Or(c.SeedsText, seedsText(c.Seeds)))
	} else {
		fmt.Fprintf(w, "\nseed %s\n\n", cmp.Or(c.SeedsText, seedsText(c.Seeds)))
	}
	c.writeFigures(w)
	c.writePods(w)
	// Of several seeds there is no one list of evictions: their times differ.
	if !many {
		c.A.writeEvictions(w, "A")
		c.B.writeEvictions(w, "B")
	}
	fmt.Fprintln(w)
	c.A.writeVerdicts(w, "A")
	c.B.writeVerdicts(w, "B")
}

// writeDifferences shows the first fields in which the documents differ.
func (c *Comparison) writeDifferences(w io.Writer) {
	if len(c.Differences) == 0 {
		fmt.Fprintln(w, "They say the same.")
		return
	}
	fmt.Fprintln(w, "They differ in:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, d := range c.Differences {
		if i == shownDifferences {
			t.Flush()
			fmt.Fprintf(w, "  and %d more\n", len(c.Differences)-i)
			return
		}
		say := func(s string) string {
			if s == "" {
				return "(not set)"
			}
			return decode.OneLine(decode.Short(s))
		}
		fmt.Fprintf(t, "  %s\tA: %s\tB: %s\n", d.Path, say(d.A), say(d.B))
	}
	t.Flush()
}

// writeFigures is the table of figures. Of runs that were cut short none is
// called better: they did not last equally long.
func (c *Comparison) writeFigures(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "\tA\tB\tB - A\n")
	for _, f := range c.figures() {
		name := f.name
		if f.part != "" {
			name = "  " + f.part
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, f.a.text(f.in), f.b.text(f.in), f.difference())
	}
	t.Flush()
	fmt.Fprintln(w, "Times are sums over the nodes. Availability is for how much of the time for which replicas were wanted as many were ready.")
	if cut := func(r *result.Result) bool { return r.Interrupted }; !slices.ContainsFunc(c.A.Runs, cut) && !slices.ContainsFunc(c.B.Runs, cut) {
		c.writeBalance(w)
	}
}

// difference writes B - A, and from the least to the most where seeds differ.
// What rounds to nothing is "=", lest a reader look for a difference.
func (f *comparedFigure) difference() string {
	if f.diff.Least == f.diff.Most {
		return f.signed(f.diff.Mean)
	}
	end := func(d float64) string {
		if d == 0 {
			return f.in.Text(0)
		}
		return f.signed(d)
	}
	return fmt.Sprintf("%s (%s to %s)", f.signed(f.diff.Mean), end(f.diff.Least), end(f.diff.Most))
}

// signed writes a difference with its sign; one that rounds to nothing is "=".
func (f *comparedFigure) signed(d float64) string {
	sign, zero := "+", f.in.Text(0)
	if d < 0 {
		sign, d = "-", -d
	}
	if s := f.in.Text(d); s != zero {
		return sign + s
	}
	return "="
}

// writeBalance says in which figures B does better than A, and in which worse,
// and for how many seeds: one seed more or less is no verdict.
func (c *Comparison) writeBalance(w io.Writer) {
	var better, worse []string
	for _, f := range c.figures() {
		if f.part != "" || f.signed(f.diff.Mean) == "=" {
			continue
		}
		// Availability is the one figure of which more is better.
		good := (f.diff.Mean > 0) == (f.in == result.Shared)
		seeds, in := "", f.better
		if !good {
			in = f.worse
		}
		if n := len(c.Seeds); n > 1 {
			seeds = fmt.Sprintf(" for %d of %d seeds", in, n)
		}
		text := fmt.Sprintf("%s (%s%s)", f.name, f.signed(f.diff.Mean), seeds)
		if good {
			better = append(better, text)
		} else {
			worse = append(worse, text)
		}
	}
	for _, l := range []struct {
		word string
		list []string
	}{{"better", better}, {"worse", worse}} {
		if len(l.list) > 0 {
			fmt.Fprintf(w, "B does %s than A in: %s\n", l.word, strings.Join(l.list, ", "))
		}
	}
	if len(better)+len(worse) == 0 {
		fmt.Fprintln(w, "B does neither better nor worse than A in any of these.")
	}
}

// text writes the mean, and from the least to the most where seeds differ.
func (s spread) text(in result.Measure) string {
	if s.Least == s.Most {
		return in.Text(s.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", in.Text(s.Mean), in.Text(s.Least), in.Text(s.Most))
}

// writePods shows the pods whose lots differ most. Where there are many, those
// of a template are one line.
func (c *Comparison) writePods(w io.Writer) {
	pods := c.pods()
	if len(pods) == 0 {
		return
	}
	if len(pods) > shownPods {
		pods = c.podGroups()
	}
	slices.SortStableFunc(pods, func(a, b comparedPod) int { return cmp.Compare(b.weight(), a.weight()) })
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "workload or pod\tQoS\tevicted A / B\tOOM killed A / B\trestarts A / B\tavailable A / B")
	two := func(in result.Measure, a, b float64) string { return in.Text(a) + " / " + in.Text(b) }
	available := func(f podFigures) string {
		if f.Runs == 0 {
			return "-"
		}
		return result.Shared.Text(f.Availability)
	}
	for _, p := range pods[:min(len(pods), shownPods)] {
		qos := cmp.Or(p.QoS, "-")
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", p.title(), qos, two(result.Counted, p.A.Evictions, p.B.Evictions), two(result.Counted, p.A.OOMKills, p.B.OOMKills),
			two(result.Counted, p.A.Restarts, p.B.Restarts), available(p.A)+" / "+available(p.B))
	}
	t.Flush()
	if len(pods) > shownPods {
		fmt.Fprintf(w, "and %d more (-o json has them all)\n", len(pods)-shownPods)
	}
}

// writeEvictions shows who was evicted when; of one seed only, since others have
// other times.
func (s *Side) writeEvictions(w io.Writer, name string) {
	m := s.Runs[0].Metrics
	if len(m.Evictions) > 0 {
		fmt.Fprintln(w)
	}
	for i, e := range m.Evictions {
		// Node pressure can evict hundreds, of which the first tell the story.
		if i == shownEvictions {
			fmt.Fprintf(w, "%s: and %d more evictions\n", name, len(m.Evictions)-i)
			return
		}
		fmt.Fprintf(w, "%s: %s  evicted %s (%s) on %s: %s\n", name, text.Stamp(int64(e.At)), e.Pod, e.QoS, e.Node, strings.TrimSpace(e.Message))
	}
}

// writeVerdicts reports whether the side's expectations held, and which did not.
func (s *Side) writeVerdicts(w io.Writer, name string) {
	n, undecided := len(s.Scenario.Spec.Expect), s.undecided()
	failed := s.failed()
	if failed == 0 {
		switch {
		case n == 0:
			fmt.Fprintf(w, "%s: there are no expectations\n", name)
		case undecided == n:
			fmt.Fprintf(w, "%s: %s, not decided by then\n", name, text.Plural(n, "expectation"))
		case undecided > 0:
			fmt.Fprintf(w, "%s: %s held, %d not decided by then\n", name, text.Plural(n-undecided, "expectation"), undecided)
		default:
			fmt.Fprintf(w, "%s: %s held\n", name, text.Plural(n, "expectation"))
		}
		return
	}
	runs := ""
	if len(s.Runs) > 1 {
		runs = fmt.Sprintf(" in %d of %d runs", failed, len(s.Runs))
	}
	word := "FAILED"
	// A run that was interrupted does not pass, but it did not fail either.
	if !slices.ContainsFunc(s.Runs, func(r *result.Result) bool { return !r.Passed && !onlyCut(r) }) {
		word = "cut short"
	}
	fmt.Fprintf(w, "%s: %s%s\n", name, word, runs)
	// Most failures repeat from seed to seed; the first that shows one stands for
	// all.
	told := map[string]bool{}
	tell := func(r *result.Result, what string) {
		if !told[what] {
			told[what] = true
			fmt.Fprintf(w, "    seed %d: %s\n", r.Seed, what)
		}
	}
	for _, r := range s.Runs {
		if r.Interrupted {
			tell(r, "interrupted at "+text.ShortTime(r.Summary.Virtual.Truncate(time.Millisecond)))
		}
		for _, e := range r.Errors {
			tell(r, e)
		}
		for i := range r.Verdicts {
			if v := &r.Verdicts[i]; v.Outcome == expect.Failed {
				tell(r, clip(v.Title(), 160))
			}
		}
	}
	// One command is enough to look into it.
	for _, r := range s.Runs {
		if !r.Passed {
			fmt.Fprintf(w, "    repeat it: %s\n", r.Repeat)
			return
		}
	}
}

// onlyCut reports that a run was interrupted and nothing had failed by then.
func onlyCut(r *result.Result) bool {
	return r.Interrupted && len(r.Errors) == 0 && !slices.ContainsFunc(r.Verdicts, func(v result.Verdict) bool { return v.Outcome == expect.Failed })
}

// undecided counts the expectations that were not decided in some run.
func (s *Side) undecided() int {
	not := map[int]bool{}
	for _, r := range s.Runs {
		for i := range r.Verdicts {
			if r.Verdicts[i].Outcome == expect.Undecided {
				not[i] = true
			}
		}
	}
	return len(not)
}

// clip shortens a text that fills more than a line or two.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// seedsText writes seeds as --seeds takes them, so that it can be copied.
func seedsText(seeds []uint64) string {
	var parts []string
	for i := 0; i < len(seeds); {
		k := i
		for k+1 < len(seeds) && seeds[k+1] == seeds[k]+1 {
			k++
		}
		part := strconv.FormatUint(seeds[i], 10)
		if k > i {
			part += "-" + strconv.FormatUint(seeds[k], 10)
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, ",")
}

// sideJSON is a side with all its runs.
type sideJSON struct {
	File     string           `json:"file"`
	Scenario string           `json:"scenario"`
	Set      []string         `json:"set,omitempty"`
	Passed   bool             `json:"passed"`
	Runs     []*result.Result `json:"runs"`
}

// figureJSON is a figure on both sides.
type figureJSON struct {
	Name string `json:"name"`
	// Part tells of which part of the figure it is; it may be empty.
	Part string `json:"part,omitempty"`
	// Unit is count, seconds, bytes or share (of 1).
	Unit string `json:"unit"`
	A    spread `json:"a"`
	B    spread `json:"b"`
	// Diff is B - A, seed by seed.
	Diff spread `json:"difference"`
}

// MarshalJSON writes the comparison with all runs; times are seconds. Lists that
// are empty are [], so that scripts need no case of their own.
func (c *Comparison) MarshalJSON() ([]byte, error) {
	side := func(s *Side) sideJSON {
		return sideJSON{s.Scenario.Pos.File, s.Scenario.Metadata.Name, s.Set, s.failed() == 0, s.Runs}
	}
	figures := []figureJSON{}
	for _, f := range c.figures() {
		unit := [...]string{result.Counted: "count", result.Timed: "seconds", result.Sized: "bytes", result.Shared: "share"}[f.in]
		figures = append(figures, figureJSON{f.name, f.part, unit, f.a, f.b, f.diff})
	}
	return text.JSON(struct {
		Version     string        `json:"version,omitempty"`
		Passed      bool          `json:"passed"`
		Interrupted bool          `json:"interrupted,omitempty"`
		Seeds       []uint64      `json:"seeds"`
		Differences []Difference  `json:"differences"`
		Warnings    []string      `json:"warnings,omitempty"`
		Figures     []figureJSON  `json:"figures"`
		Pods        []comparedPod `json:"pods"`
		A           sideJSON      `json:"a"`
		B           sideJSON      `json:"b"`
	}{c.Version, c.Passed(), c.Interrupted, c.Seeds, append([]Difference{}, c.Differences...), c.Warnings, figures, append([]comparedPod{}, c.pods()...), side(&c.A), side(&c.B)})
}
