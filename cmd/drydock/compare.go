package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/compare"
)

// compareFlags are the flags of drydock compare. The zero values of numbers are
// defaults: seed and until count only where their flag was given. A new value is made for each
// command line, so nothing is left over between two.
type compareFlags struct {
	// Overrides of both sides, of A and of B, each PATH=VALUE.
	set, aSet, bSet []string
	// KubeletConfigurations of both sides, of A and of B: files.
	kubelet, aKubelet, bKubelet string
	// focus selects one scenario of a file with several.
	focus string
	// seed is one, seeds a list such as "1-20"; neither: the scenario's own.
	seed     uint64
	seeds    string
	seedList []uint64 // nil: the scenario's
	output   string
	// until ends runs before their time, in virtual time; 0: not. workers is how
	// many cores are used; 0: all.
	until   time.Duration
	workers int

	stdout io.Writer
}

// newCompare is drydock compare. Errors of RunE are turned into exit codes by execute.
func newCompare() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare A.yaml [B.yaml]",
		Short: "Run a workload under two configurations and show what differs",
		Long: `Compare runs two scenarios, or one with two sets of overrides, with the same
seeds, and shows side by side what became of pods and nodes: evictions by QoS
class and resource, OOM kills, restarts, time under pressure, image pulls, and
for how much of the time for which pods were asked they were ready.

The two should differ in the kubelets' configuration only. Where machines or
workloads differ too, a warning says so.

Ctrl-C ends it with the seeds that both sides were through with; of a single
seed, with what there is so far.

Exit codes: 0 all expectations held on both sides, 1 one failed or the comparison was interrupted, 2 bad input,
3 internal error.`,
		Example: `  drydock compare web.yaml --b-set 'spec.nodes[0].kubelet.evictionHard["memory.available"]=500Mi'
  drydock compare today.yaml tomorrow.yaml --seeds 1-20 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return fmt.Errorf("compare: name one or two scenario files; see drydock compare --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.stdout = cmd.OutOrStdout()
			return f.run(cmd.Context(), args, cmd.Flags().Changed)
		},
	}
	fl := cmd.Flags()
	// --set comes first on each side, so that a side's own overrides win.
	fl.StringArrayVar(&f.set, "set", nil, "override a field on both sides, as drydock run's --set (repeatable)")
	fl.StringArrayVar(&f.aSet, "a-set", nil, "override a field on side A (repeatable)")
	fl.StringArrayVar(&f.bSet, "b-set", nil, "override a field on side B (repeatable)")
	fl.StringVar(&f.kubelet, "kubelet-config", "", "the nodes' KubeletConfiguration on both sides, instead of theirs: a file")
	fl.StringVar(&f.aKubelet, "a-kubelet-config", "", "the same of side A")
	fl.StringVar(&f.bKubelet, "b-kubelet-config", "", "the same of side B")
	fl.StringVar(&f.focus, "focus", "", "the scenario in a file of several whose name matches this regular expression")
	fl.Uint64Var(&f.seed, "seed", 0, "run with this seed instead of A's")
	fl.StringVar(&f.seeds, "seeds", "", "run with many seeds (\"1-20\", \"3,7,10-20\"): means, and from the least to the most")
	fl.StringVarP(&f.output, "output", "o", "text", "text or json")
	spanVar(fl, &f.until, "until", 0, "stop at this virtual time")
	fl.IntVar(&f.workers, "workers", 0, "cores to use (0: all); never changes the outcome")
	complete(cmd, "text", "json")
	return cmd
}

// check finds what is wrong with the flags themselves, before any file is read.
// changed reports whether a flag was given. The order of tests is the order in which a user would
// mend them.
func (f *compareFlags) check(args []string, changed func(string) bool) error {
	switch {
	case f.output != "text" && f.output != "json":
		return badInput("--output: %q is none of text, json", f.output)
	case changed("seed") && changed("seeds"):
		return badInput("--seed and --seeds exclude each other")
	case changed("until") && f.until <= 0:
		return badInput("--until: %v is not after the start", f.until)
	case f.workers < 0 || f.workers > maxWorkers:
		return badInput("--workers: %d is not within 0 and %d", f.workers, maxWorkers)
	case len(args) == 1 && len(f.aSet)+len(f.bSet) == 0 && f.aKubelet == f.bKubelet:
		return badInput("compare: A and B are the same: name a second file, or say what differs with --a-set, --b-set or --b-kubelet-config")
	}
	if changed("seed") {
		f.seedList = []uint64{f.seed}
	}
	if changed("seeds") {
		var err error
		if f.seedList, err = parseSeeds(f.seeds); err != nil {
			return &codeError{exitBadInput, err}
		}
	}
	return nil
}

// run compares two files, or one with itself under two sets of overrides. A
// failed expectation on either side is exit code 1, as in drydock run. The document is written
// before the exit code is decided: it is wanted most when something failed.
func (f *compareFlags) run(ctx context.Context, args []string, changed func(string) bool) error {
	if err := f.check(args, changed); err != nil {
		return err
	}
	a, aSel, err := f.load(ctx, args[0], "--a-set", f.aSet, f.aKubelet)
	if err != nil {
		return err
	}
	// One file alone is both sides.
	b, bSel, err := f.load(ctx, args[len(args)-1], "--b-set", f.bSet, f.bKubelet)
	if err != nil {
		return err
	}
	c := compare.New(a, b)
	c.Version = version()
	c.A.Set, c.B.Set = f.aSet, f.bSet
	if f.aKubelet != "" {
		c.A.Set = append([]string{"the kubelet configuration " + f.aKubelet}, f.aSet...)
	}
	if f.bKubelet != "" {
		c.B.Set = append([]string{"the kubelet configuration " + f.bKubelet}, f.bSet...)
	}
	if changed("seeds") {
		c.SeedsText = f.seeds
	}
	c.Seeds = f.seedList
	if c.Seeds == nil {
		// A's seed for both sides: with two seeds the difference would be partly chance.
		c.Seeds = []uint64{a.Spec.Seed}
	}
	failed := f.runAll(ctx, c, [2]*runFlags{aSel, bSel})
	// No seed was run through on both sides: there is nothing to compare. KeepWhole has dropped
	// the seeds that were not run through.
	if len(c.Seeds) == 0 {
		return failed
	}
	if f.output == "json" {
		err = encodeJSON(f.stdout, c)
	} else {
		c.WriteText(f.stdout)
	}
	switch {
	case err != nil:
		return &codeError{exitInternal, err}
	case failed != nil:
		return failed
	case !c.Passed():
		return &codeError{code: exitFailed}
	}
	return nil
}

// load loads the one scenario of a side, with the flag's overrides; the flags
// returned are those of drydock run that repeat its runs. A mistake in an
// override is told with the flag that it came by: --a-set and --set look alike in
// a long command. More than one scenario is refused: which of A's is to be compared with which of
// B's, nobody said.
func (f *compareFlags) load(ctx context.Context, file, flag string, own []string, kubelet string) (*scenarios.Scenario, *runFlags, error) {
	sel := selection{focus: f.focus, set: slices.Concat(f.set, own), kubelet: cmp.Or(kubelet, f.kubelet)}
	list, err := sel.load(ctx, []string{file})
	var wrong scenarios.LoadErrors
	if errors.As(err, &wrong) {
		for _, e := range wrong { // name the flag that it was
			if arg, ok := strings.CutPrefix(e.Pos.File, "--set "); ok && slices.ContainsFunc(own, func(s string) bool { return arg == "'"+s+"'" }) {
				e.Pos.File = flag + " " + arg
			}
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if len(list) > 1 {
		return nil, nil, badInput("compare: there are %d scenarios in %s, the first two called %s and %s: select one with --focus", len(list), file, list[0].Metadata.Name, list[1].Metadata.Name)
	}
	return list[0], &runFlags{sel: sel, until: f.until}, nil
}

// runAll runs both sides with every seed, some runs at a time, and keeps what can
// be compared: the seeds for which both sides came to their ends. Runs share
// nothing and have places of their own for results, so the order in which they
// end changes nothing. An internal error stops it, as does the end of ctx; then
// what is whole is compared and the exit code says so. Seeds go through the channel side by side,
// so that an interruption leaves whole pairs. Each run gets its part of the cores; with more runs
// than cores that is one.
func (f *compareFlags) runAll(ctx context.Context, c *compare.Comparison, flags [2]*runFlags) error {
	type job struct{ side, seed int }
	sides := [2]*compare.Side{&c.A, &c.B}
	var jobs []job
	for i := range c.Seeds {
		jobs = append(jobs, job{0, i}, job{1, i})
	}
	for _, s := range sides {
		s.Runs = make([]*scenarios.Result, len(c.Seeds))
	}
	workers := f.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	atOnce := min(workers, len(jobs))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	next := make(chan job)
	for range atOnce {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range next {
				s, seed := sides[j.side], c.Seeds[j.seed]
				res, err := scenarios.Run(ctx, s.Scenario, scenarios.RunOptions{Seed: &seed, Workers: max(workers/atOnce, 1), Until: f.until, Metrics: true, Clock: time.Now})
				if err != nil {
					mu.Lock()
					failed = cmp.Or(failed, error(&codeError{exitInternal, err}))
					mu.Unlock()
					continue
				}
				// A comparison needs figures; states of hundreds of runs would
				// not fit. Metrics are what is compared; they were made by the run.
				res.Final, res.Logs = scenarios.Final{}, nil
				res.Repeat = flags[j.side].command(s.Scenario, seed)
				s.Runs[j.seed] = res
			}
		}()
	}
	for _, j := range jobs {
		mu.Lock()
		// After an internal error the rest is not worth the time.
		stop := failed != nil
		mu.Unlock()
		if stop || ctx.Err() != nil {
			break
		}
		next <- j
	}
	close(next)
	wg.Wait()
	// Seeds for which one side is missing are dropped, so that both have the
	// same. It is false when something was dropped.
	if !c.KeepWhole() && failed == nil {
		failed = &codeError{exitFailed, fmt.Errorf("compare: interrupted")}
	}
	return failed
}
