package running

import (
	"context"
	"time"
)

// drive runs the cluster to the end. Whatever the timeline does, it does
// between runs of the engine, when no loop runs and all clocks show its time. In each round: what
// is due is done, expectations that are decided by time are judged, and the engine runs until the
// next item or the next look. The order of the first two lets an expectation "at 30s" see what an
// action did at 30s.
func (p *performance) drive(ctx context.Context) error {
	// A window is the span in which loops run without hearing of each other; between two, the run
	// can stop without leaving anything half done.
	p.cluster.Engine().OnWindow(func(time.Time, []int32) {
		if ctx.Err() != nil {
			p.cluster.Stop()
		}
	})
	p.engine.Begin()
	for {
		at := p.cluster.Now()
		if err := p.agenda.runDue(at); err != nil {
			return err
		}
		p.engine.Advance(at)
		p.noteSteady(at)
		if p.opts.Progress != nil {
			p.opts.Progress(p.progress(at))
		}
		if at >= p.end {
			return nil
		}
		if ctx.Err() != nil {
			p.result.Interrupted = true
			return nil
		}
		if err := p.cluster.RunUntil(min(p.agenda.next(), at+p.step(), p.end)); err != nil {
			return err
		}
	}
}

// step is how long to run until the next look at where the run stands, which
// takes time for each node. A look walks over all nodes; with a thousand of them once per virtual
// second it would be noticed.
func (p *performance) step() time.Duration {
	return max(time.Second, time.Duration(len(p.cluster.Nodes()))*time.Millisecond)
}

// progress is where the run stands.
func (p *performance) progress(at time.Duration) Progress {
	return Progress{Scenario: p.s.Metadata.Name, Now: at, Duration: p.end, Nodes: len(p.cluster.Nodes()), Ready: p.state.ready, Pods: p.state.phases(), Requests: p.cluster.API().Requests()}
}

// noteSteady notes when start-up is over: everything of the timeline was
// applied, every node is ready and no pod is pending. Only wall times depend on it, so it need
// not be exact: it is looked at between runs.
func (p *performance) noteSteady(at time.Duration) {
	if p.steady >= 0 || p.agenda.creations > 0 || !p.state.steady(len(p.cluster.Nodes())) {
		return
	}
	p.steady = at
	p.result.Summary.Wall.Startup = p.lap()
}

// lapReal is how often a run in real time looks whether everything is decided.
const lapReal = 100 * time.Millisecond

// driveReal is drive on the wall clock. It ends as soon as the timeline is done
// and every expectation is decided: nobody waits for what cannot matter. Against a machine
// outside there is no virtual time to save, and a suite of conformance runs many scenarios; that
// is why it ends early.
func (p *performance) driveReal(ctx context.Context) error {
	p.engine.Begin()
	for {
		at := p.cluster.Now()
		if err := p.agenda.runDue(at); err != nil {
			return err
		}
		p.engine.Advance(at)
		p.noteSteady(at)
		if at >= p.end || len(p.agenda.items) == 0 && p.engine.Decided() && len(p.s.Spec.Expect) > 0 {
			return nil
		}
		if ctx.Err() != nil {
			p.result.Interrupted = true
			return nil
		}
		if err := p.cluster.RunReal(ctx, min(p.agenda.next(), at+lapReal, p.end)); err != nil {
			return err
		}
	}
}
