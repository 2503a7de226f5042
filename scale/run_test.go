package scale

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

func mustRun(t *testing.T, cfg Config, opts Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), cfg, opts)
	if err != nil || r.Interrupted || len(r.Errors) > 0 {
		t.Fatalf("%v, interrupted %v, errors %v", err, r.Interrupted, r.Errors)
	}
	return r
}

func small() Config {
	c := DefaultConfig()
	c.Nodes, c.PodsPerNode, c.For, c.Seed = 12, 10, 4*time.Minute, 5
	return c
}

func TestDefaultRun(t *testing.T) {
	cfg := small()
	cfg.Churn, cfg.Probes = 1, 0.25
	r := mustRun(t, cfg, Options{})
	if !r.Settled || r.Nodes != 12 || r.Ready != 12 || r.Wanted != 120 || r.StartedAt <= 0 || r.Virtual != r.StartedAt+cfg.For {
		t.Errorf("%+v", r)
	}
	// 240 replacements are expected; four standard deviations are 62.
	if n := r.Created - 120; n < 178 || n > 302 {
		t.Errorf("%d pods were replaced, want about 240", n)
	}
	if live := r.Pods.Running + r.Pods.Pending; live < 119 || live > 125 {
		t.Errorf("%+v", r.Pods)
	}
	if r.Probes == 0 {
		t.Error("nothing was probed")
	}
	other := cfg
	other.Seed++
	if mustRun(t, other, Options{}).Hash == r.Hash {
		t.Error("another seed has the same hash")
	}
}

func TestEveryNumberOfWorkersHasOneHash(t *testing.T) {
	w, err := ParseWorkload("testdata/mixed.yaml", readFile(t, "testdata/mixed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Workload, cfg.Churn = w, 2
	cfg.Workers = 1
	first := mustRun(t, cfg, Options{})
	for _, n := range []int{2, 4} {
		cfg.Workers = n
		if r := mustRun(t, cfg, Options{}); r.Hash != first.Hash || r.Records != first.Records {
			t.Errorf("%d workers: %016x, one: %016x", n, r.Hash, first.Hash)
		}
	}
}

// created collects the pods of a run as they are created, by namespace/name.
func created(to map[string]*v1.Pod) func(*sim.Cluster) {
	return func(c *sim.Cluster) {
		c.API().OnChange(func(ch apiserver.Change) {
			if pod, ok := ch.New.(*v1.Pod); ok && ch.Type == watch.Added {
				to[pod.Namespace+"/"+pod.Name] = pod
			}
		})
	}
}

func TestWorkload(t *testing.T) {
	w, err := ParseWorkload("testdata/mixed.yaml", readFile(t, "testdata/mixed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Workload, cfg.Nodes, cfg.For = w, 20, 6*time.Minute
	pods := map[string]*v1.Pod{}
	r := mustRun(t, cfg, Options{Attach: created(pods)})
	by := map[string]int{}
	cpus := map[int64]bool{}
	for _, p := range pods {
		class := p.Labels[LabelClass]
		by[class]++
		q := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
		if class == "web" {
			cpus[q.MilliValue()] = true
			if l := p.Spec.Containers[0].Resources.Limits[v1.ResourceCPU]; l.Cmp(q) != 0 {
				t.Errorf("%s: limit %v, request %v", p.Name, &l, &q)
			}
		}
	}
	// Two arrivals a second for six minutes; four standard deviations are 107.
	if by["web"] != 200 || by["cache"] < 60 || by["batch"] < 613 || by["batch"] > 827 || len(cpus) < 30 {
		t.Errorf("%v, %d different requests", by, len(cpus))
	}
	if r.Pods.Succeeded == 0 || r.Pods.Failed == 0 || r.Pods.Failed > r.Pods.Succeeded/5 {
		t.Errorf("%+v", r.Pods)
	}
	if p := pods["data/cache-0"]; p == nil || p.Spec.RestartPolicy != v1.RestartPolicyAlways {
		t.Errorf("%v", p)
	}
}

func TestTrace(t *testing.T) {
	tr, err := ReadTrace("testdata/trace.csv", strings.NewReader(string(readFile(t, "testdata/trace.csv"))))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Nodes, cfg.Trace, cfg.For = 3, tr, 0
	var c *sim.Cluster
	at := map[string]time.Duration{}
	var failed *v1.Pod
	r := mustRun(t, cfg, Options{Attach: func(cl *sim.Cluster) {
		c = cl
		c.API().OnChange(func(ch apiserver.Change) {
			pod, ok := ch.New.(*v1.Pod)
			if !ok {
				return
			}
			now := c.API().Loop().Since(c.Start())
			switch {
			case ch.Type == watch.Added:
				at[pod.Name] = now
			case pod.Status.Phase == v1.PodFailed:
				failed = pod
			case pod.DeletionTimestamp != nil && at[pod.Name+"'s end"] == 0:
				at[pod.Name+"'s end"] = now
			}
		})
	}})
	began := r.NodesReadyAt
	for name, want := range map[string]time.Duration{"a": 0, "b": 5 * time.Second, "c": 7500 * time.Millisecond, "pod-6": 10 * time.Second, "a's end": time.Minute} {
		if d := at[name] - began - want; d < 0 || d > time.Millisecond {
			t.Errorf("%s at %v, want %v after %v", name, at[name], want, began)
		}
	}
	if failed == nil || failed.Name != "b" {
		t.Fatal("b has not failed")
	}
	end := failed.Status.ContainerStatuses[0].State.Terminated
	if end.ExitCode != 3 || end.FinishedAt.Sub(end.StartedAt.Time) != 20*time.Second {
		t.Errorf("%+v", end)
	}
	if r.Pods != (Pods{Pending: 1, Running: 1, Failed: 1}) { // d finds no node with disk=ssd
		t.Errorf("%+v", r.Pods)
	}
}

func TestSnapshot(t *testing.T) {
	s, err := ReadSnapshot("testdata/cluster.yaml", strings.NewReader(string(readFile(t, "testdata/cluster.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Snapshot, cfg.For = s, time.Minute
	pods, nodes := map[string]*v1.Pod{}, map[string]*v1.Node{}
	var restarts int32
	r := mustRun(t, cfg, Options{Attach: func(c *sim.Cluster) {
		c.API().OnChange(func(ch apiserver.Change) {
			switch x := ch.New.(type) {
			case *v1.Pod:
				pods[x.Name] = x
				for _, s := range append(x.Status.ContainerStatuses, x.Status.InitContainerStatuses...) {
					restarts += s.RestartCount
				}
			case *v1.Node:
				nodes[x.Name] = x
			}
		})
	}})
	if r.Nodes != 2 || r.Pods != (Pods{Running: 3}) || restarts > 0 || len(pods) != 3 {
		t.Errorf("%+v, %d restarts, %d pods", r, restarts, len(pods))
	}
	if db := pods["db-0"]; db == nil || db.Spec.NodeName != "n1" || *db.Spec.Priority != 1000 || len(db.OwnerReferences) > 0 || db.Status.Phase != v1.PodRunning {
		t.Errorf("%+v", db)
	}
	if p := pods["static-n2"]; p == nil || p.Annotations[annotationMirror] == "" || p.Status.Phase != v1.PodRunning {
		t.Errorf("%+v", p)
	}
	n1, n2 := nodes["n1"], nodes["n2"]
	mem, gpu := n1.Status.Allocatable[v1.ResourceMemory], n1.Status.Allocatable["nvidia.com/gpu"]
	cpu := n1.Status.Allocatable[v1.ResourceCPU]
	if mem.String() != "30Gi" || cpu.String() != "7910m" || gpu.Value() != 2 || n1.Status.Allocatable.Pods().Value() != 58 {
		t.Errorf("%v", n1.Status.Allocatable)
	}
	if len(n1.Spec.Taints) != 1 || n1.Spec.Taints[0].Key != "dedicated" || n1.Labels[v1.LabelTopologyZone] != "a" {
		t.Errorf("%+v %v", n1.Spec.Taints, n1.Labels)
	}
	if !n2.Spec.Unschedulable {
		t.Error("n2 is not cordoned")
	}
}

// TestSnapshotOfOddPods begins with what real clusters hold beside plain pods: all of
// them run, and what is taken otherwise is said.
func TestSnapshotOfOddPods(t *testing.T) {
	s, err := ReadSnapshot("testdata/odd.yaml", strings.NewReader(string(readFile(t, "testdata/odd.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Snapshot, cfg.For = s, time.Minute
	pods := map[string]*v1.Pod{}
	events := map[string]string{}
	r := mustRun(t, cfg, Options{Attach: func(c *sim.Cluster) {
		c.API().OnChange(func(ch apiserver.Change) {
			switch x := ch.New.(type) {
			case *v1.Pod:
				pods[x.Name] = x
			case *v1.Event:
				if x.Type == v1.EventTypeWarning && x.InvolvedObject.Kind == "Pod" {
					events[x.InvolvedObject.Name] = x.Reason + ": " + x.Message
				}
			}
		})
	}})
	if !r.Settled || r.Pods != (Pods{Running: 4}) || len(events) > 0 || r.Restarts > 0 {
		t.Errorf("%+v, %v", r, events)
	}
	if side := pods["sidecar"]; side == nil || len(side.Spec.Containers[0].VolumeDevices) > 0 || *side.Spec.Volumes[2].HostPath.Type != v1.HostPathFileOrCreate || !*side.Status.InitContainerStatuses[1].Started {
		t.Errorf("%+v", side)
	}
	want := []string{
		"ephemeral containers are left out (1)",
		"nodes are not ready: they are taken as ready (1)",
		"nodes don't tell their capacity: what is missing is of a machine with 4 CPUs and 16Gi (1)",
		"pods claim devices, which a snapshot doesn't have: they run without (1)",
		"pods have scheduling gates, and who would remove them is not there: they are scheduled (1)",
		"volumes of storage outside the node are taken as empty directories (3)",
		"volumes want files, directories, sockets or devices of their node: empty ones are made (3)",
	}
	if !slices.Equal(r.Warnings, want) {
		t.Errorf("warnings:\n%s", strings.Join(r.Warnings, "\n"))
	}
}

// TestStarts has a kubelet reject what it has no room for: that is no start, and the
// report says the same.
func TestStarts(t *testing.T) {
	cfg := small()
	cfg.Nodes, cfg.PodsPerNode, cfg.Bound, cfg.CreateRate, cfg.For = 1, 120, true, 0, time.Minute // a node takes 110
	if r := mustRun(t, cfg, Options{}); r.Started != 110 || r.StartedPods != 110 || r.Pods != (Pods{Running: 110, Failed: 10}) || r.Ended != 10 {
		t.Errorf("%+v", r)
	}
}

// TestChurn takes pods without an end of their own only, at the rate asked for.
func TestChurn(t *testing.T) {
	w, err := ParseWorkload("w.yaml", []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Workload
spec:
  classes:
  - {name: stays, count: 20}
  - {name: lives, count: 20, lifetime: 10h}
  - {name: made, count: 20, controller: ReplicaSet, replicas: 20}
`))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Workload, cfg.PodsPerNode, cfg.Churn, cfg.For = w, 0, 2, 10*time.Minute
	deleted := map[string]int{}
	r := mustRun(t, cfg, Options{Attach: func(c *sim.Cluster) {
		c.API().OnChange(func(ch apiserver.Change) {
			if pod, ok := ch.New.(*v1.Pod); ok && ch.Type == watch.Modified && pod.DeletionTimestamp != nil && ch.Old.(*v1.Pod).DeletionTimestamp == nil {
				deleted[pod.Labels[LabelClass]]++
			}
		})
	}})
	sum := deleted["stays"] + deleted["made"]
	if deleted["lives"] > 0 || deleted["stays"] < sum/3 || deleted["made"] < sum/3 || sum < 1100 || sum > 1300 || r.Pods.Running < 55 {
		t.Errorf("%v, %+v", deleted, r.Pods)
	}
	w.Spec.Classes = w.Spec.Classes[1:2]
	if _, err := Run(context.Background(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "churn: no class of the workload has pods") {
		t.Errorf("%v", err)
	}
}

// What a class's pods take from ConfigMaps and Secrets is there.
func TestWorkloadConfigs(t *testing.T) {
	w, err := ParseWorkload("w.yaml", []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Workload
spec:
  classes:
  - name: a
    namespace: prod
    count: 2
    controller: Deployment
    pod:
      spec:
        volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: p}]}}]
        containers: [{name: a, image: a, envFrom: [{configMapRef: {name: c}}], volumeMounts: [{name: v, mountPath: /v}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Workload, cfg.Startup, cfg.For = w, time.Minute, time.Second
	if r := mustRun(t, cfg, Options{}); !r.Settled || r.Pods != (Pods{Running: 2}) || len(r.Warnings) > 0 {
		t.Errorf("%+v", r)
	}
}

// A pod that waits for a claim that nobody makes isn't placed, and the run says that its
// start-up isn't over.
func TestWorkloadWarns(t *testing.T) {
	w, err := ParseWorkload("w.yaml", []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Workload
spec:
  classes:
  - {name: db, count: 1, pod: {spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: c}}], containers: [{name: a, image: a, volumeMounts: [{name: d, mountPath: /d}]}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Workload, cfg.Startup, cfg.For = w, 30*time.Second, time.Second
	r := mustRun(t, cfg, Options{})
	if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "start-up is not over after 30s: 1 pod wanted, 1 pending") || r.Pods.Pending != 1 {
		t.Errorf("%+v", r)
	}
}

func TestBoundPods(t *testing.T) {
	cfg := small()
	cfg.Bound, cfg.CreateRate = true, 0
	cfg.ControlPlane.Disable = []string{"*"}
	pods := map[string]*v1.Pod{}
	r := mustRun(t, cfg, Options{Attach: created(pods)})
	on := map[string]int{}
	for _, p := range pods {
		on[p.Spec.NodeName]++
	}
	if r.Pods.Running != 120 || len(on) != 12 || on["node-3"] != 10 {
		t.Errorf("%+v %v", r.Pods, on)
	}
}

func TestUnschedulablePodsEndStartup(t *testing.T) {
	cfg := small()
	cfg.PodsPerNode, cfg.Startup, cfg.For, cfg.CreateRate = 200, time.Minute, time.Minute, 0 // a node takes 110
	r := mustRun(t, cfg, Options{})
	if r.Settled || r.Pods.Pending == 0 || len(r.Warnings) != 1 || r.StartedAt != r.NodesReadyAt+time.Minute {
		t.Errorf("%+v", r)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	phases := map[Phase]bool{}
	r, err := Run(ctx, small(), Options{Progress: func(p Progress) {
		phases[p.Phase] = true
		if p.Phase == PhaseSteady && p.Until-p.Now < 3*time.Minute {
			cancel()
		}
	}})
	if err != nil || !r.Interrupted || r.Pods.Running != 120 || r.Virtual >= r.StartedAt+2*time.Minute || !phases[PhaseStartup] {
		t.Errorf("%v, %+v, %v", err, r, phases)
	}
}

func TestBadConfigs(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Nodes = 0 }, "nodes: 0 is not within 1 and 100000"},
		{func(c *Config) { c.Nodes = MaxNodes + 1 }, "nodes: 100001 is not within 1 and 100000"},
		{func(c *Config) { c.Probes = 1.5 }, "share of probes: 1.5 is not within 0 and 1"},
		{func(c *Config) { c.Nodes, c.PodsPerNode = 100000, 100 }, "10000000 pods are more than"},
		{func(c *Config) { c.ControlPlane.Disable = []string{"x"} }, `no controller is called "x"`},
		{func(c *Config) { c.Trace = &Trace{}; c.Churn = 1 }, "churn: "},
		{func(c *Config) { c.For = 11 * 365 * 24 * time.Hour }, "more than ten years"},
		{func(c *Config) { c.Trace = &Trace{}; c.Bound = true }, "bound pods are for generated workloads"},
	} {
		cfg := small()
		tt.change(&cfg)
		_, err := Run(context.Background(), cfg, Options{})
		var ce *ConfigError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}
