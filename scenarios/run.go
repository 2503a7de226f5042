package scenarios

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/sim"
)

// RunOptions say how a scenario is run. The zero value runs it as it stands.
type RunOptions struct {
	// Seed replaces the scenario's seed.
	Seed *uint64
	// Workers is how many cores are used. Zero means GOMAXPROCS. The outcome
	// never depends on it.
	Workers int
	// Until ends the run early, at that virtual time; expectations that are
	// not decided by then stay undecided. Zero means the scenario's duration.
	Until time.Duration
	// Timeline takes the readable timeline; nil writes none.
	Timeline io.Writer
	// Verbose has everything in the timeline, also above ManyPods pods, and
	// the kubelets' log lines.
	Verbose bool
	// Trace takes every record as a line of JSON; nil writes none.
	Trace io.Writer
	// TraceReads has CRI calls that only read recorded too. They are hashed
	// then, so the hash differs from that of a run without.
	TraceReads bool
	// Clock is the wall clock, to tell where the time went. Nil leaves the
	// summary's wall times zero.
	Clock func() time.Time
	// Loaded is how long loading took, for the summary.
	Loaded time.Duration
	// Real has the scenario run in real time against a machine outside. Seed
	// should then be one that no other run on that machine has, since pods' UIDs
	// are drawn from it.
	Real *Real
	// Metrics has the result tell what was done to pods and nodes, Census what
	// nodes keep of pods that are gone: then a leak fails the run.
	Metrics, Census bool
	// Attach, if any, is called with the cluster before its nodes are added, for
	// whoever wants to collect something of the run.
	Attach func(*sim.Cluster)
	// Progress is called now and then while the scenario runs; nil means never.
	Progress func(Progress)
}

// ManyPods is the number of pods above which a timeline shows only actions,
// faults, changes of nodes and failures.
const ManyPods = 100

// maxLogs bounds the kubelet log lines that are kept for a failed scenario.
const maxLogs = 2000

// run is one run of a scenario.
type run struct {
	s       *Scenario
	opts    RunOptions
	seed    uint64
	end     time.Duration
	many    bool
	cluster *sim.Cluster
	engine  *expect.Engine
	state   *state
	agenda  agenda
	timer   deadline
	result  *Result
	history []line
	logs    []string
	line    *Timeline
	jsonl   *trace.JSONWriter
	warned  map[string]bool
	steady  steadiness
	wallAt  time.Time
}

// line is a kept record with its step number.
type line struct {
	step int
	r    *trace.Record
}

// Run runs the scenario and judges its expectations. The error is an internal
// one (a panic in a task, a trace that can't be written); the result then holds
// what there is. A ctx that ends stops the run, which is then marked as
// interrupted. A scenario may be run many times, also at once.
func (s *Scenario) Run(ctx context.Context, opts RunOptions) (*Result, error) {
	r := &run{s: s, opts: opts, seed: s.Spec.Seed, end: s.Spec.Duration, warned: map[string]bool{}}
	if opts.Seed != nil {
		r.seed = *opts.Seed
	}
	if opts.Until > 0 {
		r.end = min(opts.Until, s.Spec.Duration)
	}
	r.result = &Result{Scenario: s.Metadata.Name, File: s.Pos.File, Seed: r.seed}
	r.result.Repeat = fmt.Sprintf("drydock run %s --focus '^%s$' --seed %d", s.Pos.File, s.Metadata.Name, r.seed)
	r.wallAt = r.now()
	r.many = s.podCount() > ManyPods
	if opts.Real != nil && s.Spec.Conformance == nil {
		opts.Real.Loop.Close()
		return r.result, fmt.Errorf("scenario %s: is not marked for conformance, so it cannot run in real time", s.Metadata.Name)
	}
	if err := r.build(); err != nil {
		if opts.Real != nil {
			opts.Real.Loop.Close()
		}
		return r.result, fmt.Errorf("scenario %s: %w", s.Metadata.Name, err)
	}
	defer r.cluster.Close()
	drive := r.drive
	if opts.Real != nil {
		drive = r.driveReal
	}
	err := drive(ctx)
	r.finish(err != nil || r.result.Interrupted)
	if r.jsonl != nil {
		if werr := r.jsonl.Close(); err == nil && werr != nil {
			err = fmt.Errorf("writing the trace: %w", werr)
		}
	}
	if r.line.err != nil && err == nil {
		err = fmt.Errorf("writing the timeline: %w", r.line.err)
	}
	if err != nil {
		r.result.Passed = false
		return r.result, fmt.Errorf("scenario %s (seed %d): %w", s.Metadata.Name, r.seed, err)
	}
	return r.result, nil
}

func (r *run) now() time.Time {
	if r.opts.Clock == nil {
		return time.Time{}
	}
	return r.opts.Clock()
}

// lap returns the wall time since the last lap.
func (r *run) lap() time.Duration {
	now := r.now()
	d := now.Sub(r.wallAt)
	r.wallAt = now
	return d
}

// drive runs the cluster to the end. Whatever the timeline does, it does
// between runs of the engine, when no loop runs and all clocks show its time.
func (r *run) drive(ctx context.Context) error {
	r.cluster.Engine().OnWindow(func(time.Time, []int32) {
		if ctx.Err() != nil {
			r.cluster.Stop()
		}
	})
	r.engine.Begin()
	for {
		at := r.cluster.Now()
		if err := r.agenda.runDue(at); err != nil {
			return err
		}
		r.engine.Advance(at)
		r.noteSteady(at)
		if r.opts.Progress != nil {
			r.opts.Progress(r.progress(at))
		}
		if at >= r.end {
			return nil
		}
		if ctx.Err() != nil {
			r.result.Interrupted = true
			return nil
		}
		if err := r.cluster.RunUntil(min(r.agenda.next(), at+r.step(), r.end)); err != nil {
			return err
		}
	}
}

// step is how long to run until the next look at where the run stands, which
// takes time for each node.
func (r *run) step() time.Duration {
	return max(time.Second, time.Duration(len(r.cluster.Nodes()))*time.Millisecond)
}

func (r *run) progress(at time.Duration) Progress {
	return Progress{Scenario: r.s.Metadata.Name, Now: at, Duration: r.end, Nodes: len(r.cluster.Nodes()), Ready: r.state.ready, Pods: r.state.phases(), Requests: r.cluster.API().Requests()}
}

// noteSteady notes when start-up is over: everything of the timeline was
// applied, every node is ready and no pod is pending.
func (r *run) noteSteady(at time.Duration) {
	if r.steady.reached || r.agenda.applies > 0 || !r.state.steady(len(r.cluster.Nodes())) {
		return
	}
	r.steady.reached, r.steady.at = true, at
	r.result.Summary.Wall.Startup = r.lap()
}

type steadiness struct {
	reached bool
	at      time.Duration
}

// take is called with every kept record, in order.
func (r *run) take(rec *trace.Record) {
	if !r.keep(rec.Kind, rec.Verb, rec.Fields) {
		return // somebody else's: of metrics, a report
	}
	if r.jsonl != nil {
		r.jsonl.Write(rec)
	}
	if rec.Kind == trace.KindWarning {
		r.warn(rec.Verb)
		return
	}
	if rec.Kind == trace.KindLog {
		if len(r.logs) == maxLogs {
			r.logs = append(r.logs[:0], r.logs[maxLogs/2:]...)
		}
		r.logs = append(r.logs, formatTime(rec.At-r.cluster.Start().UnixNano())+"  "+rec.Node+"  "+rec.Verb)
		if !r.opts.Verbose {
			return
		}
	}
	r.state.record(rec)
	if r.line.Take(rec) {
		r.history = append(r.history, line{r.line.step, rec})
	}
}

// keep says which records are worth making.
func (r *run) keep(kind trace.Kind, verb string, fields []trace.Field) bool {
	switch {
	case kind == trace.KindLog, kind == trace.KindWarning:
		return true
	case r.opts.Trace != nil, !r.many, r.opts.Verbose:
		return true
	case kind == trace.KindCRI && r.state.wantsCalls:
		return true
	}
	return notable(kind, verb, fields)
}

// notable tells what a timeline of many pods shows.
func notable(kind trace.Kind, verb string, fields []trace.Field) bool {
	switch kind {
	case trace.KindAction, trace.KindFault, trace.KindNode, trace.KindKubelet:
		return true
	case trace.KindPod:
		return fieldOf(fields, "phase") == "Failed"
	case trace.KindEvent:
		return fieldOf(fields, "type") == "Warning"
	case trace.KindCRI:
		return fieldOf(fields, "error") != ""
	}
	return false
}

// shown says which kept records become lines of the timeline.
func (r *run) shown(rec *trace.Record) bool {
	switch rec.Kind {
	case trace.KindLog, trace.KindCRIRead:
		return r.opts.Verbose
	case trace.KindAPI:
		// Leases and status writes say little; what they change has kinds of
		// its own. One that takes the last finalizer removes the object.
		return r.opts.Verbose || rec.Verb != "update" && rec.Verb != "patch" || fieldOf(rec.Fields, "removed") != ""
	}
	return !r.many || r.opts.Verbose || notable(rec.Kind, rec.Verb, rec.Fields)
}

func (r *run) finish(early bool) {
	res := r.result
	end := r.cluster.Now()
	early = early || end < r.s.Spec.Duration && r.opts.Real == nil // there nothing was left to decide
	verdicts := r.engine.Finish(end, early)
	res.Passed = len(res.Errors) == 0 && !res.Interrupted
	for _, v := range verdicts {
		out := Verdict{Verdict: v}
		if v.Outcome == expect.Failed {
			res.Passed = false
			out.History = r.nearby(v)
		}
		res.Verdicts = append(res.Verdicts, out)
	}
	if m := r.cluster.Metrics(); m != nil {
		res.Metrics = &Metrics{*m}
	}
	if c := r.cluster.Census(); c != nil {
		res.Census = &Census{*c}
		res.Passed = res.Passed && len(c.Leaks) == 0
	}
	if !res.Passed {
		res.Logs = r.logs
	}
	if r.steady.reached {
		res.Summary.Wall.Steady = r.lap()
	} else {
		res.Summary.Wall.Startup = r.lap()
	}
	store := r.cluster.Store()
	res.Final = Final{Pods: store.Pods(), Nodes: store.Nodes(), Events: store.Events()}
	r.summarize(end)
}

// nearbyLines is how many lines of history a failed expectation gets.
const nearbyLines = 15

// nearby returns the last lines before a verdict that are about its objects,
// or, if there are none, about anything.
func (r *run) nearby(v expect.Verdict) []string {
	start := r.cluster.Start().UnixNano()
	about := func(l line) bool {
		for _, o := range v.Objects {
			if mentions(l.r, o) {
				return true
			}
		}
		return len(v.Objects) == 0
	}
	var out []string
	var told seen
	last := &trace.Record{}
	for _, l := range r.history {
		if time.Duration(l.r.At-start) > v.At {
			break
		}
		if about(l) && l.r.Verb != "ReopenContainerLog" { // of logs that grow, every ten seconds
			if l.r.Kind == trace.KindEvent && last.Kind == l.r.Kind && last.Verb == l.r.Verb && last.Object == l.r.Object {
				out = out[:len(out)-1] // the same event again, with how often
			}
			out = append(out, told.line(l.step, start, l.r))
			last = l.r
		}
		told.note(l.r)
	}
	return out[max(0, len(out)-nearbyLines):]
}

func (r *run) summarize(end time.Duration) {
	c := r.cluster
	s := &r.result.Summary
	s.Nodes = len(c.Nodes())
	s.Pods = r.state.phases()
	s.LeasesRenewed, s.PodWrites, s.NodeWrites, s.Events = c.Writes()
	s.APIRequests = c.API().Requests()
	s.Syncs, s.Resyncs = c.Syncs()
	s.ProbesRun = c.Probes()
	s.Records = c.RecordCount()
	s.Steps = c.Steps()
	s.Hash = fmt.Sprintf("%016x", c.Hash())
	s.Virtual = end
	s.SteadyFrom = -1
	if r.steady.reached {
		s.SteadyFrom = r.steady.at
	}
	s.Wall.Load += r.opts.Loaded
	rate := func(virtual, wall time.Duration) float64 {
		if wall <= 0 {
			return 0
		}
		return float64(s.Nodes) * virtual.Seconds() / wall.Seconds()
	}
	s.NodeSecondsPerSecond = rate(end, s.Wall.Total())
	if r.steady.reached {
		s.SteadyNodeSecondsPerSecond = rate(end-r.steady.at, s.Wall.Steady)
	}
}
