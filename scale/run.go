package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// feed is where pods come from. A feed lives on the API's loop, but for behave,
// which nodes call on loops of their own: what that reads must not change once
// the run has begun. There may be two at once: a workload's pods beside a snapshot's. Their pods
// don't have the same names, and each answers behave for its own.
type feed interface {
	// prepare is called once the nodes are there, before the run.
	prepare() error
	// begin creates, or begins to create, the pods wanted at first. It is called
	// between runs of the engine, as is steady, once these have started.
	begin()
	steady()
	// behave says what a container does; nil: it is not one of the feed's.
	behave(*runtimeapi.PodSandboxConfig, *runtimeapi.ContainerConfig) *fakecri.Behaviour
}

// driver takes one cluster through its phases, from Run to its Result. Between
// runs of the engine it may touch everything; in a run only what the API's loop
// does. The virtual clock stands still between runs of the engine; what feeds do in begin and
// steady happens at one instant.
type driver struct {
	cfg     Config
	opts    Options
	cluster *sim.Cluster
	counts  counts
	feeds   []feed
	wanted  int
	created func() bool // all wanted pods were created
	result  *Result
	phase   Phase
	until   time.Duration
	wallAt  time.Time
	warned  map[string]bool
}

const (
	// nodesWithin is how long nodes may take to become ready. Nodes register within seconds; two
	// minutes are more than faults of a start take.
	nodesWithin = 2 * time.Minute
	// step is how often is looked where a run stands.
	step = time.Second
	// defaultFor is how long a run goes on after start-up.
	defaultFor = time.Hour
)

// Run runs a cluster. A ctx that ends stops the run; the result is marked as
// interrupted then. The result holds what there is, also with an error, which is
// of the configuration (a *ConfigError) or internal: a task's panic. It never returns a nil
// result, so that callers can show a partial one.
func Run(ctx context.Context, cfg Config, opts Options) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return &Result{}, &ConfigError{err}
	}
	if cfg.Workload == nil && cfg.Trace == nil && cfg.Snapshot == nil {
		cfg.Workload = DefaultWorkload(cfg.Probes)
	}
	r := &driver{cfg: cfg, opts: opts, result: &Result{Seed: cfg.Seed}, warned: map[string]bool{}, phase: PhaseNodes}
	if opts.Clock != nil {
		r.wallAt = opts.Clock()
	}
	if err := r.build(); err != nil {
		if r.cluster != nil {
			// build may fail after the cluster was made.
			r.cluster.Close()
		}
		return r.result, &ConfigError{err}
	}
	defer r.cluster.Close()
	err := r.drive(ctx)
	r.finish(ctx)
	if err != nil {
		err = fmt.Errorf("after %v of virtual time: %w", r.now(), err)
	}
	return r.result, err
}

// ConfigError is an error of what was asked for, not of the simulator. The command exits with
// another code for it.
type ConfigError struct{ Err error }

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ConfigError) Unwrap() error { return e.Err }

// build makes the cluster, its nodes and what the feeds need. Errors are of the
// configuration. Hooks are registered before nodes are added, so counts see every node from its
// creation.
func (r *driver) build() error {
	for _, n := range r.cfg.Notes {
		r.warn(n)
	}
	control := r.cfg.ControlPlane
	control.Warn = r.warn
	c, err := sim.New(sim.Options{
		Seed: r.cfg.Seed, Workers: r.cfg.Workers, ControlPlane: control, APILoad: r.cfg.APILoad,
		NoKubeletMetrics: true,
		// No record is kept unless Attach asks for some: a trace of a large run would be larger
		// than the run. All of it is in the hash even so.
		Keep: func(trace.Kind, string, []trace.Field) bool { return false },
	})
	if err != nil {
		return err
	}
	r.cluster = c
	c.API().OnChange(r.counts.change, apiserver.KindPod, apiserver.KindNode)
	if r.opts.Attach != nil {
		r.opts.Attach(c)
	}
	r.addFeeds()
	if err := r.addNodes(); err != nil {
		return err
	}
	if s := r.cfg.Snapshot; s != nil {
		for _, n := range s.Notes {
			r.warn(n)
		}
	}
	for _, f := range r.feeds {
		if err := f.prepare(); err != nil {
			return err
		}
	}
	r.result.Nodes = len(c.Nodes())
	r.result.Wall.Setup = r.lap()
	return nil
}

// addFeeds makes the feeds and counts what is wanted of them. A trace wants nothing at first: its
// pods come by their own times.
func (r *driver) addFeeds() {
	var all []func() bool
	if s := r.cfg.Snapshot; s != nil {
		r.feeds = append(r.feeds, &snapshotFeed{r: r, s: s})
		r.wanted += len(s.Pods)
	}
	if w := r.cfg.Workload; w != nil {
		nodes := r.cfg.Nodes
		if s := r.cfg.Snapshot; s != nil {
			nodes = len(s.Nodes)
		}
		g := newGenerator(r, w, nodes*r.cfg.PodsPerNode)
		r.feeds = append(r.feeds, g)
		r.wanted += g.wanted
		all = append(all, func() bool { return g.made == g.wanted })
	}
	if t := r.cfg.Trace; t != nil {
		r.feeds = append(r.feeds, &traceFeed{r: r, t: t})
	}
	// A rate may spread creation over minutes; start-up cannot be over before that.
	r.created = func() bool {
		for _, done := range all {
			if !done() {
				return false
			}
		}
		return true
	}
	r.result.Wanted = r.wanted
}

// behave asks the feeds. The first feed that knows the pod decides; nil leaves the container to
// its command.
func (r *driver) behave(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *fakecri.Behaviour {
	for _, f := range r.feeds {
		if b := f.behave(pod, container); b != nil {
			return b
		}
	}
	return nil
}

// addNodes adds the snapshot's nodes, or as many as are wanted of each shape.
// Shapes get their shares of the number exactly, each rounded against the sum so
// far. Nodes of one shape share images and configuration. Nodes are called by their shape and
// number, so node-17 is the same machine in each run.
func (r *driver) addNodes() error {
	for _, what := range scenarios.KubeletWarnings(r.cfg.Kubelet, "") {
		r.warn("kubelet configuration: " + what)
	}
	if s := r.cfg.Snapshot; s != nil {
		return s.addNodes(r)
	}
	images := r.images()
	shapes := r.shapes()
	total := 0.0
	for i := range shapes {
		total += shapes[i].weight()
	}
	made, sum := 0, 0.0
	for i := range shapes {
		s := &shapes[i]
		sum += s.weight()
		upTo := int(float64(r.cfg.Nodes)*sum/total + 0.5)
		for k := 0; made < upTo; k, made = k+1, made+1 {
			o := sim.NodeOptions{
				Name: fmt.Sprintf("%s-%d", s.Name, k), Labels: s.Labels, Taints: s.Taints, Capacity: s.Capacity, Kubelet: r.cfg.Kubelet,
				Runtime: fakecri.Options{Images: images, Behave: r.behave},
			}
			if len(s.Devices) > 0 {
				o.Plugins = &plugins.Options{}
			}
			n, err := r.cluster.AddNode(o)
			if err != nil {
				return err
			}
			for i := range s.Devices {
				n.Plugins().StartDevice(s.Devices[i].Plugin())
			}
		}
	}
	return nil
}

// images are those that the workload or the trace names: what the workload says
// of them, or else they are on the nodes from the start. Pulls are for those who state images: by
// default every image is on the nodes, so that start-up is that of pods and not of registries.
func (r *driver) images() []fakecri.Image {
	var out []fakecri.Image
	names := []string{defaultImage}
	if w := r.cfg.Workload; w != nil {
		out = scenarios.RuntimeImages(w.Spec.Images)
		for i := range w.Spec.Classes {
			if p := w.Spec.Classes[i].Pod; p != nil {
				names = append(names, imagesOf(&p.Spec)...)
			}
		}
	}
	if t := r.cfg.Trace; t != nil {
		for i := range t.rows {
			names = append(names, t.rows[i].image)
		}
	}
	return addImages(out, names)
}

// addImages adds the images that are not there yet, as present. An image that was stated wins,
// also by a pattern.
func addImages(out []fakecri.Image, names []string) []fakecri.Image {
	have := map[string]bool{"": true}
	for i := range out {
		have[out[i].Name] = true
		for _, a := range out[i].Aliases {
			have[a] = true
		}
	}
	stated := len(out)
	for _, name := range names {
		if have[name] {
			continue
		}
		have[name] = true
		if !slices.ContainsFunc(out[:stated], func(im fakecri.Image) bool { return fakecri.MatchPattern(im.Name, name) }) {
			out = append(out, fakecri.Image{Name: name, Present: true})
		}
	}
	return out
}

// imagesOf are the images that a pod's containers name.
func imagesOf(spec *v1.PodSpec) []string {
	var out []string
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			out = append(out, list[i].Image)
		}
	}
	return out
}

// weight is 1 unless said.
func (s *NodeShape) weight() float64 {
	if s.Weight == nil {
		return 1
	}
	return *s.Weight
}

// shapes are what the configuration says, or the workload, or else one of
// DefaultCapacity. The first that says something decides; they are not mixed.
func (r *driver) shapes() []NodeShape {
	if len(r.cfg.Shapes) > 0 {
		return r.cfg.Shapes
	}
	if w := r.cfg.Workload; w != nil && len(w.Spec.Nodes) > 0 {
		return w.Spec.Nodes
	}
	return []NodeShape{{Name: "node", Capacity: DefaultCapacity()}}
}

// DefaultCapacity is that of nodes of which nothing is said. A middling cloud machine, of which
// the kubelet's maxPods of 110 is the first limit that the default workload meets.
func DefaultCapacity() v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi")}
}

// now is the virtual time since the start, on the API's loop and between runs. The API's loop is
// the one that all feeds run on.
func (r *driver) now() time.Duration { return r.cluster.API().Loop().Since(r.cluster.Start()) }

// after has fn run on the API's loop. It may be called on that loop or between runs.
func (r *driver) after(d time.Duration, fn func()) { r.cluster.API().Loop().Root().After(d, fn) }

// drive goes through the phases. A phase that does not come to its end in time is
// told of and the next begins: a cluster with a few broken nodes is a cluster as
// well. ctx is looked at in each window of the engine, so that a signal ends also
// a run that stands still. A window is the span in which loops run on their own, milliseconds of
// virtual time; the hook runs after each.
func (r *driver) drive(ctx context.Context) error {
	r.cluster.Engine().OnWindow(func(time.Time, []int32) {
		if ctx.Err() != nil {
			r.cluster.Stop()
		}
	})
	nodes := r.result.Nodes
	if over, err := r.runUntil(ctx, nodesWithin, func() bool { return r.counts.ready == nodes }); over || err != nil {
		return err
	}
	r.result.NodesReadyAt = r.cluster.Now()
	if r.counts.ready < nodes {
		r.warn(fmt.Sprintf("%d of %d nodes are not ready after %v", nodes-r.counts.ready, nodes, nodesWithin))
	}
	r.phase = PhaseStartup
	before := r.counts.started
	for _, f := range r.feeds {
		f.begin()
	}
	if r.wanted > 0 {
		// Counted by the API's changes: everything was created, nothing is pending, and what was
		// refused is not waited for.
		settled := func() bool {
			return r.created() && r.counts.pods.Pending == 0 && int(r.counts.added)+r.result.Refused >= r.wanted
		}
		if over, err := r.runUntil(ctx, r.cluster.Now()+r.startupWithin(), settled); over || err != nil {
			r.result.Wall.Startup = r.lap()
			return err
		}
		if r.result.Settled = settled(); !r.result.Settled {
			r.warn(fmt.Sprintf("start-up is not over after %s: %s wanted, %d pending, %d not created yet", scenarios.ShortTime(r.startupWithin()), scenarios.Plural(r.wanted, "pod"), r.counts.pods.Pending, max(r.wanted-int(r.counts.added)-r.result.Refused, 0)))
		}
	} else {
		r.result.Settled = true
	}
	r.result.StartedAt = r.cluster.Now()
	r.result.StartedPods = r.counts.started - before
	r.result.Wall.Startup = r.lap()
	r.phase = PhaseSteady
	r.result.steadyFrom = r.cluster.Now()
	for _, f := range r.feeds {
		f.steady()
	}
	err := r.runFaults(func(until time.Duration) (bool, error) {
		return r.runUntil(ctx, until, func() bool { return false })
	}, r.length())
	r.result.Wall.Steady = r.lap()
	return err
}

// length is how long the steady phase is. A minute after a trace's last end lets deletions and
// garbage collection come to rest.
func (r *driver) length() time.Duration {
	switch {
	case r.cfg.For > 0:
		return r.cfg.For
	case r.cfg.Trace != nil:
		return r.cfg.Trace.End() + time.Minute
	}
	return defaultFor
}

// startupWithin bounds start-up. Creating and binding are bounded by rates, so a
// bound that ignored them would cut large clusters off.
func (r *driver) startupWithin() time.Duration {
	if r.cfg.Startup > 0 {
		return r.cfg.Startup
	}
	d := 10 * time.Minute
	if rate := r.cfg.CreateRate; rate > 0 {
		d += seconds(float64(r.wanted) / rate)
	}
	// 0 is upstream's default; negative is without a limit.
	if q := r.cfg.ControlPlane.Scheduler.QPS; q >= 0 && !r.cfg.Bound {
		if q == 0 {
			q = 50 // kube-scheduler's default
		}
		d += seconds(float64(r.wanted) / q)
	}
	return d.Round(time.Second)
}

// runUntil runs until a time, or until done. over: the run was stopped. done is asked once per
// step, so a phase ends at a whole second, which makes runs comparable.
func (r *driver) runUntil(ctx context.Context, until time.Duration, done func() bool) (over bool, err error) {
	r.until = until
	for {
		now := r.cluster.Now()
		if r.opts.Progress != nil {
			r.opts.Progress(r.progress())
		}
		switch {
		case ctx.Err() != nil:
			return true, nil
		case now >= until || done():
			return false, nil
		}
		if err := r.cluster.RunUntil(min(now+r.step(), until)); err != nil {
			return true, err
		}
	}
}

// step is how long to run until the next look at where the run stands, which
// takes time for each node. A thousand nodes more make it a second longer. Before the steady
// phase it stays a second: start-up is measured with it.
func (r *driver) step() time.Duration {
	if r.phase != PhaseSteady {
		return step
	}
	return max(step, time.Duration(len(r.cluster.Nodes()))*time.Millisecond)
}

// progress is what is shown of a run while it goes on.
func (r *driver) progress() Progress {
	p := Progress{
		Phase: r.phase, Now: r.cluster.Now(), Nodes: r.result.Nodes, Ready: r.counts.ready, Wanted: r.wanted, Pods: r.counts.pods,
		Requests: r.cluster.API().Requests(), Steps: r.cluster.Steps(),
	}
	if r.phase == PhaseSteady {
		p.Until = r.until
	}
	return p
}

// lap returns the wall time since the last lap.
func (r *driver) lap() time.Duration {
	if r.opts.Clock == nil {
		return 0
	}
	now := r.opts.Clock()
	d := now.Sub(r.wallAt)
	r.wallAt = now
	return d
}

// warn tells something once. Warnings are of the configuration mostly; the same one of a thousand
// nodes is one.
func (r *driver) warn(text string) {
	if r.warned[text] {
		return
	}
	r.warned[text] = true
	r.result.Warnings = append(r.result.Warnings, text)
}

// maxErrors bounds how many errors of the API are kept.
const maxErrors = 20

// failed notes what the API refused. All are counted and few kept: when one pod of a template is
// refused, so are the rest.
func (r *driver) failed(namespace, name string, err error) {
	r.result.Refused++
	if len(r.result.Errors) < maxErrors {
		r.result.Errors = append(r.result.Errors, fmt.Sprintf("pod %s/%s: %v", namespace, name, err))
	}
}
