package report

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Options configure a Collector. MaxPods bounds the memory: 32 MB by default.
type Options struct {
	// Title heads the report. Empty means "Drydock".
	Title string
	// Facts are shown at its top.
	Facts []Fact
	// MaxPods bounds how many starts are kept, at 32 bytes each. Beyond it every second
	// one is dropped, and so on: percentiles are then those of a sample. Zero means
	// 1,000,000.
	MaxPods int
}

// Collector collects what a report tells. Its methods are for use between runs.
// All of it belongs to the API's loop, whose hooks fill it. Hooks run on the API's loop; records
// are taken between runs.
type Collector struct {
	c    *sim.Cluster
	opts Options
	// start: of the run, ns since the Unix epoch.
	start int64
	// How long a watch event takes to a watcher: the SLO's clock stops when a watcher has seen
	// the pod run, not when the API has.
	deliver func() time.Duration

	over    series
	starts  starts
	pending map[podKey]*startingPod
	peak    int // of pending
	// running: those in pending that run, first in first out. A start is complete only when the
	// node's records have come, up to a second later.
	running []podKey
	nodes   []nodeStats
	byName  map[string]int
	devices *deviceUse // nil: no node has any
}

// Attach begins to collect. It is for use before the run, best before nodes are
// added. Later it would miss creations, and starts without one are not counted. It must not
// change the run: the component "report" draws its latencies from a stream of its own, and
// nothing is scheduled.
func Attach(c *sim.Cluster, opts Options) *Collector {
	opts.Title = cmp.Or(opts.Title, "Drydock")
	if opts.MaxPods <= 0 {
		opts.MaxPods = 1_000_000
	}
	k := &Collector{
		c: c, opts: opts, start: c.Start().UnixNano(),
		// A component of its own draws from nobody else's latencies.
		deliver: c.API().Component("report", 0, 0).Delivery,
		over:    series{width: firstInterval},
		starts:  starts{limit: opts.MaxPods, stride: 1},
		pending: map[podKey]*startingPod{},
		byName:  map[string]int{},
	}
	c.KeepAlso(wants)
	c.Records(k.record)
	c.API().OnChange(k.change, apiserver.KindPod, apiserver.KindNode)
	return k
}

// now is the virtual time since the start of the run.
func (k *Collector) now() time.Duration {
	return time.Duration(k.c.API().Loop().UnixNano() - k.start)
}

// change takes a committed write of a pod or a node. It runs for each change of
// 150,000 pods: it allocates nothing but a pod's entry. Time passes between changes, so intervals
// are closed here before anything is counted.
func (k *Collector) change(c apiserver.Change) {
	if len(k.running) > 0 {
		k.settled(k.now())
	}
	switch c.Kind {
	case apiserver.KindPod:
		now := k.now()
		k.over.at(now)
		old, _ := c.Old.(*v1.Pod)
		k.pod(old, c.New.(*v1.Pod), c.Type == watch.Deleted, now)
		k.devicePod(old, c.New.(*v1.Pod), c.Type == watch.Deleted, now)
	case apiserver.KindNode:
		now := k.now()
		k.over.at(now)
		old, _ := c.Old.(*v1.Node)
		k.node(old, c.New.(*v1.Node), c.Type == watch.Deleted, now)
		k.deviceNode(old, c.New.(*v1.Node), c.Type == watch.Deleted, now)
	}
}

// wants tells which records are wanted: those of a pod's start, and OOM kills. It is asked for
// each record that might be made, on nodes' loops. A kind it doesn't want costs one comparison.
func wants(kind trace.Kind, verb string, fields []trace.Field) bool {
	switch kind {
	case trace.KindCRI:
		return verb == "RunPodSandbox" || verb == "PullImage" || verb == "StartContainer"
	case trace.KindProcess:
		if verb == "exit" {
			for _, f := range fields {
				if f.Key == "reason" {
					return f.Value == "OOMKilled"
				}
			}
		}
	}
	return false
}
