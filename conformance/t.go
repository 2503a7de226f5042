//go:build linux

package conformance

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// T is one check while it runs. Its methods that fail or skip do not return. It
// is used by one goroutine at a time, but for Errorf in functions that group
// runs, each of which must not fail the check itself. Values that must be unlike any other's come
// from n.
type T struct {
	suite *suite
	rec   *recorder
	rt    runtimeapi.RuntimeServiceClient
	im    testImages
	// id tells this check's things from others'.
	id    string
	scope scope
	// n counts what the check has made, for names; came is what was wrong; undo runs at the end.
	n       int
	came    []string
	reason  string
	skipped bool
	history []string
	undo    []func(ctx context.Context)
}

// stop ends a check early. It is the value of a panic that runCheck recovers.
type stop struct{}

// Errorf says that something came that should not have. The check goes on.
func (t *T) Errorf(format string, args ...any) { t.came = append(t.came, fmt.Sprintf(format, args...)) }

// Fatalf is Errorf, and the end of the check.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	panic(stop{})
}

// Skipf ends the check without a verdict.
func (t *T) Skipf(format string, args ...any) {
	t.skipped, t.reason = true, fmt.Sprintf(format, args...)
	panic(stop{})
}

// must ends the check if a call that had to work has failed. The call's name begins the message.
func (t *T) must(err error, what string, args ...any) {
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(what, args...), describe(err))
	}
}

// orSkip is must for a method that runtimes may lack.
func (t *T) orSkip(err error, method string) {
	if status.Code(err) == codes.Unimplemented {
		t.Skipf("the runtime does not have %s (Unimplemented)", method)
	}
	t.must(err, "%s", method)
}

// describe is an error of a call: its code and its text.
func describe(err error) string {
	if st, ok := status.FromError(err); ok {
		return st.Code().String() + ": " + st.Message()
	}
	return err.Error()
}

// cleanup has fn called at the check's end, the last first, however it ends. fn gets a context
// that outlives the check's.
func (t *T) cleanup(fn func(ctx context.Context)) { t.undo = append(t.undo, fn) }

// cleanupTimeout bounds the cleanup of a check.
const cleanupTimeout = 30 * time.Second

// dir returns a directory for the check's files, which goes with it. Each call makes another.
func (t *T) dir() string {
	t.n++
	d := filepath.Join(t.suite.dir, "checks", fmt.Sprintf("%s-%d", t.id, t.n))
	if err := os.MkdirAll(d, 0o755); err != nil {
		t.Fatalf("a directory for the check: %v", err)
	}
	t.cleanup(func(context.Context) { _ = os.RemoveAll(d) })
	return d
}

// eventually calls fn until it returns "", at first often; what it returned last
// is the failure after the time limit. Runtimes may take their time over what is
// asked of them, and no check may depend on how fast a machine is: limits are
// generous and end only what hangs. It fails the check, and does not return, if the limit passes.
func (t *T) eventually(ctx context.Context, limit time.Duration, fn func() string) {
	// Often at first, because most things take milliseconds; seldom later,
	// because a slow runtime is not helped by being asked.
	deadline := time.Now().Add(limit)
	pause := 20 * time.Millisecond
	for {
		wrong := fn()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			t.Fatalf("after %v: %s", limit, wrong)
		}
		t.sleep(ctx, pause)
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// sleep waits; the end of ctx ends the check.
func (t *T) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Fatalf("%v", context.Cause(ctx))
	}
}

// runCheck runs a check and what it has to clean up. A failure that came of the
// run's end is no verdict: the check counts as skipped. Cleanup's own calls are not in the
// report, since they explain nothing.
func (r *suite) runCheck(ctx context.Context, c *check) (res Result) {
	began := time.Now()
	limit := cmp.Or(c.timeout, checkTimeout)
	// From the first call on: what a check made must be known even if it panics.
	rec := newRecorder()
	r.addRecorder(rec)
	id := r.nextID()
	t := &T{suite: r, rec: rec, rt: r.clients.rt, id: id, scope: scope{run: r.name}}
	t.im = testImages{r.clients.im, t}
	// The cause is what a check that hangs is reported with.
	cctx, cancel := context.WithTimeoutCause(recording(ctx, rec), limit, fmt.Errorf("the check took longer than %v", limit))
	func() {
		defer cancel()
		defer t.recover()
		c.run(cctx, t)
	}()
	rpcs, omitted := rec.last(reportRPCs) // before those of the cleanup
	// A run that was interrupted still removes what it made. The cleanup has a limit of its own.
	t.clean(recording(context.WithoutCancel(ctx), rec))
	res = Result{Name: c.name, Level: c.level, Expected: c.expect, Status: Passed, Came: t.came, History: t.history}
	switch {
	case len(t.came) > 0:
		res.Status = Failed
	// Its calls went wrong because the context had ended.
	case t.skipped:
		res.Status, res.Reason = Skipped, t.reason
	}
	if ctx.Err() != nil && res.Status == Failed {
		// What was cut short has not been judged.
		res.Status, res.Reason, res.Came = Skipped, interrupted(ctx), nil
	}
	if res.Status != Skipped {
		res.RPCs, res.Omitted = rpcs, omitted
	}
	res.Duration = time.Since(began)
	res.Seconds = res.Duration.Seconds()
	return res
}

// interrupted says why a run ended before its time.
func interrupted(ctx context.Context) string {
	if context.Cause(ctx) == context.DeadlineExceeded {
		return "the run's time was over (--timeout)"
	}
	return "interrupted"
}

// recover takes the end of a check, and a panic of it.
func (t *T) recover() {
	switch v := recover(); v.(type) {
	case nil, stop:
	default:
		t.Errorf("internal error: the check panicked: %v, at %s", v, where(string(debug.Stack())))
	}
}

// where is the first line of a stack that is this package's. The report names the line, as nobody
// reads stacks there.
func where(stack string) string {
	for _, l := range strings.Split(stack, "\n") {
		if i := strings.LastIndex(l, "/conformance/"); i >= 0 && !strings.Contains(l, "/t.go") && strings.Contains(l, ".go:") {
			l, _, _ = strings.Cut(l[i+1:], " ")
			return l
		}
	}
	return "an unknown place"
}

// clean undoes what the check did. First what the check registered, the last
// first; then every sandbox and container that it made, as its recorder has them.
func (t *T) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	// Each on its own: one that fails must not keep the others from running.
	for i := len(t.undo) - 1; i >= 0; i-- {
		func() {
			defer t.recover()
			t.undo[i](ctx)
		}()
	}
	sandboxes, containers := t.rec.made()
	t.suite.remove(ctx, sandboxes, containers)
}

// group runs the functions at once and waits for them. It is for checks of what
// happens at once. A panic in one of them would end the process, so they only note what came.
func group(fns ...func()) {
	var wg sync.WaitGroup
	for _, fn := range fns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			fn()
		}()
	}
	wg.Wait()
}
