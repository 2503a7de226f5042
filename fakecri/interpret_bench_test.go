package fakecri

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// BenchmarkInterpreted measures containers that run a script which sleeps in a
// loop: bytes of live heap each, and seconds of container time per wall second.
func BenchmarkInterpreted(b *testing.B) {
	const containers = 200
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	l := loop.New(loop.Options{Name: "node", Seed: 1})
	defer l.Close()
	rt := New(Options{Loop: l, Images: []Image{busyboxImage}, PodCIDR: "10.0.0.0/16"})
	rt.StartDaemon()
	g := l.NewGroup("caller")
	c := rt.Client(g)
	rt.kern.Kernel()
	before := heap()
	g.Go("start", func(ctx context.Context) {
		e := &env{TB: b, l: l, rt: rt, c: c, g: g, ctx: ctx}
		for i := range containers {
			pod := fmt.Sprintf("web-%d", i)
			_, err := e.startCommand(e.sandbox(pod, 0), pod, "main", "busybox", "sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; i=$((i+1)); done")
			e.ok(err)
		}
	})
	mustRun := func(d time.Duration) {
		if err := l.RunUntil(l.Now().Add(d)); err != nil {
			b.Fatal(err)
		}
	}
	mustRun(5 * time.Minute)
	each := float64(heap()-before) / containers
	b.ResetTimer()
	for range b.N {
		mustRun(time.Minute)
	}
	b.ReportMetric(each, "B/container")
	b.ReportMetric(containers*60*float64(b.N)/b.Elapsed().Seconds(), "container-s/s")
}
