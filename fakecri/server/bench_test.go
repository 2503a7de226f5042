//go:build linux

package server_test

import (
	"context"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const benchContainers = 1000

// cpuTime is what the process has used, client and server.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU tells what a call has cost, which says more than its duration on a
// machine that does other things too.
func reportCPU(b *testing.B, began time.Duration) {
	b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkContainerStatus asks for one status after the other, on one
// connection, with 1,000 containers present.
func BenchmarkContainerStatus(b *testing.B) {
	r := newRig(b, sleeper)
	ids := r.fill(b, benchContainers)
	ctx := context.Background()
	b.ReportAllocs()
	cpu := cpuTime(b)
	b.ResetTimer()
	for i := range b.N {
		if _, err := r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: ids[i%len(ids)]}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rpc/s")
	reportCPU(b, cpu)
}

// BenchmarkContainerStatusParallel is BenchmarkContainerStatus with 16 calls at
// a time.
func BenchmarkContainerStatusParallel(b *testing.B) {
	r := newRig(b, sleeper)
	ids := r.fill(b, benchContainers)
	ctx := context.Background()
	var n atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	cpu := cpuTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: ids[int(n.Add(1))%len(ids)]}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rpc/s")
	reportCPU(b, cpu)
}

// BenchmarkListContainers lists 1,000 containers while nothing changes.
func BenchmarkListContainers(b *testing.B) { benchmarkList(b, nil, false) }

// BenchmarkListContainersRunning lists them by state, as a kubelet does.
func BenchmarkListContainersRunning(b *testing.B) {
	benchmarkList(b, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}, false)
}

// BenchmarkListContainersChanging lists them with a change before each.
func BenchmarkListContainersChanging(b *testing.B) { benchmarkList(b, nil, true) }

func benchmarkList(b *testing.B, f *runtimeapi.ContainerFilter, change bool) {
	r := newRig(b, sleeper)
	r.fill(b, benchContainers)
	sandbox := r.runSandbox(b, "changes")
	ctx := context.Background()
	var took []time.Duration
	b.ReportAllocs()
	cpu := cpuTime(b)
	b.ResetTimer()
	for range b.N {
		if change {
			resp, err := r.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: containerConfig("x")})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.rt.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: resp.ContainerId}); err != nil {
				b.Fatal(err)
			}
		}
		began := time.Now()
		resp, err := r.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: f})
		took = append(took, time.Since(began))
		if err != nil || len(resp.Containers) != benchContainers {
			b.Fatalf("%d containers, error %v", len(resp.GetContainers()), err)
		}
	}
	reportCPU(b, cpu)
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}
