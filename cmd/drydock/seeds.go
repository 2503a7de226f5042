package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/drydock-sim/drydock/scenarios"
)

// maxSeeds bounds how many seeds one command runs. The list is made before the
// first run.
const maxSeeds = 1_000_000

// parseSeeds reads "1-200" or "3,7,10-20". Seeds come in the order in which they
// are written, each as often. Doubles are run as often as they are named.
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
		// The first test keeps the sum from overflowing.
		if b-a >= maxSeeds || len(out)+int(b-a)+1 > maxSeeds {
			return nil, fmt.Errorf("--seeds: more than %d seeds", maxSeeds)
		}
		// b may be the largest number, so the end is tested for before it is
		// passed.
		for s := a; ; s++ {
			out = append(out, s)
			if s == b {
				break
			}
		}
	}
	return out, nil
}

// seedCount is what came of one scenario's seeds. One result is kept, for its
// text; a thousand would not fit. Its methods are called under runSeeds' lock.
type seedCount struct {
	Ran    int `json:"ran"`
	Failed int `json:"failed"`
	// First is the lowest of the seeds that failed, in the order of --seeds.
	First *uint64 `json:"firstFailing,omitempty"`

	cases []runCase // of each run, by the place of its seed in the list
	index int       // of the result that is kept
	res   *scenarios.Result
	err   error
}

// add counts a run and keeps the result worth showing: that of the first seed
// that failed, or else that of the first seed. Runs end in any order, so the
// first is by the place in the list, not by time. The kept result is the same in every run of the
// command, on however many cores.
func (c *seedCount) add(index int, seed uint64, res *scenarios.Result, err error) {
	// What was cut short has neither held nor failed.
	if err == nil && res.Interrupted {
		return
	}
	c.Ran++
	for len(c.cases) <= index {
		c.cases = append(c.cases, runCase{})
	}
	c.cases[index] = runCase{seed: seed, wall: res.Summary.Wall.Total(), name: res.Scenario}
	switch x := &c.cases[index]; {
	case err != nil:
		x.internal = err.Error()
	case !res.Passed:
		x.failure, x.text = firstFailure(res), "repeat it: "+res.Repeat
	}
	failed := err != nil || !res.Passed
	if failed {
		c.Failed++
	}
	switch {
	// A failure replaces any success, and a later failure.
	case failed && (c.First == nil || index < c.index):
		c.First = &seed
	case !failed && c.First == nil && (c.res == nil || index < c.index):
	default:
		return
	}
	res.Final = scenarios.Final{} // nobody looks at it, and it is large
	c.index, c.res, c.err = index, res, err
}

// runSeeds runs each scenario with each seed, one run per core at a time, and
// reports the first failing seed of each with the command that repeats it. A run
// of its own core scales better than a run over all of them: nothing is shared. Scenarios go one
// after the other, so that lines of output stay together.
func (f *runFlags) runSeeds(ctx context.Context, list []*scenarios.Scenario, out *output) error {
	workers := f.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var v verdict
	for n, s := range list {
		if ctx.Err() != nil {
			return out.interrupted(list[n:])
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		count := &seedCount{}
		next := make(chan int)
		for range min(workers, len(f.seedList)) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range next {
					o := f.options()
					seed := f.seedList[i]
					o.Seed, o.Workers = &seed, 1
					res, err := scenarios.Run(ctx, s, o)
					mu.Lock()
					res.Repeat = f.command(s, seed)
					count.add(i, seed, res, err)
					out.seedsDone(s, count.Ran, len(f.seedList), count.Failed)
					mu.Unlock()
				}
			}()
		}
		// The channel has no room: after a signal no more runs are begun, and those under way end
		// by themselves, since their context has ended.
		for i := range f.seedList {
			if ctx.Err() != nil {
				break
			}
			next <- i
		}
		close(next)
		wg.Wait()
		out.endSeeds(s, count)
		if count.res != nil {
			v.add(count.res, count.err)
		}
		if ctx.Err() != nil {
			return out.interrupted(list[n+1:])
		}
	}
	return v.err()
}

// command is the command that repeats a run. It names the scenario by --focus,
// since a file may have several, and has the overrides, quoted for a shell. Flags that change the
// outcome are in it; those that only change what is shown are not.
func (f *runFlags) command(s *scenarios.Scenario, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "drydock run %s --focus '^%s$' --seed %d", quote(s.Pos.File), s.Metadata.Name, seed)
	if f.sel.kubelet != "" {
		b.WriteString(" --kubelet-config " + quote(f.sel.kubelet))
	}
	for _, set := range f.sel.set {
		b.WriteString(" --set " + quote(set))
	}
	if f.until > 0 {
		fmt.Fprintf(&b, " --until %v", f.until)
	}
	if f.traceReads {
		b.WriteString(" --trace-reads")
	}
	if f.census {
		b.WriteString(" --census")
	}
	if f.noElide {
		b.WriteString(" --no-elide")
	}
	if f.checkElision != "" {
		b.WriteString(" --check-elision=" + f.checkElision)
	}
	return b.String()
}

// plainWord is what no shell changes. What isn't matched is quoted even where a shell would not
// mind.
var plainWord = regexp.MustCompile(`^[-A-Za-z0-9_./:=,@%+]+$`)

// quote quotes a word for a shell, if it needs that. A single quote within is written '\” as
// POSIX shells want it.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
