package running

import (
	"context"
	"time"
)

// drive runs the cluster to the end. Whatever the timeline does, it does
// between runs of the engine, when no loop runs and all clocks show its time.
func (p *performance) drive(ctx context.Context) error {
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
// takes time for each node.
func (p *performance) step() time.Duration {
	return max(time.Second, time.Duration(len(p.cluster.Nodes()))*time.Millisecond)
}

// progress is where the run stands.
func (p *performance) progress(at time.Duration) Progress {
	return Progress{Scenario: p.s.Metadata.Name, Now: at, Duration: p.end, Nodes: len(p.cluster.Nodes()), Ready: p.state.ready, Pods: p.state.phases(), Requests: p.cluster.API().Requests()}
}

// noteSteady notes when start-up is over: everything of the timeline was
// applied, every node is ready and no pod is pending.
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
// and every expectation is decided: nobody waits for what cannot matter.
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
