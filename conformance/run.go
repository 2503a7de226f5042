//go:build linux

package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drydock-sim/drydock/conformance/images"
)

// suite is one run of the list of checks. One T is made for each check; what they
// share is here, and what changes while they run is behind mu.
type suite struct {
	o        Options
	name     string // unlike that of any other run
	dir      string
	clients  *clients
	registry Registry
	// present are the images that were there before.
	present map[string]bool
	ids     atomic.Int64
	needs   needs

	mu        sync.Mutex
	recorders []*recorder
	report    *Report
}

// Listed is an entry of List.
type Listed struct {
	Name   string `json:"name"`
	Level  Level  `json:"level"`
	Expect string `json:"expected"`
}

// List returns the checks that the options select, in the order in which they
// are reported.
func List(o Options) ([]Listed, error) {
	list, err := checks(nil, "")
	if err != nil {
		return nil, err
	}
	var out []Listed
	for _, c := range list {
		if left(&o, c.name) == "" {
			out = append(out, Listed{c.name, c.level, c.expect})
		}
	}
	return out, nil
}

// left says why a check is left out, "" if it is not. Focus is asked first.
func left(o *Options, name string) string {
	hit := func(re *regexp.Regexp) bool { return re != nil && re.MatchString(name) }
	switch {
	case o.Focus != nil && !hit(o.Focus):
		return fmt.Sprintf("--focus %s", o.Focus)
	case hit(o.Skip):
		return fmt.Sprintf("--skip %s", o.Skip)
	}
	return ""
}

// Run runs the checks. The error is one of the options, or of a runtime that
// does not answer; whatever else goes wrong is in the report. When ctx ends, what
// is left is reported as interrupted, and what was made is still removed.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &suite{o: o, name: randomName(), report: &Report{Started: time.Now()}}
	var err error
	if r.clients, err = dial(o.Endpoint, o.ImageEndpoint); err != nil {
		return nil, err
	}
	// After the cleanup, which needs them.
	defer r.clients.close()
	v, err := r.clients.version(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: no container runtime answers there: %s", o.Endpoint, unreachable(err))
	}
	rt := &r.report.Runtime
	rt.Endpoint, rt.Name, rt.Version, rt.APIVersion = o.Endpoint, v.GetRuntimeName(), v.GetRuntimeVersion(), v.GetRuntimeApiVersion()
	if r.registry = o.Registry; r.registry == nil {
		reg, err := images.New(context.WithoutCancel(ctx), images.Options{Addr: o.TestRegistry, Advertise: o.TestRegistryName, Mark: "drydock conformance " + r.name})
		if err != nil {
			return nil, fmt.Errorf("--test-registry: %w", err)
		}
		defer reg.Close()
		r.registry = reg
	}
	// The kubelets' files stay only where somebody asked for them.
	if r.dir = o.Dir; r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "drydock-conformance-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(r.dir)
	}
	list, err := checks(r.registry, r.dir)
	if err != nil {
		return nil, err
	}
	// Before any check pulls: what is there now is somebody else's.
	r.notePresent(ctx)
	r.runAll(ctx, list)
	return r.report, nil
}

// randomName names a run, so that nothing of it can be another's.
func randomName() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// nextID names a check's things: no two checks, and no two runs, share a name on
// the runtime. It is part of labels and paths, so it has letters, digits and dashes alone.
func (r *suite) nextID() string { return fmt.Sprintf("%s-%d", r.name, r.ids.Add(1)) }

// addRecorder keeps a check's recorder for the cleanup: what a call made is
// removed even if the check never learned of it.
func (r *suite) addRecorder(rec *recorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorders = append(r.recorders, rec)
}

// runAll runs the checks, those that may at the same time first, and cleans up.
// Results keep the order of the list, whatever order checks end in. What was
// removed is looked for with a context that outlives the run's.
func (r *suite) runAll(parent context.Context, list []*check) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(parent, r.o.Timeout)
	defer cancel()
	results := make([]*Result, len(list))
	// Progress is told one at a time, so that its reader needs no lock.
	finish := func(i int, res Result) {
		r.mu.Lock()
		defer r.mu.Unlock()
		results[i] = &res
		r.o.Progress(res)
	}
	one := func(i int) {
		c := list[i]
		if ctx.Err() != nil {
			// Those that never began are reported all the same.
			finish(i, c.skipped(interrupted(ctx)))
			return
		}
		finish(i, r.runCheck(ctx, c))
	}
	var together, alone []int
	for i, c := range list {
		switch why := left(&r.o, c.name); {
		case why != "":
			finish(i, c.skipped(why))
		case c.alone || r.o.Parallel == 1:
			alone = append(alone, i)
		default:
			together = append(together, i)
		}
	}
	// The queue is full before a worker starts, so nobody waits to fill it.
	queue := make(chan int, len(together))
	for _, i := range together {
		queue <- i
	}
	close(queue)
	var workers []func()
	for range min(r.o.Parallel, len(together)) {
		workers = append(workers, func() {
			for i := range queue {
				one(i)
			}
		})
	}
	// Checks that must be alone, such as those that remove images, run when all
	// others are over.
	group(workers...)
	for _, i := range alone {
		one(i)
	}
	// By the end of ctx, or by the time limit.
	r.report.Interrupted = ctx.Err() != nil
	for _, res := range results {
		r.report.Results = append(r.report.Results, *res)
	}
	// Nothing ran, nothing can be left.
	if len(together)+len(alone) > 0 {
		res := r.leftovers(context.WithoutCancel(parent))
		r.o.Progress(res)
		r.report.Results = append(r.report.Results, res)
	}
	r.report.Seconds = time.Since(began).Seconds()
}

// skipped is the result of a check that is not run.
func (c *check) skipped(reason string) Result {
	return Result{Name: c.name, Level: c.level, Expected: c.expect, Status: Skipped, Reason: reason}
}
