package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/hugepages"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/scale"
	"github.com/drydock-sim/drydock/scale/report"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// exitInterrupted is that of a run that a signal ended: 128 and SIGINT. drydock scale has it
// apart from failures since runs of hours are stopped on purpose.
const exitInterrupted = 130

// scaleFlags are the flags of drydock scale. What goes to scale.Config as it is
// stands in cfg; the others are files to read or text to parse, which load does.
// given tells a default from the same value typed. cfg starts as scale.DefaultConfig, so flags
// show its values.
type scaleFlags struct {
	cfg scale.Config
	// Rates are in virtual time: pods replaced, and first pods created, a second.
	churn, createRate rate
	// Files: at most one of workload, trace and cluster says which pods there
	// are, but for a workload on a cluster's nodes. kubelet is a
	// scheduler is a file with the scheduler's KubeSchedulerConfiguration.
	scheduler string
	// KubeletConfiguration for all nodes.
	workload, trace, traceNodes, cluster string
	kubelet                              string
	// traceFrom leaves out what ended before; traceSpeed makes the trace's time
	// pass faster.
	traceFrom  time.Duration
	traceSpeed float64
	// report is a directory. memory bounds the process, as a quantity; "" lets
	// the size of the cluster decide. progress is how often a line is shown, in
	// wall time.
	report       string
	memory       string
	progress     time.Duration
	json, verify bool
	output       string // text or json
	// expect are thresholds: "podStartup.p99 < 5s".
	expect     []string
	thresholds []report.Threshold
	// powerCuts and partitions are faults: "topology.kubernetes.io/zone=a@10m+5m".
	powerCuts, partitions []string
	command               string // that was typed
	// apiLoad has requests take time at a server with these properties.
	apiLoad bool
	server  apiserver.Load

	given          func(flag string) bool // on the command line
	stdout, stderr io.Writer
}

// rate is a number of events a second, written as "20/s", "1200/m" or "20". It is a pflag.Value,
// so a mistake is told with the flag's name by cobra.
type rate float64

// String implements pflag.Value.
func (r *rate) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) + "/s" }

// Type implements pflag.Value.
func (r *rate) Type() string { return "rate" }

// Set parses a rate. It refuses what is negative, infinite or of another unit.
func (r *rate) Set(s string) error {
	n, unit, _ := strings.Cut(s, "/")
	// Another unit is missing from the map and so 0.
	per := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	f, err := strconv.ParseFloat(n, 64)
	if err != nil || per == 0 || !(f >= 0 && f <= 1e9) {
		return fmt.Errorf("%q is no rate such as 20/s, 90/m or 100/h", s)
	}
	*r = rate(f / per)
	return nil
}

// newScale is drydock scale. The seed's default is 0: two runs without flags are the same run.
func newScale() *cobra.Command {
	f := scaleFlags{cfg: scale.DefaultConfig()}
	f.createRate = rate(f.cfg.CreateRate)
	cmd := &cobra.Command{
		Use:   "scale [SCENARIO]",
		Short: "Run a large cluster: thousands of nodes, with pods that come and go",
		Long: `Runs a cluster of many nodes, with a whole kubelet on each and the control
plane, on a virtual clock. Pods are those of a generated workload, of a trace, of
a real cluster, or of a scenario file. docs/scale.md has the rest.

Times are virtual unless they are said to be wall time. Unless said, the scheduler
and each controller may ask the API 100 times a second, as in sig-scalability's
tests on GCE (upstream's defaults are 50 and 20), and what the API server does
takes no time (--api-load).

Exit codes: 0 the run went to its end, 1 an expectation (--expect, or the scenario's)
failed or runs differ, 2 bad input, 3 internal error, 130 interrupted.`,
		Example: `  drydock scale --nodes 5000 --pods-per-node 30 --for 1h --churn 20/s --seed 7
  drydock scale --workload mixed.yaml --nodes 500 --report out/
  drydock scale --from-cluster cluster.yaml --for 30m
  drydock scale --trace openb_pod_list_default.csv --trace-nodes openb_node_list_all_node.csv --trace-speed 60`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			defer hugepages.Keep(100 * time.Millisecond)()
			f.stdout, f.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			f.given = cmd.Flags().Changed
			f.command = commandLine(cmd, args)
			if err := checkOutput(f.output); err != nil {
				return err
			}
			f.json = f.json || f.output == "json"
			if err := f.parseThresholds(); err != nil {
				return err
			}
			// A scenario says itself what its cluster is; most flags are refused with it.
			if len(args) == 1 {
				return f.runScenario(cmd, args[0])
			}
			if err := f.control(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context())
		},
	}
	f.flags(cmd)
	cmd.AddCommand(newScaleCompare())
	return cmd
}

// parseThresholds reads --expect.
func (f *scaleFlags) parseThresholds() error {
	for _, text := range f.expect {
		t, err := report.ParseThreshold(text)
		if err != nil {
			return badInput("--expect: %w", err)
		}
		f.thresholds = append(f.thresholds, t)
	}
	return nil
}

// flags declares the flags. Defaults are those of the configuration that newScale
// began with, so help shows what a run would use. Flags that take a file complete file names in
// shells.
func (f *scaleFlags) flags(cmd *cobra.Command) {
	fl, c := cmd.Flags(), &f.cfg
	fl.IntVar(&c.Nodes, "nodes", c.Nodes, "how many nodes")
	fl.IntVar(&c.PodsPerNode, "pods-per-node", c.PodsPerNode, "how many pods there are at first, for each node")
	spanVar(fl, &c.For, "for", 0, "how long to run once the pods run, in virtual time (default 1h; with --trace: to its end)")
	spanVar(fl, &c.Startup, "startup-timeout", 0, "how long start-up may take, in virtual time (default: what the rates make of it, and 10m)")
	fl.Var(&f.churn, "churn", "how many of the pods without an end of their own are deleted and replaced, in virtual time")
	fl.Var(&f.createRate, "create-rate", "how fast the first pods are created, in virtual time; 0: all at once")
	fl.BoolVar(&c.Bound, "pods-bound", false, "create pods with their node's name, all at once unless --create-rate is given, without the scheduler")
	fl.Float64Var(&c.Probes, "probes", c.Probes, "share of the default workload's pods that have a readiness and a liveness probe")
	fl.Uint64Var(&c.Seed, "seed", 0, "seed of everything that is drawn")
	fl.IntVar(&c.Workers, "workers", 0, "cores to use (0: all); never changes the outcome")
	fl.StringVar(&f.workload, "workload", "", "a Workload: classes of pods with stated distributions")
	fl.StringVar(&f.trace, "trace", "", "a trace of pods in CSV, Drydock's or Alibaba's cluster-trace-gpu-v2023")
	fl.StringVar(&f.traceNodes, "trace-nodes", "", "the trace's nodes in CSV (Alibaba's openb_node_list)")
	spanVar(fl, &f.traceFrom, "trace-from", 0, "where in the trace to begin; what lives then arrives at once")
	fl.Float64Var(&f.traceSpeed, "trace-speed", 1, "how many times faster than written the trace goes")
	fl.StringVar(&f.cluster, "from-cluster", "", "nodes and pods to begin with, from kubectl get nodes,pods -A -o yaml or json")
	fl.StringVar(&f.kubelet, "kubelet-config", "", "the kubelets' KubeletConfiguration")
	fl.StringVar(&f.scheduler, "scheduler-config", "", "kube-scheduler's KubeSchedulerConfiguration; of its client --scheduler-qps and --scheduler-burst say more")
	fl.StringSliceVar(&c.ControlPlane.Disable, "disable", nil, "controllers to leave out, by their names upstream; * is all, with the scheduler")
	fl.Float64Var(&c.ControlPlane.Scheduler.QPS, "scheduler-qps", scale.ScaleQPS, "how often the scheduler may ask the API a second; negative: without limit")
	fl.IntVar(&c.ControlPlane.Scheduler.Burst, "scheduler-burst", scale.ScaleBurst, "how often the scheduler may ask at once")
	fl.Float64Var(&c.ControlPlane.ControllerManager.QPS, "controller-manager-qps", scale.ScaleQPS, "how often each controller may ask the API a second; negative: without limit")
	fl.IntVar(&c.ControlPlane.ControllerManager.Burst, "controller-manager-burst", scale.ScaleBurst, "how often each controller may ask at once")
	fl.BoolVar(&f.apiLoad, "api-load", false, "requests take the API server time, and its seats (API priority and fairness); docs/scale.md says how much")
	fl.IntVar(&f.server.MaxRequestsInflight, "max-requests-inflight", 400, "kube-apiserver's flag; with --api-load")
	fl.IntVar(&f.server.MaxMutatingRequestsInflight, "max-mutating-requests-inflight", 200, "kube-apiserver's flag; with --api-load")
	fl.IntVar(&f.server.Cores, "api-cores", 0, "how many requests the API server answers at full speed at a time (0: any number); with --api-load")
	fl.StringArrayVar(&f.powerCuts, "power-cut", nil, "cut the power of nodes, NODES@TIME or NODES@TIME+FOR: 'topology.kubernetes.io/zone=a@10m+5m', 'node-1*@1h'; times are from the end of start-up (repeatable)")
	fl.StringArrayVar(&f.partitions, "partition", nil, "cut nodes off from the API, written as --power-cut (repeatable)")
	fl.StringArrayVar(&f.expect, "expect", nil, "a figure and what it is to keep: 'podStartup.p99 < 5s' (repeatable); docs/scale.md has the figures")
	fl.StringVar(&f.report, "report", "", "write a report to this directory: index.html and CSV files")
	fl.StringVar(&f.memory, "memory", "", "what the process is to stay below if it can (\"20Gi\"); garbage is collected more often for it (default: from the number of pods; GOGC in the environment turns this off)")
	spanVar(fl, &f.progress, "progress", 5*time.Second, "how often to tell where the run stands, where there is no terminal; 0: never")
	fl.BoolVar(&f.json, "json", false, "the same as -o json")
	outputVar(cmd, &f.output)
	fl.BoolVar(&f.verify, "verify", false, "run on 1, 2 and 4 cores and compare the traces' hashes")
	for _, name := range []string{"workload", "kubelet-config", "scheduler-config", "from-cluster"} {
		_ = cmd.MarkFlagFilename(name, "yaml", "yml", "json")
	}
	_ = cmd.MarkFlagDirname("report")
}

// loadScheduler reads the scheduler's configuration. What it says of the client holds where no flag
// says it.
func (f *scaleFlags) loadScheduler() error {
	data, err := scenarios.ReadFile(f.scheduler)
	if err != nil {
		return badInput("--scheduler-config: %w", err)
	}
	c, err := scenarios.ParseKubeSchedulerConfiguration(f.scheduler, data)
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	control := &f.cfg.ControlPlane
	if control.SchedulerConfig, err = schedulerconfig.Resolve(c); err != nil {
		return &codeError{exitBadInput, err}
	}
	if c.ClientConnection.QPS != 0 && !f.given("scheduler-qps") {
		control.Scheduler.QPS = 0
	}
	if c.ClientConnection.Burst != 0 && !f.given("scheduler-burst") {
		control.Scheduler.Burst = 0
	}
	f.cfg.Notes = append(f.cfg.Notes, lists.Map(schedulerconfig.NoEffect(c), func(s string) string { return "scheduler configuration: " + s })...)
	return nil
}

// maxInput bounds the size of the files that are read. kubectl's output of a large cluster has a
// few hundred megabytes; without a bound a wrong file, /dev/zero say, would fill the memory.
const maxInput = 8 << 30

// load reads the files that the flags name into the configuration. What a file
// says is judged by package scale; here is only what depends on the command line. It is called
// once, before anything of the run is made.
func (f *scaleFlags) load() error {
	c := &f.cfg
	c.Churn, c.CreateRate = float64(f.churn), float64(f.createRate)
	// Pods that are bound already wait for nobody, so a rate must be asked for.
	if c.Bound && !f.given("create-rate") {
		c.CreateRate = 0
	}
	if f.kubelet != "" {
		data, err := scenarios.ReadFile(f.kubelet)
		if err != nil {
			return badInput("--kubelet-config: %w", err)
		}
		if c.Kubelet, err = scenarios.ParseKubeletConfiguration(f.kubelet, data); err != nil {
			return &codeError{exitBadInput, err}
		}
	}
	if f.scheduler != "" {
		if err := f.loadScheduler(); err != nil {
			return err
		}
	}
	if f.workload != "" {
		data, err := scenarios.ReadFile(f.workload)
		if err != nil {
			return badInput("--workload: %w", err)
		}
		if c.Workload, err = scale.ParseWorkload(f.workload, data); err != nil {
			return &codeError{exitBadInput, err}
		}
	}
	for i, list := range [][]string{f.powerCuts, f.partitions} {
		for _, text := range list {
			fault, err := scale.ParseFault(text)
			if err != nil {
				return badInput("--%s: %w", []string{"power-cut", "partition"}[i], err)
			}
			fault.Partition = i == 1
			c.Faults = append(c.Faults, fault)
		}
	}
	// Files come before what flags mean together, since that depends on what is
	// in them.
	if err := f.loadCluster(); err != nil {
		return err
	}
	if err := f.loadTrace(); err != nil {
		return err
	}
	if err := f.together(); err != nil {
		return err
	}
	switch {
	case c.Workers > maxWorkers:
		return badInput("--workers: %d is more than %d", c.Workers, maxWorkers)
	case f.progress < 0:
		return badInput("--progress: %v is negative", f.progress)
	case f.verify && (f.report != "" || f.json || len(f.expect) > 0):
		return badInput("--verify excludes --report, --json and --expect: it tells of several runs")
	}
	if err := c.Validate(); err != nil {
		return &codeError{exitBadInput, err}
	}
	return nil
}

// together refuses flags that would do nothing beside others. A flag without
// effect is refused rather than ignored: whoever gives --pods-per-node beside a
// trace would read the report for something that it is not. idle has names of flags, so it need
// not know their types.
func (f *scaleFlags) together() error {
	c := &f.cfg
	idle := map[string]string{} // flags that would do nothing, and why
	say := func(why string, names ...string) {
		for _, name := range names {
			idle[name] = why
		}
	}
	switch {
	// A trace says everything, a cluster its pods, a workload which pods have
	// what.
	case c.Trace != nil:
		say("a trace says which pods there are and when they come", "pods-per-node", "create-rate", "startup-timeout", "probes")
	case c.Snapshot != nil && c.Workload == nil:
		say("the pods are those of the cluster", "pods-per-node", "create-rate", "probes")
	case c.Workload != nil:
		say("a workload says itself which pods have probes", "probes")
		if !slices.ContainsFunc(c.Workload.Spec.Classes, func(c scale.Class) bool { return c.Share > 0 }) {
			say("no class of the workload has a share", "pods-per-node")
		}
	}
	// Sorted, so that of several the same one is named each time.
	for _, name := range slices.Sorted(maps.Keys(idle)) {
		if f.given(name) {
			return badInput("--%s would do nothing: %s", name, idle[name])
		}
	}
	if c.Snapshot != nil && c.Workload != nil && len(c.Workload.Spec.Nodes) > 0 {
		return badInput("%s: spec.nodes would do nothing: the nodes are those of --from-cluster", f.workload)
	}
	return nil
}

// loadCluster reads the objects of a real cluster, as kubectl get -o yaml writes
// them. Errors have the file and the line of what is wrong.
func (f *scaleFlags) loadCluster() error {
	if f.cluster == "" {
		return nil
	}
	if f.given("nodes") {
		return badInput("--nodes and --from-cluster exclude each other: the file has the nodes")
	}
	file, err := openInput(f.cluster)
	if err != nil {
		return badInput("--from-cluster: %w", err)
	}
	defer file.Close()
	if f.cfg.Snapshot, err = scale.ReadSnapshot(f.cluster, io.LimitReader(file, maxInput)); err != nil {
		return &codeError{exitBadInput, err}
	}
	return nil
}

// loadTrace reads a trace of pods, and the nodes beside it if it has some. Speed and start are
// checked also without a trace, so that a mistake is told as one.
func (f *scaleFlags) loadTrace() error {
	switch {
	case !(f.traceSpeed > 0):
		return badInput("--trace-speed: %v is not more than 0", f.traceSpeed)
	case f.traceFrom < 0:
		return badInput("--trace-from: %v is negative", f.traceFrom)
	}
	if f.trace == "" {
		if f.traceNodes != "" || f.traceFrom != 0 || f.traceSpeed != 1 {
			return badInput("--trace-nodes, --trace-from and --trace-speed go with --trace")
		}
		return nil
	}
	file, err := openInput(f.trace)
	if err != nil {
		return badInput("--trace: %w", err)
	}
	defer file.Close()
	if f.cfg.Trace, err = scale.ReadTrace(f.trace, io.LimitReader(file, maxInput)); err != nil {
		return &codeError{exitBadInput, err}
	}
	// Before it is cut, for the message.
	end := f.cfg.Trace.End()
	if f.cfg.Trace.Cut(f.traceFrom, f.traceSpeed); f.cfg.Trace.Pods() == 0 {
		return badInput("--trace-from: all pods have ended by %v: the trace ends at %v", f.traceFrom, end)
	}
	if f.traceNodes == "" {
		return nil
	}
	nodes, err := openInput(f.traceNodes)
	if err != nil {
		return badInput("--trace-nodes: %w", err)
	}
	defer nodes.Close()
	shapes, n, err := scale.ReadTraceNodes(f.traceNodes, io.LimitReader(nodes, maxInput))
	if err != nil {
		return &codeError{exitBadInput, err}
	}
	f.cfg.Shapes = shapes
	if !f.given("nodes") {
		f.cfg.Nodes = n
	}
	return nil
}

// control looks at what is said of the control plane and the API server. A limit
// of 0 would let nothing through and the run would stand still, so it is refused;
// a negative one is none. Text rather than values is looked at, as one test serves integers and
// floats.
func (f *scaleFlags) control(fl *pflag.FlagSet) error {
	for _, name := range []string{"scheduler-qps", "controller-manager-qps", "scheduler-burst", "controller-manager-burst"} {
		// The flags' own variables can't tell 0 from nothing said; their text
		// can.
		switch fl.Lookup(name).Value.String() {
		case "0":
			return badInput("--%s: 0 would let nothing through; a negative qps is no limit", name)
		case "NaN":
			return badInput("--%s: NaN is no rate", name)
		}
	}
	for _, name := range []string{"max-requests-inflight", "max-mutating-requests-inflight", "api-cores"} {
		switch {
		case !fl.Changed(name):
		case !f.apiLoad:
			return badInput("--%s goes with --api-load", name)
		case fl.Lookup(name).Value.String() == "0" && name != "api-cores", fl.Lookup(name).Value.String()[0] == '-':
			return badInput("--%s: %s is not more than 0", name, fl.Lookup(name).Value)
		}
	}
	if f.apiLoad {
		f.cfg.APILoad = &f.server
	}
	return nil
}

// leastMemory is what a run may be asked to stay below, in bytes: with less the
// collector would run all the time. An amount below it usually lacks its unit.
const (
	// "20" is twenty bytes; whoever writes that means 20Gi.
	leastMemory = 256 << 20
	mostMemory  = 1 << 50
)

// memoryTarget is what the process is to stay below, in bytes. 0: nothing was
// said. It is parsed before files are read: those may take a minute.
func (f *scaleFlags) memoryTarget() (int64, error) {
	if f.memory == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(f.memory)
	if err != nil || q.Sign() <= 0 {
		return 0, badInput("--memory: %q is no quantity such as 20Gi", f.memory)
	}
	switch {
	case q.CmpInt64(leastMemory) < 0:
		return 0, badInput("--memory: %s is less than 256Mi", f.memory)
	case q.CmpInt64(mostMemory) > 0:
		return 0, badInput("--memory: %s is more than 1Pi", f.memory)
	}
	return q.Value(), nil
}

// pods is how many pods the run is about. It is an estimate, before the run: the
// garbage collector is paced by it. A trace counts with all of its rows, though they don't live
// at once.
func (f *scaleFlags) pods() int {
	n := 0
	if t := f.cfg.Trace; t != nil {
		n += t.Pods()
	}
	if s := f.cfg.Snapshot; s != nil {
		n += len(s.Pods)
	}
	if f.cfg.Trace == nil && (f.cfg.Snapshot == nil || f.cfg.Workload != nil) {
		n += f.cfg.Nodes * f.cfg.PodsPerNode
	}
	return n
}

// run runs the cluster and writes what came of it, also when it was interrupted
// or failed: hours of a run are not to be lost. The order: what can be refused, what is shown
// beforehand, the run, what is shown afterwards. Exit codes follow the worst that happened.
func (f *scaleFlags) run(ctx context.Context) error {
	target, err := f.memoryTarget()
	if err != nil {
		return err
	}
	if err := f.load(); err != nil {
		return err
	}
	// The pace is set before anything is built: building makes garbage, too.
	pace := newPacer(target, f.cfg.Nodes, f.pods())
	if f.verify {
		return f.runVerify(ctx, pace)
	}
	// The directory is made now: a run must not end with a report that can't be
	// written.
	rep, err := newReporter(f.report, f.title(), f.facts(), f.command)
	if err != nil {
		return err
	}
	// Facts stand before the run, for who watches, and in the report, for who
	// reads.
	f.head()
	rep.told = true
	show := newScaleProgress(f.stderr, f.progress)
	// It is called between runs of the engine, when the heap is at rest; a good moment to look at
	// it.
	res, err := scale.Run(ctx, f.cfg, scale.Options{Clock: time.Now, Attach: rep.attach, Progress: func(p scale.Progress) {
		pace.adjust()
		show.show(p)
	}})
	show.close()
	var config *scale.ConfigError
	// A mistake that showed when the cluster was built: there is nothing to
	// write.
	if errors.As(err, &config) {
		return &codeError{exitBadInput, err}
	}
	// Whatever went wrong, what there is is shown.
	werr := f.write(res, err, pace, rep)
	switch {
	case err != nil:
		return &codeError{exitInternal, err}
	case werr != nil:
		return &codeError{exitInternal, werr}
	case res.Interrupted:
		return &codeError{code: exitInterrupted}
	case !f.judge(rep):
		return &codeError{code: exitFailed}
	}
	return nil
}

// judge tells of each threshold whether the figures keep it; false if one does not.
func (f *scaleFlags) judge(rep *reporter) bool {
	all := true
	w := f.stdout
	if f.json {
		w = f.stderr
	}
	figures := rep.figures()
	for _, t := range f.thresholds {
		kept, line := t.Judge(figures)
		all = all && kept
		fmt.Fprintf(w, "%s %s\n", map[bool]string{true: "ok      ", false: "FAILED  "}[kept], line)
	}
	return all
}

// runVerify compares runs on several numbers of cores. Each cluster is dropped
// before the next is built, since two may not fit. Records are compared beside the hash, which
// tells a longer trace from another one.
func (f *scaleFlags) runVerify(ctx context.Context, pace *pacer) error {
	var first *scale.Result
	for _, procs := range []int{1, 2, 4} {
		// The engine's workers are bounded and so is the process, or idle cores
		// would still run the garbage collector beside it.
		before := runtime.GOMAXPROCS(procs)
		cfg := f.cfg
		cfg.Workers = procs
		show := newScaleProgress(f.stderr, f.progress)
		res, err := scale.Run(ctx, cfg, scale.Options{Clock: time.Now, Progress: func(p scale.Progress) {
			pace.adjust()
			show.show(p)
		}})
		show.close()
		runtime.GOMAXPROCS(before)
		var config *scale.ConfigError
		switch {
		case errors.As(err, &config):
			return &codeError{exitBadInput, err}
		case err != nil:
			return &codeError{exitInternal, err}
		case res.Interrupted:
			fmt.Fprintln(f.stderr, "drydock: interrupted")
			return &codeError{code: exitInterrupted}
		}
		fmt.Fprintf(f.stdout, "%s: hash %016x, %d records, %s of wall time\n", scenarios.Plural(procs, "worker"), res.Hash, res.Records, scenarios.RoundWall(res.Wall.Total()))
		if first == nil {
			first = res
		} else if first.Hash != res.Hash || first.Records != res.Records {
			fmt.Fprintln(f.stdout, "DIFFERS: the run does not repeat")
			return &codeError{code: exitFailed}
		}
	}
	fmt.Fprintf(f.stdout, "VERIFIED: runs with 1, 2 and 4 workers have the hash %016x\n", first.Hash)
	return nil
}
