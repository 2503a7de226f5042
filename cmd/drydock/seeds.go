package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/drydock-sim/drydock/scenarios"
)

// maxSeeds bounds how many seeds one command runs.
const maxSeeds = 1_000_000

// parseSeeds reads "1-200" or "3,7,10-20".
func parseSeeds(text string) ([]uint64, error) {
	var out []uint64
	for _, part := range strings.Split(text, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			hi = lo
		}
		a, errA := strconv.ParseUint(lo, 10, 64)
		b, errB := strconv.ParseUint(hi, 10, 64)
		if errA != nil || errB != nil {
			return nil, fmt.Errorf("--seeds: %q is neither a number nor a range such as 1-200", part)
		}
		if b < a {
			return nil, fmt.Errorf("--seeds: the range %q is empty", part)
		}
		if b-a >= maxSeeds || len(out)+int(b-a) >= maxSeeds {
			return nil, fmt.Errorf("--seeds: more than %d seeds", maxSeeds)
		}
		for s := a; ; s++ {
			out = append(out, s)
			if s == b {
				break
			}
		}
	}
	return out, nil
}

// runSeeds runs each scenario with each seed, one run per core at a time, and
// reports the first failing seed of each with the command that repeats it.
func (f *runFlags) runSeeds(ctx context.Context, list []*scenarios.Scenario, out *output) error {
	seeds, err := parseSeeds(f.seeds)
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	workers := f.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var v verdict
	for _, s := range list {
		results := make([]*scenarios.Result, len(seeds))
		errs := make([]error, len(seeds))
		var wg sync.WaitGroup
		next := make(chan int)
		for range min(workers, len(seeds)) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range next {
					o := f.options()
					o.Seed, o.Workers = &seeds[i], 1
					results[i], errs[i] = s.Run(ctx, o)
				}
			}()
		}
		for i := range seeds {
			if ctx.Err() != nil {
				break
			}
			next <- i
		}
		close(next)
		wg.Wait()
		f.reportSeeds(s, seeds, results, errs, out, &v)
		if ctx.Err() != nil {
			return &codeError{code: exitFailed}
		}
	}
	return v.err()
}

func (f *runFlags) reportSeeds(s *scenarios.Scenario, seeds []uint64, results []*scenarios.Result, errs []error, out *output, v *verdict) {
	ran, failed, first := 0, 0, -1
	for i, res := range results {
		if res == nil || res.Interrupted {
			continue
		}
		ran++
		if errs[i] != nil || !res.Passed {
			failed++
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		out.say("PASS %s: %d seeds", s.Metadata.Name, ran)
		out.add(s, results[0], nil)
		return
	}
	v.add(results[first], errs[first])
	out.end(s, results[first], errs[first])
	out.say("FAIL %s: %d of %d seeds; the first is %d; repeat it: %s", s.Metadata.Name, failed, ran, seeds[first], f.command(s, seeds[first]))
}

// command is the command that repeats a run.
func (f *runFlags) command(s *scenarios.Scenario, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "drydock run %s --focus '^%s$' --seed %d", s.Pos.File, s.Metadata.Name, seed)
	for _, set := range f.sel.set {
		fmt.Fprintf(&b, " --set '%s'", strings.ReplaceAll(set, "'", `'\''`))
	}
	if f.until > 0 {
		fmt.Fprintf(&b, " --until %v", f.until)
	}
	return b.String()
}
