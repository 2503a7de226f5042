package running

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/result"
	"github.com/drydock-sim/drydock/sim"
)

// Options say how a scenario is run. The zero value runs it as it stands. What is chosen here
// never changes what happens in the run, but for Seed, Start, Until and TraceReads.
type Options struct {
	// Seed replaces the scenario's seed.
	Seed *uint64
	// Start is the virtual time at which the run begins. Zero means loop.Epoch.
	Start time.Time
	// Workers is how many cores are used. Zero means GOMAXPROCS. The outcome
	// never depends on it.
	Workers int
	// Until ends the run early, at that virtual time; expectations that are
	// not decided by then stay undecided. Zero means the scenario's duration.
	Until time.Duration
	// Timeline takes the readable timeline; nil writes none. Errors of writing end up as the
	// run's error, at its end.
	Timeline io.Writer
	// Verbose has everything in the timeline, also above ManyPods pods, and
	// the kubelets' log lines.
	Verbose bool
	// Only has the timeline show only what is about these objects and what they own: "pod/web"
	// in the namespace default, "deployment/prod/web", "node/n1", with * and ?. Steps are
	// counted all the same.
	Only []string
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
	// Elision is what the run does with work that would do nothing new: it leaves
	// it out, unless it is loop.NoElide; loop.CheckElision has the run fail where
	// something changed of which nobody told.
	Elision loop.ElisionMode
	// Attach, if any, is called with the cluster before its nodes are added, for
	// whoever wants to collect something of the run.
	Attach func(*sim.Cluster)
	// Progress is called now and then while the scenario runs; nil means never.
	Progress func(Progress)
}

// Real has a scenario run in real time, its node being a machine outside. Only
// a scenario with Spec.Conformance can run so.
type Real struct {
	// Loop, one of loop.NewReal, is the run's alone; the run closes it.
	Loop *loop.Loop
	// Host is the scenario's node.
	Host *sim.Host
}

// Progress is where a run stands.
type Progress struct {
	Scenario      string
	Now, Duration time.Duration
	Wall          time.Duration
	Nodes, Ready  int
	Pods          map[string]int
	// Requests have arrived at the API.
	Requests uint64
}

// ManyPods is the number of pods above which a timeline shows only actions,
// faults, changes of nodes and failures.
const ManyPods = 100

// performance is one run of a scenario: the cluster, what the timeline still has
// to do to it, and those who watch. It is used once.
type performance struct {
	s       *document.Scenario
	opts    Options
	seed    uint64
	end     time.Duration
	cluster *sim.Cluster
	agenda  agenda
	journal journal
	engine  *expect.Engine
	state   *state
	// timer judges what becomes due while the engine runs.
	timer  *loop.Timer
	result *result.Result
	// steady is when start-up was over; negative before.
	steady time.Duration
	wallAt time.Time
	// endless: a session's.
	endless bool
	// watchdog is the engine's.
	watchdog time.Duration
	// atEnd is looked at when the run has come to its end.
	atEnd  []func()
	missed *missed
}

// Run runs a scenario and judges its expectations. The error is an internal
// one (a panic in a task, a trace that can't be written); the result then holds
// what there is. A ctx that ends stops the run, which is then marked as
// interrupted. A scenario may be run many times, also at once. The scenario itself is only read,
// so runs may share it.
func Run(ctx context.Context, s *document.Scenario, opts Options) (*result.Result, error) {
	p := &performance{s: s, opts: opts, seed: s.Spec.Seed, end: s.Spec.Duration, steady: -1}
	if opts.Seed != nil {
		p.seed = *opts.Seed
	}
	if opts.Until > 0 {
		p.end = min(opts.Until, s.Spec.Duration)
	}
	p.result = &result.Result{Scenario: s.Metadata.Name, File: s.Pos.File, Seed: p.seed}
	p.result.Repeat = fmt.Sprintf("drydock run %s --focus '^%s$' --seed %d", s.Pos.File, s.Metadata.Name, p.seed)
	p.wallAt = p.now()
	if opts.Real != nil && s.Spec.Conformance == nil {
		// The run owns the loop from the moment it was handed over, also when it refuses to run.
		opts.Real.Loop.Close()
		return p.result, fmt.Errorf("scenario %s: is not marked for conformance, so it cannot run in real time", s.Metadata.Name)
	}
	if err := p.build(); err != nil {
		if opts.Real != nil {
			opts.Real.Loop.Close()
		}
		return p.result, fmt.Errorf("scenario %s: %w", s.Metadata.Name, err)
	}
	defer p.cluster.Close()
	drive := p.drive
	if opts.Real != nil {
		drive = p.driveReal
	}
	err := drive(ctx)
	// A run that failed inside leaves expectations open, like one that was stopped: their
	// verdicts would be guesses.
	p.finish(err != nil || p.result.Interrupted)
	if jerr := p.journal.close(); err == nil {
		err = jerr
	}
	if err != nil {
		p.result.Passed = false
		return p.result, fmt.Errorf("scenario %s (seed %d): %w", s.Metadata.Name, p.seed, err)
	}
	return p.result, nil
}

// now is the wall clock's time, if there is one.
func (p *performance) now() time.Time {
	if p.opts.Clock == nil {
		return time.Time{}
	}
	return p.opts.Clock()
}

// lap returns the wall time since the last lap. Laps follow each other without gaps, so that the
// parts of the wall time add up to the whole.
func (p *performance) lap() time.Duration {
	now := p.now()
	d := now.Sub(p.wallAt)
	p.wallAt = now
	return d
}
