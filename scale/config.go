package scale

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// Bounds of a Config.
const (
	// Beyond them a run is more likely a mistake than a wish: it would not fit
	// into memory. The rates' bound is that of timers: a million events a second are one a
	// virtual microsecond. Validate turns all of them into errors before anything is made.
	MaxNodes   = 100_000
	MaxPods    = 1_000_000
	maxRate    = 1e6 // per second
	maxPerNode = 10_000
)

// Config says what is run. DefaultConfig has what is meant by default. It is only read during the
// run; one Config may be run several times. Workloads, traces and snapshots were parsed and
// checked before they get here.
type Config struct {
	// Nodes is how many there are, PodsPerNode how many pods are wanted at first
	// by node. A Snapshot and a Trace bring their own.
	Nodes, PodsPerNode int
	// For is how long the cluster runs once start-up is over; 0 is an hour, or
	// with a Trace until its last row is over.
	For time.Duration
	// Startup bounds how long start-up may take; 0: what creating and binding the
	// pods takes at the rates given, and ten minutes.
	Startup time.Duration
	// Churn is how many pods are deleted and replaced a second, of those that have no
	// end of their own. It is the mean of a Poisson process over the whole cluster, not by node,
	// as clusters' deployments replace pods: independently of each other.
	Churn float64
	// CreateRate is how many pods a second are created at first; 0: all at once.
	CreateRate float64
	// Bound has pods be created with their node's name, so that nothing is
	// scheduled. It is for what nodes do, apart from kube-scheduler's rate, which otherwise
	// decides how long start-up takes.
	Bound bool
	Seed  uint64
	// Workers is how many cores are used; 0: all. The outcome never depends on it.
	Workers int
	// Kubelet is every kubelet's configuration; nil: upstream's defaults.
	Kubelet *kubeletconfig.KubeletConfiguration
	// ControlPlane is which controllers there are, and what they may ask.
	ControlPlane controlplane.Options
	// Notes are worth saying of the configuration; the result's warnings begin with them.
	Notes []string
	// Workload, Trace and Snapshot are where pods come from: any of them. Without
	// any it is DefaultWorkload(Probes).
	Workload *Workload
	Trace    *Trace
	Snapshot *Snapshot
	// Faults are what happens to nodes in the steady phase.
	Faults []Fault
	// Shapes are what the nodes are, by weight; nil: the Workload's. They come from a trace's own
	// node file, say, which goes before what a workload says.
	Shapes []NodeShape
	// Probes is the share of the default workload's pods that have probes.
	Probes float64
	// APILoad is what requests cost the API server; nil: nothing, so that API
	// latencies are those of the network alone. With it requests queue by API priority and
	// fairness and take time to be served.
	APILoad *apiserver.Load
}

// Limits of the control plane's clients in sig-scalability's tests on GCE, which
// go up to 5,000 nodes: --kube-api-qps=100 --kube-api-burst=100 of kube-scheduler
// and kube-controller-manager (kubernetes/test-infra,
// config/jobs/kubernetes/sig-scalability/sig-scalability-presets.yaml,
// preset-e2e-scalability-common). Its jobs on kops have 500.
const (
	ScaleQPS   = 100
	ScaleBurst = 100
)

// DefaultConfig is a thousand nodes with thirty pods each, whose control plane
// may ask as much as in sig-scalability's tests on GCE. Pods are
// created a little slower than they can be bound. 90 a second against 100 bindings: pods don't
// pile up in the scheduler's queue, so what is measured is a pod's own start rather than the
// queue before it, as in sig-scalability's load tests.
func DefaultConfig() Config {
	limits := controlplane.Client{QPS: ScaleQPS, Burst: ScaleBurst}
	return Config{
		Nodes: 1000, PodsPerNode: 30, CreateRate: 90, Probes: 0,
		ControlPlane: controlplane.Options{Scheduler: limits, ControllerManager: limits},
	}
}

// Validate returns the first thing that is wrong with the numbers. Names in
// errors are those of the command's flags without the dashes. It sees to what would otherwise
// become a hang or a bill of memory, and to combinations of sources that contradict each other.
// What is inside a workload or trace was checked when that was read.
func (c *Config) Validate() error {
	if err := c.ControlPlane.Validate(); err != nil {
		return err
	}
	for _, x := range []struct {
		what        string
		v, min, max float64
	}{
		{"nodes", float64(c.Nodes), 1, MaxNodes}, {"pods per node", float64(c.PodsPerNode), 0, maxPerNode}, {"churn", c.Churn, 0, maxRate},
		{"create rate", c.CreateRate, 0, maxRate}, {"share of probes", c.Probes, 0, 1},
	} {
		// The comparison is written so that NaN, which compares false with everything, is
		// refused.
		if !(x.v >= x.min && x.v <= x.max) && !(x.what == "nodes" && c.Snapshot != nil) {
			return fmt.Errorf("%s: %s is not within %v and %.0f", x.what, strconv.FormatFloat(x.v, 'f', -1, 64), x.min, x.max)
		}
	}
	switch {
	case c.For < 0:
		return fmt.Errorf("for: %v is negative", c.For)
	case c.Startup < 0:
		return fmt.Errorf("startup timeout: %v is negative", c.Startup)
	case c.For > maxSpan, c.Startup > maxSpan:
		return errors.New("for and startup timeout: more than ten years are too long")
	// Client-go takes a negative QPS for no limit at all (rest.Config); a burst has no such
	// meaning.
	case c.ControlPlane.Scheduler.Burst < 0 || c.ControlPlane.ControllerManager.Burst < 0:
		return errors.New("a burst is negative; it is a qps that is negative for no limit")
	case c.Workers < 0:
		return fmt.Errorf("workers: %d is negative", c.Workers)
	case c.Trace != nil && c.Snapshot != nil, c.Trace != nil && c.Workload != nil:
		return errors.New("a trace excludes a workload and a snapshot of a cluster")
	case c.Bound && (c.Trace != nil || c.Snapshot != nil):
		return errors.New("bound pods are for generated workloads: a trace and a snapshot say where their pods are")
	case c.Churn > 0 && c.Workload == nil && (c.Trace != nil || c.Snapshot != nil):
		return errors.New("churn: replaces pods of a generated workload, and there is none")
	}
	if w := c.Workload; w != nil && c.Churn > 0 && !slices.ContainsFunc(w.Spec.Classes, func(c Class) bool { return c.churns() && (c.Share > 0 || c.Count > 0 || c.Controller != "") }) {
		return errors.New("churn: no class of the workload has pods that it could replace: there at first or a controller's, without a lifetime of their own, and no DaemonSet's")
	}
	// PodsPerNode times Nodes is what a workload makes at first; a DaemonSet's pods are not in
	// it.
	if n := c.Nodes * c.PodsPerNode; n > MaxPods {
		return fmt.Errorf("%d pods are more than %d", n, MaxPods)
	}
	return nil
}

// Options say how a run is watched. None of it changes what happens.
type Options struct {
	// Clock is the wall clock; nil leaves all wall times 0.
	Clock func() time.Time
	// Attach, if any, is called with the cluster before anything happens.
	Attach func(*sim.Cluster)
	// Progress is called after each virtual second, while no loop runs.
	Progress func(Progress)
}

// Phase is where a run stands. The values are printed.
type Phase string

// The phases of a run, in their order.
const (
	PhaseNodes   Phase = "nodes"
	PhaseStartup Phase = "start-up"
	PhaseSteady  Phase = "steady"
	PhaseDone    Phase = "done"
)

// Pods counts pods by phase.
type Pods struct {
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Unknown   int `json:"unknown,omitempty"`
}

// Total is the sum.
func (p Pods) Total() int { return p.Pending + p.Running + p.Succeeded + p.Failed + p.Unknown }

// Progress is where a run stands. It is a copy: who gets it may keep it. It is handed out between
// runs of the engine, by the goroutine that called Run.
type Progress struct {
	Phase Phase
	// Now is the virtual time since the start; Until when the run ends, 0 while
	// that is not known.
	Now, Until time.Duration
	// Nodes and Ready count nodes, Wanted the pods wanted at first.
	Nodes, Ready, Wanted int
	Pods                 Pods
	// Requests of nodes and the control plane have arrived at the API.
	Requests uint64
	Steps    uint64
}
