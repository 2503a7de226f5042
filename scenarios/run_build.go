package scenarios

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// build puts the cluster together and enters the timeline into the agenda.
func (r *run) build() error {
	spec := &r.s.Spec
	lat := Range{}
	if spec.API.Latency != nil {
		lat = *spec.API.Latency
	}
	compiled := make([]*expect.Expectation, len(spec.Expect))
	r.state = &state{phase: map[v1.PodPhase]int{}}
	for i := range spec.Expect {
		compiled[i] = spec.Expect[i].Compiled
		r.state.wantsCalls = r.state.wantsCalls || compiled[i].NeedsCRICalls()
	}
	var real *loop.Loop
	if r.opts.Real != nil {
		real = r.opts.Real.Loop
	}
	c, err := sim.New(sim.Options{
		Seed: r.seed, Loop: real, Workers: r.opts.Workers,
		APILatencyMin: lat.Min, APILatencyMax: lat.Max, APILoad: spec.API.Load.options(), EventLimits: spec.API.EventRateLimit.options(),
		Keep: r.keep, TraceReads: r.opts.TraceReads,
		ControlPlane: spec.ControlPlane.options(),
		KubeletLogs:  true, Metrics: r.opts.Metrics, Census: r.opts.Census,
	})
	if err != nil {
		return err
	}
	r.cluster = c
	r.state.cluster, r.state.store, r.state.start = c, c.Store(), c.Start()
	r.line = newTimeline(r.opts.Timeline, c.Start(), r.shown, r.opts.Verbose)
	if r.opts.Trace != nil {
		r.jsonl = trace.NewJSONWriter(r.opts.Trace, c.Start())
	}
	c.Records(r.take)
	if r.opts.Attach != nil {
		r.opts.Attach(c)
	}
	r.engine = expect.New(compiled, r.state, expect.Options{})
	r.watch()
	if err := r.addNodes(); err != nil {
		return err
	}
	for i := range spec.API.Faults {
		r.apiFault(&spec.API.Faults[i], []string{""})
	}
	for i := range spec.Timeline {
		a := &spec.Timeline[i]
		r.agenda.add(a.At, a.Apply != nil || a.Template != nil, func() error { return r.act(a) })
	}
	// The runtime's calls are known up to the last flush of records, so what
	// judges them looks between runs.
	for _, x := range compiled {
		if x.Form == expect.At && x.T != expect.End {
			r.agenda.add(x.T, false, func() error { return nil })
		}
	}
	r.result.Summary.Wall.Load = r.lap()
	return nil
}

func (r *run) addNodes() error {
	spec := &r.s.Spec
	if r.opts.Real == nil {
		r.warnOfKubelets()
	}
	restart := 10 * time.Second
	if k := spec.KubeletRestart; k != nil {
		if restart = k.After; k.Never {
			restart = -1
		}
	}
	images, programs := fakeImages(spec.Images), fakePrograms(spec.Programs)
	for i := range spec.Nodes {
		g := &spec.Nodes[i]
		for _, name := range g.NodeNames() {
			var host *sim.Host
			if r.opts.Real != nil {
				host = r.opts.Real.Host
			}
			_, err := r.cluster.AddNode(sim.NodeOptions{
				Host: host,
				Name: name, Labels: g.Labels, Taints: g.Taints, Capacity: g.Capacity, Topology: g.machineTopology(), Kubelet: g.Kubelet,
				KubeletRestart: restart,
				Filesystems:    simFilesystems(g), Usage: g.Usage.machine(),
				Swap: amountOf(g.Swap), PIDMax: int64(ptr.Deref(g.PIDMax, 0)), ThreadsMax: int64(ptr.Deref(g.ThreadsMax, 0)), InhibitDelay: g.InhibitDelay,
				Runtime: fakecri.Options{
					Name: g.Runtime.Name, Version: g.Runtime.Version, CgroupDriver: g.Runtime.CgroupDriver, Latency: fakeLatency(g.Runtime.Latency),
					OnlyListedImages: g.Runtime.OnlyListedImages, Images: images, Programs: programs,
				},
			})
			if err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			for _, sp := range g.StaticPods {
				r.cluster.Node(name).WriteStaticPod(sp.File, sp.Manifest.Content)
			}
		}
	}
	return nil
}

// warn keeps a warning, each text once.
func (r *run) warn(text string) {
	if !r.warned[text] {
		r.warned[text] = true
		r.result.Warnings = append(r.result.Warnings, text)
	}
}

// podCount is how many pods the scenario's timeline creates.
func (s *Scenario) podCount() int {
	n := 0
	for i := range s.Spec.Timeline {
		a := &s.Spec.Timeline[i]
		switch {
		case a.Apply != nil:
			for _, o := range a.Apply.Objects {
				n += s.podsOf(o.Object)
			}
		case a.Template != nil && a.Template.Replicas != nil:
			n += *a.Template.Replicas
		case a.Template != nil && a.Template.PerNode != nil:
			n += *a.Template.PerNode * len(s.NodeNames())
		}
	}
	for i := range s.Spec.Nodes {
		n += len(s.Spec.Nodes[i].StaticPods) * len(s.Spec.Nodes[i].NodeNames())
	}
	return n
}

func fakeRange(r *Range) fakecri.Range {
	if r == nil {
		return fakecri.Range{}
	}
	return fakecri.Range{Min: r.Min, Max: r.Max}
}

func fakeLatency(in map[string]Range) map[string]fakecri.Range {
	out := make(map[string]fakecri.Range, len(in))
	for m, r := range in { //drydock:unordered each key is set once
		out[m] = fakeRange(&r)
	}
	return out
}

func fakeImages(in []Image) []fakecri.Image {
	out := make([]fakecri.Image, 0, len(in))
	for i := range in {
		im := &in[i]
		f := fakecri.Image{
			Name: im.Name, Aliases: im.Aliases, Pull: fakeRange(im.Pull.Takes), Present: im.Present, Pinned: im.Pinned,
			Commands: im.Commands, Entrypoint: im.Entrypoint, Cmd: im.Cmd,
			User: im.User, WorkingDir: im.WorkingDir, StopSignal: int(im.StopSignal),
		}
		for _, name := range sortedKeys(im.Env) {
			f.Env = append(f.Env, name+"="+im.Env[name])
		}
		f.Size, f.Unpacked, f.Inodes = amountOf(im.Size), amountOf(im.Unpacked), amountOf(im.Inodes)
		if a := im.Auth; a != nil {
			f.Auth = &fakecri.ImageAuth{Username: a.Username, Password: a.Password}
		}
		if p := im.Pull.Fails; p != nil {
			f.Fail = &fakecri.PullFailure{Code: p.Code, Message: p.Message, Times: p.Times, After: fakeRange(im.Pull.Takes)}
		}
		out = append(out, f)
	}
	return out
}

func fakePrograms(in []Program) []fakecri.Program {
	out := make([]fakecri.Program, 0, len(in))
	for i := range in {
		p := &in[i]
		f := fakecri.Program{
			Match:     fakecri.Match{Namespace: p.Match.Namespace, Pod: p.Match.Pod, Container: p.Match.Container, Image: p.Match.Image},
			Behaviour: fakeBehaviour(&p.Behaviour),
		}
		for k := range p.Attempts {
			f.Attempts = append(f.Attempts, fakeBehaviour(&p.Attempts[k]))
		}
		out = append(out, f)
	}
	return out
}

func fakeBehaviour(b *Behaviour) fakecri.Behaviour {
	out := fakecri.Behaviour{
		RunFor: fakeRange(b.RunFor), ExitCode: b.Exit, ExitCodes: b.Exits, Signal: int(b.Signal),
		OOMKilled: b.OOMKilled, StartError: b.StartError,
		OnTerm: fakecri.OnTerm{Exit: b.OnTerm.Exit, After: fakeRange(b.OnTerm.After), Ignore: b.OnTerm.Ignore, Unhandled: b.OnTerm.Unhandled},
		Memory: b.Memory.curve(), CPU: b.CPU.curve(), Processes: b.Processes.curve(), LogBytes: b.LogBytes.curve(),
	}
	for _, w := range b.Writes {
		out.Writes = append(out.Writes, fakecri.Write{Path: w.Path, Bytes: w.Bytes.curve(), Inodes: w.Inodes.curve()})
	}
	for _, l := range b.Logs {
		out.Logs = append(out.Logs, fakecri.LogLine{At: l.After, Every: l.Every, Count: l.Count, Stream: l.Stream, Text: l.Line})
	}
	fakeAnswers(b, &out)
	return out
}

// fakeAnswers translates what a container says to those who ask it something.
func fakeAnswers(b *Behaviour, out *fakecri.Behaviour) {
	out.TerminationMessage = b.TerminationMessage
	if b.Ports != nil {
		out.Ports = make([]fakecri.Port, len(b.Ports))
	}
	for i := range b.Ports {
		p := &b.Ports[i]
		q := fakecri.Port{Port: p.Port, After: p.After, Until: p.Until, Latency: fakeRange(p.Latency)}
		for _, a := range p.HTTP {
			q.HTTP = append(q.HTTP, fakecri.HTTPAnswer(a))
		}
		for _, a := range p.GRPC {
			q.GRPC = append(q.GRPC, fakecri.GRPCAnswer(a))
		}
		out.Ports[i] = q
	}
	for i := range b.Exec {
		x := &b.Exec[i]
		out.Exec = append(out.Exec, fakecri.ExecRule{Command: x.Command, Exit: x.Exit, Output: x.Output, Takes: fakeRange(x.Takes), After: x.After, Until: x.Until})
	}
}

// removed tells whether a change is the end of an object.
func removed(c *apiserver.Change) bool { return c.Type == "DELETED" }
