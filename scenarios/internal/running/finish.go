package running

import (
	"fmt"
	"time"

	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/result"
)

// finish judges what is left, and fills in the result. early is a run that was cut
// short, which leaves expectations undecided. It is called once, whatever ended the run, so that
// the result always holds what was found out.
func (p *performance) finish(early bool) {
	res := p.result
	end := p.cluster.Now()
	// In real time a run ends early on purpose.
	early = early || end < p.s.Spec.Duration && p.opts.Real == nil // there nothing was left to decide
	verdicts := p.engine.Finish(end, early)
	if !early && p.opts.Real == nil {
		p.warnOfMissed()
	}
	res.Warnings = p.journal.warnings
	res.Passed = len(res.Errors) == 0 && !res.Interrupted
	for _, v := range verdicts {
		out := result.Verdict{Verdict: v}
		if v.Outcome == expect.Failed {
			res.Passed = false
			out.History = p.journal.nearby(v)
		}
		res.Verdicts = append(res.Verdicts, out)
	}
	if m := p.cluster.Metrics(); m != nil {
		res.Metrics = &result.Metrics{Metrics: *m}
	}
	if c := p.cluster.Census(); c != nil {
		res.Census = &result.Census{Census: *c}
		// A leak is what a node keeps of pods that are gone; who asked for the census wants to
		// fail by it.
		res.Passed = res.Passed && len(c.Leaks) == 0
	}
	if !res.Passed {
		// The kubelets' log lines are for failures only: thousands of lines of a run that passed
		// help nobody.
		res.Logs = p.journal.logs
	}
	if p.steady >= 0 {
		res.Summary.Wall.Steady = p.lap()
	} else {
		res.Summary.Wall.Startup = p.lap()
	}
	store := p.cluster.Store()
	res.Final = result.Final{Pods: store.Pods(), Nodes: store.Nodes(), Events: store.Events(), State: p.state, At: end}
	p.summarize(end)
}

// summarize counts what the run did and what it cost. Rates are by wall time and so differ
// between runs; everything else is the same in each run of a seed.
func (p *performance) summarize(end time.Duration) {
	c := p.cluster
	s := &p.result.Summary
	s.Nodes = len(c.Nodes())
	s.Pods = p.state.phases()
	s.LeasesRenewed, s.PodWrites, s.NodeWrites, s.Events = c.Writes()
	s.APIRequests = c.API().Requests()
	s.Syncs, s.Resyncs = c.Syncs()
	s.ProbesRun = c.Probes()
	s.Records = c.RecordCount()
	s.Steps = c.Steps()
	s.Hash = fmt.Sprintf("%016x", c.Hash())
	s.Virtual = end
	s.SteadyFrom = p.steady
	// Loading happened before Run was called.
	s.Wall.Load += p.opts.Loaded
	rate := func(virtual, wall time.Duration) float64 {
		if wall <= 0 {
			return 0
		}
		return float64(s.Nodes) * virtual.Seconds() / wall.Seconds()
	}
	s.NodeSecondsPerSecond = rate(end, s.Wall.Total())
	if p.steady >= 0 {
		s.SteadyNodeSecondsPerSecond = rate(end-p.steady, s.Wall.Steady)
	}
}
