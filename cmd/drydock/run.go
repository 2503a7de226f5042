package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/ground/hugepages"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
)

// maxWorkers bounds --workers. Beyond it there is a typo: goroutines would be made for each.
const maxWorkers = 1024

// runFlags are the flags of drydock run. A field with Set beside it was given on
// the command line; zero values are defaults else: the scenario's seed, its whole
// duration, one worker a core. trace and report are files or directories that
// only a single run can write. The same struct serves drydock scale and compare, which fill in a
// part.
type runFlags struct {
	// sel says which scenarios, and with which overrides.
	sel selection
	// seed is one; seeds is a list such as "1-200,300", which seedList holds once
	// it is read. verify runs a scenario several times and compares hashes.
	seed     uint64
	seedSet  bool
	seeds    string
	seedsSet bool
	seedList []uint64
	verify   bool
	// trace is a file of records as JSON lines; traceReads adds calls that only
	// read.
	trace      string
	traceReads bool
	// output is text, json or junit. reportXML and summary are files that are written beside it.
	output             string
	reportXML, summary string
	// until ends runs before their time, in virtual time. What is not decided by
	// then is told of and fails nothing.
	until    time.Duration
	untilSet bool
	// verbose shows the whole timeline and logs; metrics and census add figures
	// and a look for leaks to the result. report is a directory for an HTML
	// report.
	verbose bool
	metrics bool
	census  bool
	// noElide and checkElision are about what is left out while nothing changes.
	// checkElision is "", passes or steps.
	noElide      bool
	checkElision string
	report       string
	// workers is how many cores a run may use; 0: all. The outcome is the same
	// for any.
	workers int
	// only are objects that the timeline shows; watch has it run again on changes.
	only  []string
	watch bool
	// typed is the command line.
	typed string

	stdout, stderr io.Writer
}

// newRun is drydock run. Help for flags is one line each; docs have the rest.
func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE|DIR...",
		Short: "Run scenarios and judge their expectations",
		Example: `  drydock run web.yaml
  drydock run --seeds 1-200 scenarios/
  drydock run web.yaml --set 'spec.nodes[0].count=5' --output json`,
		Args: someArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Address translation is a fifth of a large run without it. It returns the function
			// that ends it.
			defer hugepages.Keep(100 * time.Millisecond)()
			changed := cmd.Flags().Changed
			f.seedSet, f.seedsSet, f.untilSet = changed("seed"), changed("seeds"), changed("until")
			f.stdout, f.stderr = colorsOn(cmd.OutOrStdout()), cmd.ErrOrStderr()
			f.typed = commandLine(cmd, args)
			if f.watch {
				return f.runAgain(cmd.Context(), args)
			}
			return f.run(cmd.Context(), args)
		},
	}
	// What is run, with which seeds, and what is shown of it.
	f.sel.flags(cmd)
	f.sel.kubeletFlag(cmd, "kubelet-config", "the nodes' KubeletConfiguration, instead of theirs: a file")
	f.sel.schedulerFlag(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.only, "only", nil, "show of the timeline only what is about this object, and what it owns: pod/web, deployment/prod/web, node/n1, with * and ? (repeatable)")
	fl.BoolVar(&f.watch, "watch", false, "run again when a file changes, until interrupted")
	fl.Uint64Var(&f.seed, "seed", 0, "run with this seed instead of the scenario's")
	fl.StringVar(&f.seeds, "seeds", "", "run each scenario with many seeds (\"1-200\", \"3,7,10-20\"), in parallel")
	fl.BoolVar(&f.verify, "verify", false, "run each scenario several times, on different numbers of cores, and compare the traces' hashes")
	fl.StringVar(&f.trace, "trace", "", "write every record to this file, as JSON lines (one scenario only)")
	fl.BoolVar(&f.traceReads, "trace-reads", false, "record CRI calls that only read, too (changes the hash)")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or junit")
	fl.StringVar(&f.reportXML, "report-junit", "", "write the results to this file, too, as JUnit's XML")
	fl.StringVar(&f.summary, "report-summary", "", "append a table of the results to this file, as Markdown, such as $GITHUB_STEP_SUMMARY")
	spanVar(fl, &f.until, "until", 0, "stop at this virtual time")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show everything, also in large scenarios, with the kubelets' log lines; stacks of internal errors")
	fl.BoolVar(&f.metrics, "metrics", false, "tell of evictions, OOM kills, restarts, pressure, image pulls and the pods' availability")
	fl.BoolVar(&f.census, "census", false, "look at the end for what nodes keep of pods that are gone; a leak fails the run")
	fl.BoolVar(&f.noElide, "no-elide", false, "run every periodic body even if nothing changed: the same comes of it, at many times the cost")
	fl.StringVar(&f.checkElision, "check-elision", "", "fail where a periodic body was left out although something changed that it reads; \"steps\": where anything changes of which nobody tells (slow)")
	fl.Lookup("check-elision").NoOptDefVal = "passes"
	fl.StringVar(&f.report, "report", "", "write a report to this directory: index.html and CSV files (one scenario only)")
	fl.IntVar(&f.workers, "workers", 0, "cores to use (0: all); never changes the outcome")
	complete(cmd, "text", "json", "junit")
	return cmd
}

// check finds what is wrong with the flags themselves. Whatever can be known without reading a
// file is refused here.
func (f *runFlags) check() error {
	switch {
	case f.output != "text" && f.output != "json" && f.output != "junit":
		return badInput("--output: %q is none of text, json, junit", f.output)
	case f.untilSet && f.until <= 0:
		return badInput("--until: %v is not after the start", f.until)
	case f.workers < 0:
		return badInput("--workers: %d is negative", f.workers)
	case f.workers > maxWorkers:
		return badInput("--workers: %d is more than %d", f.workers, maxWorkers)
	case f.checkElision != "" && f.checkElision != "passes" && f.checkElision != "steps":
		return badInput("--check-elision: %q is none of passes, steps", f.checkElision)
	case f.noElide && f.checkElision != "":
		return badInput("--no-elide and --check-elision exclude each other")
	case f.seedsSet && f.seedSet:
		return badInput("--seed and --seeds exclude each other")
	case f.seedsSet && f.verify:
		return badInput("--seeds and --verify exclude each other")
	case f.trace != "" && (f.seedsSet || f.verify):
		return badInput("--trace goes with a single run, not with --seeds or --verify")
	}
	for _, o := range f.only {
		if kind, name, ok := strings.Cut(o, "/"); !ok || kind == "" || name == "" {
			return badInput("--only: %q is no object such as pod/web, deployment/prod/web or node/n1", o)
		}
	}
	if f.watch && (f.trace != "" || f.report != "" || f.output != "text" || f.reportXML != "" || f.summary != "") {
		return badInput("--watch shows text, and excludes --trace, --report... and --output")
	}
	// A file or a directory holds one run.
	if f.report != "" && (f.seedsSet || f.verify) {
		return badInput("--report goes with a single run, not with --seeds or --verify")
	}
	if f.seedsSet {
		var err error
		if f.seedList, err = parseSeeds(f.seeds); err != nil {
			return &codeError{exitBadInput, err}
		}
	}
	return nil
}

// run loads what is selected and runs it: once each, with many seeds, or to
// compare hashes. Loading is timed, as part of what a run costs. Scenarios that are selected and
// none that are broken: load has refused those.
func (f *runFlags) run(ctx context.Context, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	began := time.Now()
	list, err := f.sel.load(ctx, args)
	if err != nil {
		return err
	}
	if f.trace != "" && len(list) > 1 {
		return badInput("--trace goes with a single scenario; %d are selected", len(list))
	}
	if f.report != "" && len(list) > 1 {
		return badInput("--report goes with a single scenario; %d are selected", len(list))
	}
	if err := errors.Join(writable("--report-junit", f.reportXML), writable("--report-summary", f.summary)); err != nil {
		return err
	}
	// Files are loaded together: each scenario gets its share of the time. The share is what the
	// summary shows; nobody compares it.
	loaded := time.Since(began) / time.Duration(len(list))
	out := newOutput(f, len(list))
	switch {
	case f.seedsSet:
		err = f.runSeeds(ctx, list, out)
	case f.verify:
		err = f.runVerify(ctx, list, out)
	default:
		err = f.runEach(ctx, list, loaded, out)
	}
	// A document that could not be written must not look like success.
	if werr := out.close(); err == nil && werr != nil {
		err = &codeError{exitInternal, werr}
	}
	return err
}

// options are those of a run without output. A value is made for each run, since runs hold
// pointers into it.
func (f *runFlags) options() scenarios.RunOptions {
	// Only the command knows the wall clock; the run itself is given one to
	// measure with.
	elision := loop.Elide
	switch {
	case f.noElide:
		elision = loop.NoElide
	case f.checkElision == "passes":
		elision = loop.CheckElision
	case f.checkElision == "steps":
		elision = loop.CheckEachStep
	}
	o := scenarios.RunOptions{Only: f.only, Elision: elision, Workers: f.workers, Until: f.until, Verbose: f.verbose, TraceReads: f.traceReads, Metrics: f.metrics, Census: f.census, Clock: time.Now}
	if f.seedSet {
		o.Seed = &f.seed
	}
	return o
}

// verdict turns results into the exit code. An internal error outweighs failures:
// whatever else was found may come of it. Counts rather than a flag, for who debugs.
type verdict struct{ failed, internal int }

// add counts one run.
func (v *verdict) add(res *scenarios.Result, err error) {
	switch {
	case err != nil:
		v.internal++
	case !res.Passed:
		v.failed++
	}
}

// err is nil if all expectations held. The results were shown, so the error has
// no text.
func (v *verdict) err() error {
	switch {
	case v.internal > 0:
		return &codeError{code: exitInternal}
	case v.failed > 0:
		return &codeError{code: exitFailed}
	}
	return nil
}

// interrupted tells which scenarios were not run, and is the error for that. Exit code 1 rather
// than 130, as with go test: a job that was cut short has not passed.
func (o *output) interrupted(rest []*scenarios.Scenario) error {
	o.clearBar()
	o.cut = true
	if len(rest) > 0 {
		fmt.Fprintf(o.f.stderr, "drydock: interrupted; %s not run, from %s on\n", scenarios.Plural(len(rest), "scenario"), rest[0].Metadata.Name)
	}
	return &codeError{code: exitFailed}
}

// runEach runs one scenario after the other: each uses all cores itself. loaded
// is how long loading took. A run that fails doesn't stop the others.
func (f *runFlags) runEach(ctx context.Context, list []*scenarios.Scenario, loaded time.Duration, out *output) error {
	var v verdict
	for i, s := range list {
		if ctx.Err() != nil {
			return out.interrupted(list[i:])
		}
		o := f.options()
		o.Loaded = loaded
		// Files are closed explicitly, since their errors count.
		closeTrace := func() error { return nil }
		if f.trace != "" {
			file, err := os.Create(f.trace)
			if err != nil {
				return badInput("--trace: %w", err)
			}
			// A trace has a line per record, millions for a large run.
			w := bufio.NewWriterSize(file, 1<<20)
			o.Trace = w
			closeTrace = func() error {
				if err := w.Flush(); err != nil {
					return err
				}
				return file.Close()
			}
		}
		rep := &reporter{}
		if f.report != "" {
			var err error
			if rep, err = newScenarioReporter(f.report, s, f.typed); err != nil {
				return err
			}
			o.Attach = rep.attach
		}
		out.begin(s, &o)
		res, err := scenarios.Run(ctx, s, o)
		// The run's own error comes first: others may follow from it. The report is written also
		// for what was cut short, and says so.
		rep.scenario(res)
		if rerr := rep.write(nil, partial(res, err)); err == nil && rerr != nil {
			err = rerr
		}
		if cerr := closeTrace(); err == nil && cerr != nil {
			err = fmt.Errorf("%s: %w", f.trace, cerr)
		}
		out.end(s, res, err)
		if f.report != "" && f.output == "text" {
			fmt.Fprintf(f.stdout, "report: %s\n", filepath.Join(f.report, "index.html"))
		}
		v.add(res, err)
	}
	return v.err()
}

// runVerify runs each scenario on several numbers of cores, and one of them
// twice, and compares the hashes. Equal hashes over 1, 2 and 4 cores say that the
// number of cores decides nothing; the second run with 2 that nothing else does
// either, such as the order of a map. Output of the runs is left out but for the first: they
// should be equal.
func (f *runFlags) runVerify(ctx context.Context, list []*scenarios.Scenario, out *output) error {
	var v verdict
	runs := []int{1, 2, 4, 2}
	for i, s := range list {
		var first *scenarios.Result
		var internal error
		differs := ""
		for _, procs := range runs {
			if ctx.Err() != nil {
				return out.interrupted(list[i:])
			}
			before := runtime.GOMAXPROCS(procs)
			o := f.options()
			// Both are set: the engine's workers, and the threads that Go runs
			// them on.
			o.Workers = procs
			res, err := scenarios.Run(ctx, s, o)
			// It is set back before anything else can return.
			runtime.GOMAXPROCS(before)
			switch {
			case res.Interrupted:
				return out.interrupted(list[i:])
			// res.Interrupted comes first: a run that was cut short has another hash and no
			// mistake.
			case first == nil:
				first, internal = res, err
			case err != nil:
				internal = err
			case res.Summary.Hash != first.Summary.Hash || res.Summary.Records != first.Summary.Records:
				differs = fmt.Sprintf("%s with hash %s on 1 core, %d with %s on %d", scenarios.Plural(first.Summary.Records, "record"), first.Summary.Hash, res.Summary.Records, res.Summary.Hash, procs)
			}
			if internal != nil || differs != "" {
				break
			}
		}
		if differs != "" {
			first.Passed = false
			first.Errors = append(first.Errors, "the run does not repeat: "+differs)
		}
		out.end(s, first, internal)
		v.add(first, internal)
		switch {
		case differs != "":
			out.say("DIFFERS %s: %s", s.Metadata.Name, differs)
		case internal == nil:
			out.say("VERIFIED %s: %d runs, with 1, 2, 4 and 2 cores, have the hash %s", s.Metadata.Name, len(runs), first.Summary.Hash)
		}
	}
	return v.err()
}
