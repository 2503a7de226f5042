package sim_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/hugepages"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// BenchmarkCluster measures a cluster of nodes with 30 pods each, a third of them
// probed, the whole control plane on:
//
//	starts/s   pods per wall second, from their creation to all Running
//	node-s/s   node-seconds per wall second once they run; an iteration is ten
//	           virtual minutes
//	kernel     the rate of a bare event kernel with 4.5 timer events per
//	           node-second on as many cores, measured right after
//	of-kernel  the one by the other
//	B/pod      live heap, less that of the cluster without pods
//	heapB/pod  all live heap by pod
//	rssB/pod   the process's peak resident memory by pod
//	gc-s       processor time that the collector took, start-up included
//	steady-gc-s  what of it fell to steady state
//	garbageB/node-s  bytes that a node-second of steady state allocates
//
// DRYDOCK_BENCH_NODES replaces the default number of nodes. Kubernetes' published
// limit for an hour is
//
//	DRYDOCK_BENCH_NODES=5000 go test ./sim -run '^$' -bench Cluster/nodes=5000/workers=2 -benchtime 6x
//
// With DRYDOCK_BENCH_GC=off nothing is collected (12 GB at 5,000 nodes): one
// worker leaves the other core to the collector, so that is how to compare
// numbers of workers.
func BenchmarkCluster(b *testing.B) {
	nodes := benchNodes(1000)
	defer collectSeldom(nodes)()
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("nodes=%d/workers=%d", nodes, workers), func(b *testing.B) { benchCluster(b, nodes, workers) })
	}
}

// BenchmarkNodes is BenchmarkCluster for clusters of several sizes: what a
// node-second costs must not depend on their number.
func BenchmarkNodes(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000, 10000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			defer collectSeldom(nodes)()
			benchCluster(b, nodes, 1)
		})
	}
}

// BenchmarkStart measures how fast pods start, 5,000 a virtual second at 5,000
// nodes: spread, one on each node per second, as a scheduler has them come, or
// node by node, as they come to a node that joins. The second is faster since a
// node's memory stays in the processor's cache for all of its pods.
func BenchmarkStart(b *testing.B) {
	nodes := benchNodes(1000)
	defer collectSeldom(nodes)()
	for _, a := range []struct {
		name   string
		arrive arrival
	}{{"spread", spread}, {"by-node", byNode}} {
		b.Run(fmt.Sprintf("nodes=%d/arrival=%s", nodes, a.name), func(b *testing.B) {
			var wall time.Duration
			for range b.N {
				c, _, m := startBenchCluster(b, nodes, 0, a.arrive)
				c.Close()
				wall += m.started
			}
			b.ReportMetric(float64(nodes*podsPerNode*b.N)/wall.Seconds(), "starts/s")
		})
	}
}

// BenchmarkChurn measures a virtual minute in which a hundred pods a second end
// and are replaced, and one in which none do.
func BenchmarkChurn(b *testing.B) {
	nodes := benchNodes(1000)
	defer collectSeldom(nodes)()
	for _, rate := range []int{0, 100} {
		b.Run(fmt.Sprintf("nodes=%d/rate=%d", nodes, rate), func(b *testing.B) { benchChurn(b, nodes, rate) })
	}
}

// collectSeldom has garbage grow to what 20 KB of resident memory per pod allow,
// or a gigabyte.
func collectSeldom(nodes int) (restore func()) {
	if os.Getenv("DRYDOCK_BENCH_GC") == "off" {
		percent := debug.SetGCPercent(-1)
		return func() { debug.SetGCPercent(percent) }
	}
	percent := debug.SetGCPercent(400)
	limit := debug.SetMemoryLimit(max(1<<30, int64(nodes)*podsPerNode*19<<10))
	stop := hugepages.Keep(100 * time.Millisecond)
	return func() {
		stop()
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

func benchNodes(n int) int {
	if v, err := strconv.Atoi(os.Getenv("DRYDOCK_BENCH_NODES")); err == nil {
		return v
	}
	return n
}

const podsPerNode = 30

func benchCluster(b *testing.B, nodes, workers int) {
	collected := gcSeconds()
	c, until, m := startBenchCluster(b, nodes, workers, spread)
	defer c.Close()
	pods := float64(nodes * podsPerNode)
	nodeSeconds := float64(nodes) * 600 * float64(b.N)
	atStart, allocated := gcSeconds(), allocatedBytes()
	b.ResetTimer()
	for range b.N {
		until += 10 * time.Minute
		mustRun(b, c, until)
	}
	all, resyncs := c.Syncs() // whoever looks has the resyncs made that were put off
	b.StopTimer()
	if float64(resyncs) < 0.9*nodeSeconds*podsPerNode/90 || resyncs > all {
		b.Fatalf("%d of %d syncs are resyncs, too few for one of each pod in 60 to 90 s", resyncs, all)
	}
	b.ReportMetric(gcSeconds()-atStart, "steady-gc-s")
	b.ReportMetric((allocatedBytes()-allocated)/nodeSeconds, "garbageB/node-s")
	rate := nodeSeconds / b.Elapsed().Seconds()
	kernel := kernelRate(nodes, workers)
	b.ReportMetric(rate, "node-s/s")
	b.ReportMetric(kernel, "kernel")
	b.ReportMetric(rate/kernel, "of-kernel")
	b.ReportMetric(m.perPod, "B/pod")
	b.ReportMetric(m.heap/pods, "heapB/pod")
	b.ReportMetric(pods/m.started.Seconds(), "starts/s")
	if rss, ok := peakRSS(); ok {
		b.ReportMetric(rss/pods, "rssB/pod")
	}
	b.ReportMetric(gcSeconds()-collected, "gc-s")
}

// started is what the start of a cluster's pods came to.
type started struct {
	perPod, heap float64 // bytes
	started      time.Duration
}

// startBenchCluster returns a cluster whose pods all run, and its time.
func startBenchCluster(b *testing.B, nodes, workers int, arrive arrival) (*sim.Cluster, time.Duration, started) {
	b.Helper()
	c := newBenchCluster(b, nodes, workers)
	until := 30 * time.Second
	mustRun(b, c, until)
	empty := liveHeap()
	began := time.Now()
	stamp(b, c, until, arrive)
	var out started
	for c.PodsByPhase()[v1.PodRunning] < nodes*podsPerNode {
		if until += time.Second; until > 5*time.Minute {
			b.Fatalf("after %v %v", until, c.PodsByPhase())
		}
		mustRun(b, c, until)
	}
	out.started = time.Since(began)
	until += 2 * time.Minute // the last statuses and syncs of the start
	mustRun(b, c, until)
	out.heap = float64(liveHeap())
	out.perPod = (out.heap - float64(empty)) / float64(nodes*podsPerNode)
	return c, until, out
}

func benchChurn(b *testing.B, nodes, rate int) {
	c, until, _ := startBenchCluster(b, nodes, 0, spread)
	defer c.Close()
	next := 0
	templates := []*apiserver.Template{benchTemplate(b, c, true), benchTemplate(b, c, false), benchTemplate(b, c, false)}
	// Each pod is deleted with its grace period and another created in its place.
	replace := func(at time.Duration) {
		c.At(at, func() {
			n := next % len(c.Nodes())
			old := fmt.Sprintf("web-%d", next)
			next++
			if err := c.API().Delete(apiserver.KindPod, "default", old, metav1.DeleteOptions{}); err != nil {
				b.Error(err)
			}
			t := templates[next%len(templates)]
			if _, err := c.API().CreateFromTemplate(t, apiserver.Stamp{Name: fmt.Sprintf("web-%d", nodes*podsPerNode+next-1), NodeName: c.Nodes()[n].Name()}); err != nil {
				b.Error(err)
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		for i := range 60 * rate {
			replace(until + time.Duration(i)*time.Second/time.Duration(rate))
		}
		until += time.Minute
		mustRun(b, c, until)
	}
	b.ReportMetric(float64(nodes)*60*float64(b.N)/b.Elapsed().Seconds(), "node-s/s")
	if rate > 0 {
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(60*rate*b.N), "us/replacement")
	}
}

// kernelRate measures timers alone: each node is a loop with 4.5 timer events a
// second that touch one word of state.
func kernelRate(nodes, workers int) float64 {
	e, err := loop.NewEngine(loop.EngineOptions{Seed: 1, Workers: workers})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	for i := range nodes {
		l := e.NewLoop(fmt.Sprint("n", i))
		n := new(int)
		body := func() { *n++ }
		for k := range 9 {
			l.Root().After(l.Between(0, 2*time.Second, "phase", "", uint64(k)), func() { l.Root().Every("t", 2*time.Second, 0, body) })
		}
	}
	at := loop.Epoch().Add(4 * time.Second)
	_ = e.RunUntil(at)
	runtime.GC()
	began := time.Now()
	_ = e.RunUntil(at.Add(100 * time.Second))
	return float64(nodes) * 100 / time.Since(began).Seconds()
}

func gcSeconds() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

func allocatedBytes() float64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64())
}

func newBenchCluster(b *testing.B, nodes, workers int) *sim.Cluster {
	b.Helper()
	c, err := sim.New(sim.Options{Seed: 1, Workers: workers, Keep: func(trace.Kind, string, []trace.Field) bool { return false }})
	if err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		_, err := c.AddNode(sim.NodeOptions{
			Name:     fmt.Sprintf("worker-%d", i),
			Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi")},
			Runtime:  fakecri.Options{Images: []fakecri.Image{{Name: "app:1", Present: true}}},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// benchTemplate is of a pod of one container, which may have a readiness probe.
func benchTemplate(b *testing.B, c *sim.Cluster, probed bool) *apiserver.Template {
	b.Helper()
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("128Mi")}
	app := v1.Container{Name: "app", Image: "app:1", Resources: v1.ResourceRequirements{Requests: requests}}
	if probed {
		app.Ports = []v1.ContainerPort{{ContainerPort: 8080}}
		app.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	}
	t, err := c.API().NewTemplate(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{app}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// arrival says which pod is the i-th of n that come to nodes one after another:
// the k-th of that node.
type arrival func(i, nodes int) (node, k int)

func spread(i, nodes int) (node, k int) { return i % nodes, i / nodes }
func byNode(i, _ int) (node, k int)     { return i / podsPerNode, i % podsPerNode }

// stamp creates as many pods as there are nodes each virtual second, a third of
// them probed, until all have podsPerNode.
func stamp(b *testing.B, c *sim.Cluster, from time.Duration, arrive arrival) {
	b.Helper()
	plain, probed := benchTemplate(b, c, false), benchTemplate(b, c, true)
	nodes := c.Nodes()
	for second := range podsPerNode {
		c.At(from+time.Duration(second)*time.Second, func() {
			for i := second * len(nodes); i < (second+1)*len(nodes); i++ {
				node, k := arrive(i, len(nodes))
				t := plain
				if k%3 == 0 {
					t = probed
				}
				name := fmt.Sprintf("web-%d", k*len(nodes)+node)
				if _, err := c.API().CreateFromTemplate(t, apiserver.Stamp{Name: name, NodeName: nodes[node].Name()}); err != nil {
					b.Error(err)
				}
			}
		})
	}
}

func mustRun(b *testing.B, c *sim.Cluster, until time.Duration) {
	b.Helper()
	if err := c.RunUntil(until); err != nil {
		b.Fatal(err)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
