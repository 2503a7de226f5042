package result

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/expect"
)

// Result is the outcome of one run of a scenario.
type Result struct {
	// Scenario is the scenario's name, File where it was loaded from.
	Scenario string `json:"scenario"`
	File     string `json:"file,omitempty"`
	// Seed repeats the run.
	Seed uint64 `json:"seed"`
	// Passed means that every expectation held, the run was not cut short, and a
	// census found no leak.
	Passed bool `json:"passed"`
	// Interrupted means that the run was stopped before its end; expectations
	// that were not decided by then are neither held nor failed.
	Interrupted bool `json:"interrupted,omitempty"`
	// Verdicts are those of the expectations, in the scenario's order.
	Verdicts []Verdict `json:"expectations"`
	// Warnings say what manifests ask for and is not acted on, each once.
	Warnings []string `json:"warnings,omitempty"`
	// Errors are what timeline actions failed with.
	Errors []string `json:"errors,omitempty"`
	// Summary is what the run came to.
	Summary Summary `json:"summary"`
	// Metrics and Census are there if the run's options asked for them.
	Metrics *Metrics `json:"metrics,omitempty"`
	Census  *Census  `json:"census,omitempty"`
	// Logs are the kubelets' log lines, kept if an expectation failed.
	Logs []string `json:"logs,omitempty"`
	// Repeat is the command that repeats the run.
	Repeat string `json:"repeat,omitempty"`
	// Final is the cluster at the end of the run.
	Final Final `json:"-"`
}

// Final is a cluster's API objects. They are shared and must not be changed.
type Final struct {
	Pods   []*v1.Pod
	Nodes  []*v1.Node
	Events []*v1.Event
	// State has the objects of all other kinds, and is what Judge asks; nil of a Final that
	// nobody filled in.
	State expect.State
	// At is the virtual time of the end.
	At time.Duration
}

// Objects are those of a kind of type T, in the order of their creation: Objects[*appsv1.Deployment](&result.Final).
func Objects[T any](f *Final) []T {
	for _, list := range []any{f.Pods, f.Nodes, f.Events} {
		if list, ok := list.([]T); ok {
			return list
		}
	}
	if f.State == nil {
		return nil
	}
	if list, ok := any(f.State.Leases()).([]T); ok {
		return list
	}
	for _, k := range expect.Kinds() {
		if list, ok := f.State.Objects(k).([]T); ok {
			return list
		}
	}
	return nil
}

// Judge evaluates an expression in CEL over the cluster at the end, as an expectation `at: end`
// has it. The error is what is wrong with the expression; what looks back (phases, transitions),
// at the runtime's calls or into machines is refused, since nothing of it is kept.
func (f *Final) Judge(expr string) (expect.Verdict, error) {
	c, err := expect.NewCompiler()
	if err != nil {
		return expect.Verdict{}, err
	}
	x, errs := c.Compile(expect.Source{Form: expect.At, T: f.At, Expr: expr})
	switch {
	case len(errs) > 0:
		return expect.Verdict{}, fmt.Errorf("line %d, column %d: %w", errs[0].Line, errs[0].Column, errs[0])
	case f.State == nil:
		return expect.Verdict{}, errors.New("the result has no final state")
	case x.NeedsCRICalls(), x.NeedsHistory(), x.NeedsMachines():
		return expect.Verdict{}, errors.New("what was before, calls of the runtime and machines are for expectations: at the end nobody has kept them")
	}
	e := expect.New([]*expect.Expectation{x}, f.State, expect.Options{})
	e.Begin()
	return e.Finish(f.At, false)[0], nil
}

// Verdict is that of one expectation, with the history of what it is about if
// it failed.
type Verdict struct {
	expect.Verdict
	// History is the nearby part of the timeline, oldest line first.
	History []string `json:"history,omitempty"`
}

// Summary counts what a run did and what it cost.
type Summary struct {
	Nodes int `json:"nodes"`
	// Pods counts the API's pods at the end by phase.
	Pods map[string]int `json:"pods"`
	// LeasesRenewed counts the writes of leases, PodWrites and NodeWrites those
	// of pods and nodes, Events those of events, APIRequests all requests.
	LeasesRenewed uint64 `json:"leasesRenewed"`
	PodWrites     uint64 `json:"podWrites"`
	NodeWrites    uint64 `json:"nodeWrites"`
	Events        uint64 `json:"events"`
	APIRequests   uint64 `json:"apiRequests"`
	// Syncs counts the runs of pod workers, Resyncs those of them that a
	// resync timer began, ProbesRun the probes.
	Syncs     uint64 `json:"syncs"`
	Resyncs   uint64 `json:"resyncs"`
	ProbesRun uint64 `json:"probesRun"`
	// Records is the length of the trace, Steps those of all loops.
	Records uint64 `json:"records"`
	Steps   uint64 `json:"steps"`
	// Hash is that of the whole trace, 16 hexadecimal digits.
	Hash string `json:"hash"`
	// Virtual is how much virtual time passed, SteadyFrom when the nodes were
	// ready and no pod was pending any more (negative: never).
	Virtual    time.Duration `json:"-"`
	SteadyFrom time.Duration `json:"-"`
	Wall       WallTime      `json:"wall"`
	// NodeSecondsPerSecond is nodes times virtual seconds by wall seconds: of
	// the whole run, and of its steady part (0: there was none).
	NodeSecondsPerSecond       float64 `json:"nodeSecondsPerSecond"`
	SteadyNodeSecondsPerSecond float64 `json:"steadyNodeSecondsPerSecond"`
}

// WallTime is where the wall clock's time went.
type WallTime struct {
	// Load is from the file to a cluster that can run, Startup until the
	// steady state, Steady from there to the end.
	Load    time.Duration
	Startup time.Duration
	Steady  time.Duration
}

// Total is the sum.
func (w WallTime) Total() time.Duration { return w.Load + w.Startup + w.Steady }
