package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/scenarios/parity"
	"github.com/drydock-sim/drydock/scenarios/parity/cluster"
	apiparity "github.com/drydock-sim/drydock/up/parity"
)

// parityFlags are what `drydock parity` is told. only are aspects, none means
// all; show names one case; observed is a directory for what the replays saw. seed 0 is not
// drawn: latencies are then in the middle of their ranges, the likeliest to match a recording.
type parityFlags struct {
	json     bool
	show     string
	only     []string
	observed string
	seed     uint64
}

// recorded is a case of any kind: of a kubelet, of a control plane, of an API.
type recorded struct {
	name     string
	compared bool // there are runs to compare with
	// replay returns what was seen, how it differs, and a function that shows both sides.
	replay func(ctx context.Context, seed uint64, warn func(string)) (seen any, verdict parity.Verdict, show func(io.Writer) error, err error)
}

// caseResult is what came of one case. err is of the replay itself: the recording asks for what
// there is not, or something panicked.
type caseResult struct {
	recorded
	seen     any // nil if it could not be replayed
	show     func(io.Writer) error
	err      error
	verdict  parity.Verdict
	warnings []string
}

// The verdicts on a case.
const (
	// They are printed at the beginning of lines; scripts grep for them.
	verdictPass     = "PASS"
	verdictDiff     = "DIFF"
	verdictReplayed = "REPLAYED" // there are no runs to compare with
)

// newParity is drydock parity.
func newParity() *cobra.Command {
	var f parityFlags
	cmd := &cobra.Command{
		Use:   "parity CASE.json...",
		Short: "Replay recordings of the real kubelet, control plane and API and compare what is seen",
		Long: `Replays recordings in virtual time and compares with what was recorded: of the
real kubelet statuses, events, CRI calls, timing and the node, its containers'
own shell commands interpreted; with plugins (files with plugins) also what
these are asked, and what the kubelet keeps in files; of the real control plane (files with nodes)
the statuses of objects, pods, nodes, endpoints, events, refusals and timing; of
the real API (files with requests), in real time, what it answered.

A line per case: PASS, DIFF with the first difference, or REPLAYED for a case
that has no runs to compare with. Exit codes: 0 all compared cases pass, 1 one
differs, 2 bad input.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("parity: name the files of recordings; see drydock parity --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runParity(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args, &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON document instead of lines")
	flags.StringVar(&f.show, "show", "", "print the two sides of the case of this name next to each other")
	flags.StringSliceVar(&f.only, "only", nil, "compare only these aspects: of kubelets "+aspectNames(parity.Aspects)+"; with plugins "+aspectNames(parity.PluginAspects)+"; of control planes "+aspectNames(cluster.Aspects)+"; of APIs "+string(aspectAnswers))
	flags.StringVar(&f.observed, "observed", "", "write what the replays showed to this directory, as NAME.json in the recordings' form; of an API the answers as they came")
	flags.Uint64Var(&f.seed, "seed", 0, "the seed of what a recording leaves to chance (nothing of an API's); 0: latencies and jitter are the middle of their range")
	return cmd
}

// runParity replays the recordings and reports. A case that differs is exit code
// 1; files that are no recordings are exit code 2, all of them told of before
// anything is replayed. Observations are written before the report, so that they are there for a
// look at what differs.
func runParity(ctx context.Context, stdout, stderr io.Writer, files []string, f *parityFlags) error {
	aspects, err := parityAspects(f.only)
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	cases, err := readCases(stderr, files)
	if err != nil {
		return err
	}
	if f.show != "" && !slices.ContainsFunc(cases, func(c recorded) bool { return c.name == f.show }) {
		return badInput("--show %s: no such case among the files", f.show)
	}
	if f.observed != "" {
		if err := os.MkdirAll(f.observed, 0o777); err != nil {
			return badInput("--observed: %w", err)
		}
	}
	results := replayAll(ctx, cases, f.seed)
	if f.observed != "" {
		for _, r := range results {
			if err := writeObserved(f.observed, r); err != nil {
				return &codeError{exitInternal, fmt.Errorf("--observed: %w", err)}
			}
		}
	}
	for _, r := range results {
		// Judging makes all aspects; the flag only decides what counts.
		r.verdict = r.verdict.Only(aspects)
	}
	return reportParity(stdout, stderr, results, f)
}

// parityAspects are the aspects that --only names. None named means all.
func parityAspects(names []string) ([]parity.Aspect, error) {
	var out []parity.Aspect
	for _, n := range names {
		a := parity.Aspect(n)
		if !slices.Contains(parity.PluginAspects, a) && !slices.Contains(cluster.Aspects, a) && a != aspectAnswers {
			return nil, fmt.Errorf("--only %s: no such aspect; there are %s; of control planes %s; of APIs %s", n, aspectNames(parity.PluginAspects), aspectNames(cluster.Aspects), aspectAnswers)
		}
		out = append(out, a)
	}
	return out, nil
}

// aspectNames lists aspects.
func aspectNames(all []parity.Aspect) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// readCase reads a recording of any kind.
func readCase(data []byte) (recorded, error) {
	if apiparity.Is(data) {
		return readAPICase(data)
	}
	if cluster.Is(data) {
		c, err := cluster.Read(data)
		if err != nil {
			return recorded{}, err
		}
		return recorded{c.Name, c.Compared(), func(_ context.Context, seed uint64, _ func(string)) (any, parity.Verdict, func(io.Writer) error, error) {
			seen, err := c.Replay(cluster.Options{Seed: seed})
			if err != nil {
				return nil, nil, nil, err
			}
			verdict, err := cluster.Judge(c, seen)
			return seen, verdict, func(w io.Writer) error { return c.Show(w, seen) }, err
		}}, nil
	}
	if parity.IsPlugins(data) {
		c, err := parity.ReadPlugins(data)
		if err != nil {
			return recorded{}, err
		}
		return recorded{c.Name, c.Compared(), func(_ context.Context, seed uint64, warn func(string)) (any, parity.Verdict, func(io.Writer) error, error) {
			seen, err := c.Replay(parity.Options{Seed: seed, Warn: warn})
			if err != nil {
				return nil, nil, nil, err
			}
			verdict, err := parity.JudgePlugins(c, seen)
			return seen, verdict, func(w io.Writer) error { return c.Show(w, seen) }, err
		}}, nil
	}
	c, err := parity.Read(data)
	if err != nil {
		return recorded{}, err
	}
	return recorded{c.Name, c.Compared(), func(_ context.Context, seed uint64, warn func(string)) (any, parity.Verdict, func(io.Writer) error, error) {
		seen, err := c.Replay(parity.Options{Seed: seed, Warn: warn})
		if err != nil {
			return nil, nil, nil, err
		}
		verdict, err := parity.Judge(c, seen)
		return seen, verdict, func(w io.Writer) error { return c.Show(w, seen) }, err
	}}, nil
}

// aspectAnswers is what is compared of an API.
const aspectAnswers parity.Aspect = "answers"

// readAPICase reads a recording of an API: requests, and what they were answered.
func readAPICase(data []byte) (recorded, error) {
	c, err := apiparity.Parse(data)
	if err != nil {
		return recorded{}, err
	}
	if c.Kubectl() {
		return recorded{}, fmt.Errorf("recording %s runs kubectl, which is not replayed", c.Name)
	}
	return recorded{c.Name, true, func(ctx context.Context, _ uint64, _ func(string)) (seen any, verdict parity.Verdict, show func(io.Writer) error, err error) {
		server, stop, err := apiparity.Start(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		got := apiparity.Replay(ctx, server, c)
		for _, d := range apiparity.Judge(c, got) {
			verdict = append(verdict, parity.Difference{Aspect: aspectAnswers, Text: d.String()})
		}
		seen = struct {
			Responses []apiparity.Answer `json:"responses"`
		}{got.Answers}
		return seen, verdict, func(w io.Writer) error { return showAnswers(w, c, got) }, nil
	}}, nil
}

// showAnswers prints the requests, each with the recorded answer and the replay's.
func showAnswers(w io.Writer, c *apiparity.Case, seen *apiparity.Seen) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range c.Requests {
		_, err := fmt.Fprintf(w, "%s\n< ", &c.Requests[i])
		if err == nil {
			err = e.Encode(c.Responses[i])
		}
		if err == nil {
			_, err = io.WriteString(w, "> ")
		}
		if err == nil {
			err = e.Encode(seen.Answers[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readCases reads all files, telling of each that is no recording. Two files with
// one case's name would be indistinguishable in the report. All files are looked at: somebody who
// has recorded many wants all mistakes.
func readCases(stderr io.Writer, files []string) ([]recorded, error) {
	var cases []recorded
	bad := false
	byName := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintf(stderr, "drydock: %v\n", err)
			bad = true
			continue
		}
		c, err := readCase(data)
		switch {
		case err != nil:
			fmt.Fprintf(stderr, "%s:%v\n", file, spaced(err))
			bad = true
		case byName[c.name] != "":
			fmt.Fprintf(stderr, "%s: name: %s is the case of %s, too\n", file, c.name, byName[c.name])
			bad = true
		default:
			byName[c.name] = file
			cases = append(cases, c)
		}
	}
	if bad {
		return nil, &codeError{exitBadInput, nil}
	}
	return cases, nil
}

// spaced puts a space before an error that doesn't begin with a position, and
// makes it one line. "file:12: ..." is read as a position by editors; "file: text" is not.
func spaced(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		return s
	}
	return " " + s
}

// replayAll replays and judges, as many cases at a time as there are cores. A
// replay is one loop and knows nothing of the others; results have the order of
// the files. When ctx ends, what has not begun is not replayed.
func replayAll(ctx context.Context, cases []recorded, seed uint64) []*caseResult {
	results := make([]*caseResult, len(cases))
	var wg sync.WaitGroup
	// A slot per core: a replay keeps one busy. Goroutines are as many as cases, which wait; that
	// is cheaper than it looks and keeps the order of results.
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, c := range cases {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r := &caseResult{recorded: c}
			results[i] = r
			warn := func(text string) {
				// A warning that comes for each container is told once.
				if !slices.Contains(r.warnings, text) {
					r.warnings = append(r.warnings, text)
				}
			}
			if r.err = ctx.Err(); r.err == nil {
				r.seen, r.verdict, r.show, r.err = c.replay(ctx, seed, warn)
			}
		})
	}
	wg.Wait()
	return results
}

// writeObserved writes a replay in the form of a recording with one run. So a
// replay can be looked at, or kept, with the tools that recordings are. A replay that failed has
// nothing to write.
func writeObserved(dir string, r *caseResult) error {
	if r.seen == nil {
		return nil
	}
	b, err := json.Marshal(struct {
		Name string `json:"name"`
		Runs []any  `json:"runs"`
	}{r.name, []any{r.seen}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", " "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return os.WriteFile(filepath.Join(dir, r.name+".json"), out.Bytes(), 0o666)
}

// word is the verdict on a result. A recording without runs is replayed all the
// same: a panic would show. DIFF includes a replay that could not be made.
func (r *caseResult) word() string {
	switch {
	case r.err != nil || len(r.verdict) > 0:
		return verdictDiff
	case !r.compared:
		return verdictReplayed
	}
	return verdictPass
}

// why is what differs, in words. The first difference is told; --json has all.
func (r *caseResult) why() string {
	if r.err != nil {
		return "replay: " + r.err.Error()
	}
	if len(r.verdict) == 0 {
		return ""
	}
	return string(r.verdict[0].Aspect) + ": " + r.verdict[0].Text
}

// reportParity prints what came of all cases. Cases are in the order of the
// files; the last line counts them. Warnings go to stderr, so that stdout has a line per case and
// the count.
func reportParity(stdout, stderr io.Writer, results []*caseResult, f *parityFlags) error {
	passed, compared, differ := 0, 0, false
	for _, r := range results {
		word := r.word()
		differ = differ || word == verdictDiff
		if r.compared {
			compared++
		}
		if word == verdictPass {
			passed++
		}
		for _, w := range r.warnings {
			fmt.Fprintf(stderr, "warning: %s: %s\n", r.name, w)
		}
		if f.json {
			continue
		}
		if word == verdictDiff {
			fmt.Fprintf(stdout, "%s %s: %s\n", word, r.name, oneLine(r.why()))
		} else {
			fmt.Fprintf(stdout, "%s %s\n", word, r.name)
		}
		if r.name == f.show && r.show != nil {
			if err := r.show(stdout); err != nil {
				return &codeError{exitInternal, err}
			}
		}
	}
	if f.json {
		if err := parityJSON(stdout, results, passed, compared); err != nil {
			return &codeError{exitInternal, err}
		}
	} else {
		fmt.Fprintf(stdout, "parity: %d of %d cases\n", passed, compared)
	}
	if differ {
		return &codeError{exitFailed, nil}
	}
	return nil
}

// oneLine puts a text on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// parityJSON prints the report as JSON. The types are local: nothing else makes such a document.
func parityJSON(w io.Writer, results []*caseResult, passed, compared int) error {
	type difference struct {
		Aspect string `json:"aspect"`
		Text   string `json:"text"`
	}
	type result struct {
		Name        string       `json:"name"`
		Verdict     string       `json:"verdict"`
		Error       string       `json:"error,omitempty"`
		Differences []difference `json:"differences,omitempty"`
		Warnings    []string     `json:"warnings,omitempty"`
	}
	doc := struct {
		Version  string   `json:"version"`
		Cases    []result `json:"cases"`
		Passed   int      `json:"passed"`
		Compared int      `json:"compared"`
	}{version(), []result{}, passed, compared}
	for _, r := range results {
		out := result{Name: r.name, Verdict: r.word(), Warnings: r.warnings}
		if r.err != nil {
			out.Error = r.err.Error()
		}
		for _, d := range r.verdict {
			out.Differences = append(out.Differences, difference{string(d.Aspect), d.Text})
		}
		doc.Cases = append(doc.Cases, out)
	}
	return encodeJSON(w, doc)
}
