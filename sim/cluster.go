package sim

import (
	"cmp"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// Options configure a Cluster.
type Options struct {
	// Seed decides the order of what is simultaneous, and every draw.
	Seed uint64
	// Typical has every span of time that would be drawn from a range be the
	// middle of it, for a run in which nothing is out of the ordinary.
	Typical bool
	// Start is the virtual time at which the run begins. Zero means loop.Epoch.
	Start time.Time
	// Workers is how many goroutines run loops. Zero means GOMAXPROCS. The
	// outcome never depends on it.
	Workers int
	// APILatencyMin and APILatencyMax bound how long a message to or from the
	// API takes, one way. The least of them is the engine's lookahead, so
	// under 1 ms is refused. Zero means 5 ms.
	APILatencyMin, APILatencyMax time.Duration
	// APILoad is what requests cost the API server. Nil has each handled as it
	// arrives, in no time.
	APILoad *apiserver.Load
	// EventLimits are those of the admission plugin EventRateLimit; none leaves
	// it out.
	EventLimits []apiserver.EventLimit
	// Keep says which records are handed to what Records registers; nil means
	// all. Every record is hashed in any case.
	Keep func(kind trace.Kind, verb string, fields []trace.Field) bool
	// TraceReads has CRI calls that only read recorded too.
	TraceReads bool
	// KubeletLogs has the kubelets' log lines recorded (trace.KindLog).
	KubeletLogs bool
	// Metrics has the run measured, for Cluster.Metrics.
	Metrics bool
	// NoKubeletMetrics has the kubelets count nothing for /metrics, for who asks none of
	// them. Large clusters are faster without.
	NoKubeletMetrics bool
	// Census has it noted which pods there were, for Cluster.Census.
	Census bool
	// APIGates are the API server's feature gates that can be set.
	APIGates apiserver.Gates
	// ControlPlane is which controllers there are. The zero value is all.
	ControlPlane controlplane.Options
	// Elision is whether the kubelets and the shells leave out what would do nothing
	// new. With loop.NoElide the same acts come of a run, at many times the cost.
	Elision loop.ElisionMode
	// Watchdog is that of loop.EngineOptions.
	Watchdog time.Duration
	// Stderr takes the engine's watchdog lines. Nil means os.Stderr.
	Stderr io.Writer
	// Loop, one of loop.NewReal, has the cluster on the wall clock: the API and
	// every node are on this one loop, there is no engine, and nodes need a
	// Host. RunReal runs it; Close closes it.
	Loop *loop.Loop
}

// Cluster is a simulated cluster.
type Cluster struct {
	opts   Options
	engine *loop.Engine
	api    *apiserver.Server

	controlPlane *controlplane.ControlPlane
	figures      *podautoscaler.Figures
	apiRec       *trace.Recorder
	nodes        []*Node
	byName       map[string]*Node
	models       []model // of the nodes, the latest last
	recorders    []*trace.Recorder
	collector    trace.Collector

	// buffers are the recorders', by their loop's index; nextFlush is when
	// records are flushed next.
	buffers   []*trace.Buffer
	nextFlush time.Time
	start     time.Time
	// trees: which the nodes' runtimes share.
	trees    *fakecri.Trees
	meter    *meter // nil unless wanted
	alsoKeep []func(trace.Kind, string, []trace.Field) bool
	gone     *departed // nil unless wanted
	storages map[string]*plugins.Storage
	nfs      []*plugins.NFS
}

// New returns a cluster without nodes.
func New(opts Options) (*Cluster, error) {
	opts.APILatencyMin = cmp.Or(opts.APILatencyMin, 5*time.Millisecond)
	opts.APILatencyMax = max(opts.APILatencyMax, opts.APILatencyMin)
	if opts.Loop != nil {
		c := &Cluster{opts: opts, byName: map[string]*Node{}, start: opts.Loop.Now()}
		c.addAPI(opts.Loop)
		return c, nil
	}
	if err := opts.ControlPlane.Validate(); err != nil {
		return nil, err
	}
	e, err := loop.NewEngine(loop.EngineOptions{Seed: opts.Seed, Typical: opts.Typical, Elision: opts.Elision, Start: opts.Start, Workers: opts.Workers, Lookahead: opts.APILatencyMin, Watchdog: opts.Watchdog, Stderr: opts.Stderr})
	if err != nil {
		return nil, fmt.Errorf("the API's latency: %w", err)
	}
	c := &Cluster{opts: opts, engine: e, byName: map[string]*Node{}, start: e.Now(), trees: fakecri.NewTrees()}
	e.OnWindow(c.flushRecords)
	c.addAPI(e.NewLoop("api"))
	return c, nil
}

// StartStorage starts what is behind a driver of CSI. It is for use before time runs.
func (c *Cluster) StartStorage(o plugins.StorageOptions) *plugins.Storage {
	o.Network = c.opts.APILatencyMin
	s := plugins.StartStorage(c.api, o)
	if c.storages == nil {
		c.storages = map[string]*plugins.Storage{}
	}
	c.storages[o.Driver] = s
	return s
}

// StartNFS starts a server of NFS, for nodes that are added from now on. It is for use before
// time runs.
func (c *Cluster) StartNFS(o plugins.NFSOptions) {
	o.Network = c.opts.APILatencyMin
	c.nfs = append(c.nfs, plugins.StartNFS(c.api, o))
}

// Storage returns what is behind a driver of CSI; nil: nothing was started.
func (c *Cluster) Storage(driver string) *plugins.Storage { return c.storages[driver] }

func (c *Cluster) addAPI(l *loop.Loop) {
	c.apiRec = c.newRecorder(l, "")
	c.api = apiserver.New(apiserver.Options{Loop: l, Recorder: c.apiRec, LatencyMin: c.opts.APILatencyMin, LatencyMax: c.opts.APILatencyMax, Load: c.opts.APILoad, Gates: c.opts.APIGates, EventLimits: c.opts.EventLimits})
	control := c.opts.ControlPlane
	if c.opts.Loop == nil && control.Metrics == nil {
		control.Metrics = newMetricsServer(c, l)
	}
	if control.Figures == nil {
		control.Figures = &podautoscaler.Figures{}
	}
	c.figures = control.Figures
	c.controlPlane = controlplane.New(c.api, control)
	c.measure(l)
}

func (c *Cluster) newRecorder(l *loop.Loop, node string) *trace.Recorder {
	buffer := c.collector.NewBuffer(c.keep())
	r := trace.NewRecorder(l, node, buffer)
	if c.engine != nil {
		for len(c.buffers) <= l.Index() {
			c.buffers = append(c.buffers, nil)
		}
		c.buffers[l.Index()] = buffer
	}
	r.SetTraceReads(c.opts.TraceReads)
	c.recorders = append(c.recorders, r)
	return r
}

// API returns the cluster's API.
func (c *Cluster) API() *apiserver.Server { return c.api }

// ControlPlane returns the cluster's control plane.
func (c *Cluster) ControlPlane() *controlplane.ControlPlane { return c.controlPlane }

// Figures returns the custom and external metrics that autoscalers ask for.
func (c *Cluster) Figures() *podautoscaler.Figures { return c.figures }

// Store returns the API's state, for reading.
func (c *Cluster) Store() *apiserver.Store { return c.api.Store() }

// Engine returns what drives the cluster; nil on the wall clock.
func (c *Cluster) Engine() *loop.Engine { return c.engine }

// Recorder returns the recorder of the API's loop, for what a scenario does.
func (c *Cluster) Recorder() *trace.Recorder { return c.apiRec }

// Node returns a node by name, or nil.
func (c *Cluster) Node(name string) *Node { return c.byName[name] }

// Nodes returns the nodes in the order in which they were added.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Start returns the virtual time at which the run began.
func (c *Cluster) Start() time.Time { return c.start }

// Now returns the time since the start.
func (c *Cluster) Now() time.Duration {
	if c.engine == nil {
		return c.opts.Loop.Since(c.start)
	}
	return c.engine.Now().Sub(c.start)
}

// Steps returns how many steps all loops took.
func (c *Cluster) Steps() uint64 {
	if c.engine == nil {
		return c.opts.Loop.Steps()
	}
	return c.engine.Steps()
}

// At has fn run on the API's loop at a time since the start.
func (c *Cluster) At(at time.Duration, fn func()) {
	c.api.Loop().Root().At(c.start.Add(at), fn)
}

// Records has fn called with every kept record, in order, whenever records
// are flushed.
func (c *Cluster) Records(fn func(*trace.Record)) { c.collector.Each(fn) }

// flushEvery is how much virtual time passes between flushes of records.
const flushEvery = time.Second

// flushRecords is called after each window, with the loops that recorded something.
func (c *Cluster) flushRecords(end time.Time, marked []int32) {
	for _, idx := range marked {
		if b := c.buffers[idx]; b != nil {
			c.collector.Note(b)
		}
	}
	if !end.Before(c.nextFlush) {
		c.collector.FlushNoted(end.UnixNano())
		c.nextFlush = end.Add(flushEvery)
	}
}

// RunUntil runs the cluster to a time since the start. It returns the first
// panic of a task. After Stop it returns early.
func (c *Cluster) RunUntil(until time.Duration) error {
	limit := c.start.Add(until)
	for _, b := range c.buffers { // what was recorded while no loop ran, maybe of nodes that stay idle
		if b != nil {
			c.collector.Note(b)
		}
	}
	if err := c.engine.RunUntil(limit); err != nil {
		c.collector.Flush(1<<63 - 1)
		return err
	}
	c.collector.Flush(limit.UnixNano())
	return nil
}

// Stop ends a run early; it may be called from any goroutine.
func (c *Cluster) Stop() { c.engine.Stop() }

// Hash returns the hash over all records of the run so far: of each loop in
// its order, combined in the order of the loops.
func (c *Cluster) Hash() uint64 {
	hashes := make([]uint64, len(c.recorders))
	for i, r := range c.recorders {
		hashes[i] = r.Hash()
	}
	return trace.Combine(hashes)
}

// RecordCount returns how many records were made.
func (c *Cluster) RecordCount() uint64 {
	return lists.Sum(c.recorders, func(r *trace.Recorder) uint64 { return r.Count() })
}

// Close flushes the last records, kills everything and frees its memory.
func (c *Cluster) Close() {
	c.collector.Flush(1<<63 - 1)
	if c.engine == nil {
		c.opts.Loop.Close()
		return
	}
	c.engine.Close()
}

// PodsByPhase counts the API's pods.
func (c *Cluster) PodsByPhase() map[v1.PodPhase]int {
	out := map[v1.PodPhase]int{}
	for _, p := range c.Store().Pods() {
		out[p.Status.Phase]++
	}
	return out
}

// Writes counts the API's committed writes of leases, pods, nodes and events.
func (c *Cluster) Writes() (leases, pods, nodes, events uint64) {
	w := c.api.Writes
	return w(apiserver.KindLease), w(apiserver.KindPod), w(apiserver.KindNode), w(apiserver.KindEvent)
}

// Syncs counts the runs of all pod workers, and those of them that a resync
// began and that found nothing to do.
func (c *Cluster) Syncs() (all, resyncs uint64) {
	for _, n := range c.nodes {
		s := n.stats()
		all += s.Syncs
		resyncs += s.Resyncs
	}
	return all, resyncs
}

// Probes counts the probes of containers that were run.
func (c *Cluster) Probes() (n uint64) {
	for _, node := range c.nodes {
		n += node.stats().Probes
	}
	return n
}
