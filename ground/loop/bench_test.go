package loop

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"
)

// BenchmarkBarePull is the floor: one resume and one yield of an iter.Pull.
func BenchmarkBarePull(b *testing.B) {
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		for yield(struct{}{}) {
		}
	})
	defer stop()
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}

// BenchmarkResumeYield is a task that gives way and is resumed.
func BenchmarkResumeYield(b *testing.B) {
	l := New(Options{})
	defer l.Close()
	l.Root().Go("t", func(ctx context.Context) {
		for {
			if l.Sleep(ctx, time.Microsecond) != nil {
				return
			}
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		l.step()
	}
}

// BenchmarkTick is one periodic callback among a thousand.
func BenchmarkTick(b *testing.B) {
	l := New(Options{Seed: 1})
	defer l.Close()
	n := 0
	for i := range 1000 {
		l.Root().Every(fmt.Sprint(i), time.Second, 0.04, func() { n++ })
	}
	b.ReportAllocs()
	for b.Loop() {
		l.step()
	}
}

// BenchmarkStartTask is the start and end of a short task.
func BenchmarkStartTask(b *testing.B) {
	l := New(Options{})
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.Root().Go("t", func(context.Context) {})
		l.step()
	}
}

// BenchmarkParkedTask reports the memory of a task that waits.
func BenchmarkParkedTask(b *testing.B) {
	const n = 20000
	for b.Loop() {
		l := New(Options{})
		before := inUse()
		for range n {
			l.Root().Go("t", func(ctx context.Context) { _ = l.Sleep(ctx, time.Hour) })
		}
		_ = l.RunUntil(l.Now().Add(time.Minute))
		b.ReportMetric(float64(inUse()-before)/n, "B/task")
		l.Close()
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// BenchmarkEventKernel is the ceiling for a cluster: nodes with nothing but
// timers, 4.5 events per node-second.
func BenchmarkEventKernel(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, nodes := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("nodes=%d/workers=%d", nodes, workers), func(b *testing.B) {
				e, _ := NewEngine(EngineOptions{Seed: 1, Workers: workers})
				defer e.Close()
				for i := range nodes {
					l := e.NewLoop(fmt.Sprint("n", i))
					n := new(int)
					body := func() { *n++ }
					for k := range 9 {
						l.Root().After(l.Between(0, 2*time.Second, "phase", "", uint64(k)), func() {
							l.Root().Every("t", 2*time.Second, 0, body)
						})
					}
				}
				at := Epoch().Add(4 * time.Second)
				_ = e.RunUntil(at)
				b.ResetTimer()
				for range b.N {
					at = at.Add(time.Second)
					_ = e.RunUntil(at)
				}
				b.ReportMetric(float64(nodes)*float64(b.N)/b.Elapsed().Seconds(), "node-s/s")
			})
		}
	}
}
