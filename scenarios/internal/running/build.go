package running

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// build puts the cluster together and enters the timeline into the agenda. The order:
// expectations are compiled when the scenario is loaded; here the cluster comes first, then who
// watches it, then the nodes, so that nothing of the nodes' beginning is missed. Faults that the
// API has from the start begin after the nodes were added and before time runs.
func (p *performance) build() error {
	spec := &p.s.Spec
	lat := value.Range{}
	if spec.API.Latency != nil {
		lat = *spec.API.Latency
	}
	compiled := make([]*expect.Expectation, len(spec.Expect))
	p.state = &state{phase: map[v1.PodPhase]int{}, kinds: expectKinds()}
	for i := range spec.Expect {
		if compiled[i] = spec.Expect[i].Compiled; compiled[i] == nil {
			return fmt.Errorf("expect[%d] was never compiled, because the scenario was built in Go and not loaded; write it as YAML and use scenarios.Parse", i)
		}
		p.state.wantsCalls = p.state.wantsCalls || compiled[i].NeedsCRICalls()
	}
	// Whether a record is kept is asked by the cluster for each record that might be made; a run
	// of a thousand nodes makes most of its records for nobody.
	p.journal = journal{opts: &p.opts, many: p.s.PodCount() > ManyPods, calls: p.state.wantsCalls, endless: p.endless, warned: map[string]bool{}}
	var real *loop.Loop
	if p.opts.Real != nil {
		real = p.opts.Real.Loop
	}
	control, err := spec.ControlPlane.Options()
	if err != nil {
		return err
	}
	control.Warn, control.Closed = p.journal.warn, !p.endless && p.opts.Real == nil
	c, err := sim.New(sim.Options{
		Seed: p.seed, Loop: real, Start: p.opts.Start, Workers: p.opts.Workers,
		APILatencyMin: lat.Min, APILatencyMax: lat.Max, APILoad: spec.API.Load.Options(), APIGates: spec.API.Gates(), EventLimits: spec.API.EventRateLimit.Options(),
		Keep: p.journal.keep, TraceReads: p.opts.TraceReads,
		ControlPlane: control,
		KubeletLogs:  true, Metrics: p.opts.Metrics, Census: p.opts.Census, Elision: p.opts.Elision,
		Watchdog: p.watchdog,
	})
	if err != nil {
		return err
	}
	p.cluster = c
	p.state.cluster, p.state.Store, p.state.start = c, c.Store(), c.Start()
	p.journal.open(c.Start())
	c.Records(func(r *trace.Record) { p.journal.take(r, p.state.record) })
	if p.opts.Attach != nil {
		p.opts.Attach(c)
	}
	p.engine = expect.New(compiled, p.state, expect.Options{})
	p.watch()
	p.watchNamed()
	p.warnOfClaims()
	if err := p.addStorage(); err != nil {
		return err
	}
	if err := p.addNodes(); err != nil {
		return err
	}
	for i := range spec.API.Faults {
		spec.API.Faults[i].Begin(stage{p, fmt.Sprintf("%s: spec.api.faults[%d]", p.s.Pos.File, i)}, "")
	}
	for i := range spec.Timeline {
		a := &spec.Timeline[i]
		_, creates := a.Does.(action.Creator)
		p.agenda.add(a.At, creates, func() error {
			p.act(a)
			return nil
		})
	}
	// The runtime's calls are known up to the last flush of records, so what
	// judges them looks between runs. An empty item makes the run stop at that time, and the
	// engine then looks (drive).
	for _, x := range compiled {
		if x.Form == expect.At && x.T != expect.End {
			p.agenda.add(x.T, false, func() error { return nil })
		}
	}
	p.result.Summary.Wall.Load = p.lap()
	return nil
}

// addNodes adds the nodes, group by group. Images and programs are converted once: all nodes
// share them.
func (p *performance) addNodes() error {
	spec := &p.s.Spec
	if p.opts.Real == nil {
		p.warnOfKubelets()
	}
	for _, what := range p.s.Notices {
		p.journal.warn(what)
	}
	restart := spec.KubeletRestart.After
	if spec.KubeletRestart.Never {
		// -1 is what sim takes for never; 0 would be its default.
		restart = -1
	}
	images, programs := document.RuntimeImages(spec.Images), document.RuntimePrograms(spec.Programs)
	for i := range spec.Nodes {
		g := &spec.Nodes[i]
		credentials, err := g.Credentials()
		if err != nil {
			return fmt.Errorf("nodes %s: %w", g.Name, err)
		}
		for _, name := range g.NodeNames() {
			o := g.Options()
			o.CredentialProviders = credentials
			o.Name, o.KubeletRestart, o.Host = name, restart, stage{p, ""}.Host()
			o.Runtime.Images, o.Runtime.Programs = images, programs
			if _, err := p.cluster.AddNode(o); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			g.StartPlugins(p.cluster.Node(name))
			for _, sp := range g.StaticPods {
				// The file is there before the kubelet first looks.
				p.cluster.Node(name).WriteStaticPod(sp.File, sp.Manifest.Content)
			}
		}
	}
	return nil
}
