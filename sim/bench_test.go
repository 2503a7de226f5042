package sim_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/trace"
)

// BenchmarkCluster measures a cluster of nodes with 30 pods each: bytes of live
// heap per pod, all in; pods started per wall second; and node-seconds per wall
// second once they run. An iteration is ten virtual minutes. DRYDOCK_BENCH_NODES
// replaces the default number of nodes.
//
//	go test ./sim -run '^$' -bench Cluster -benchtime 3x
func BenchmarkCluster(b *testing.B) {
	nodes := 1000
	if n, err := strconv.Atoi(os.Getenv("DRYDOCK_BENCH_NODES")); err == nil {
		nodes = n
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as cmd/drydock does
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("nodes=%d/workers=%d", nodes, workers), func(b *testing.B) { benchCluster(b, nodes, workers) })
	}
}

const podsPerNode = 30

func benchCluster(b *testing.B, nodes, workers int) {
	c := newBenchCluster(b, nodes, workers)
	defer c.Close()
	until := 30 * time.Second
	mustRun(b, c, until)
	empty := liveHeap()
	stamp(b, c)
	began := time.Now()
	until += 30 * time.Second
	mustRun(b, c, until)
	started := time.Since(began)
	if got := c.PodsByPhase()[v1.PodRunning]; got != nodes*podsPerNode {
		b.Fatalf("%d pods run", got)
	}
	perPod := float64(liveHeap()-empty) / float64(nodes*podsPerNode)
	b.ResetTimer()
	for range b.N {
		until += 10 * time.Minute
		mustRun(b, c, until)
	}
	b.ReportMetric(float64(nodes)*600*float64(b.N)/b.Elapsed().Seconds(), "node-s/s")
	b.ReportMetric(perPod, "B/pod")
	b.ReportMetric(float64(nodes*podsPerNode)/started.Seconds(), "starts/s")
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

// stamp creates the pods, bound to their nodes.
func stamp(b *testing.B, c *sim.Cluster) {
	b.Helper()
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("128Mi")}
	t, err := c.API().NewTemplate(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "app:1", Resources: v1.ResourceRequirements{Requests: requests}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for i, n := range c.Nodes() {
		for k := range podsPerNode {
			if _, err := c.API().CreateFromTemplate(t, apiserver.Stamp{Name: fmt.Sprintf("web-%d", i*podsPerNode+k), NodeName: n.Name()}); err != nil {
				b.Fatal(err)
			}
		}
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
