package operator

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/drydocktest"
)

// BenchmarkAnHour has five nodes for an hour, of which one has no power for 20 minutes, and
// tells what a request of the operator's costs, both sides of it.
//
//	go test -run '^$' -bench AnHour -benchtime 5x
func BenchmarkAnHour(b *testing.B) {
	measure(b, func(t *testing.T, requests *uint64) {
		survivesANode(t, Options{Concurrent: 1}, requests)
	})
}

// BenchmarkManyShops has fifty nodes with a hundred shops of five pods each for an hour.
//
//	go test -run '^$' -bench ManyShops -benchtime 1x
func BenchmarkManyShops(b *testing.B) {
	measure(b, func(t *testing.T, requests *uint64) {
		manyShops(t, requests)
	})
}

// manyShops has fifty nodes with five hundred pods of a hundred shops for an hour, one of
// which dies.
func manyShops(t *testing.T, requests *uint64) {
	o := fiveNodes
	o.Scenario = "testdata/fifty-nodes.yaml"
	drydocktest.Run(t, o, func(t *testing.T, c *drydocktest.Cluster) {
		startManager(c, Options{Concurrent: 4})
		user := c.Client("user", scheme)
		for i := range 100 {
			if err := user.Create(t.Context(), shop(fmt.Sprint("s", i), 5)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		c.Node("n-0").PowerCut(20 * time.Minute)
		time.Sleep(49 * time.Minute)
		want := map[string]int32{}
		for i := range 100 {
			want[fmt.Sprint("s", i)] = 5
		}
		allIsWell(t, c, want)
		*requests = c.Requests()
	})
}

// measure runs a test of an hour of the cluster's.
func measure(b *testing.B, test func(t *testing.T, requests *uint64)) {
	var requests uint64
	once := func() {
		if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
			Name: b.Name(), F: func(t *testing.T) { test(t, &requests) },
		}}) {
			b.Fatal("the test failed")
		}
	}
	debug.FreeOSMemory()
	var cpu time.Duration
	var all uint64
	for b.Loop() {
		before := used()
		once()
		cpu += used() - before
		all += requests
	}
	b.ReportMetric(float64(all)/float64(b.N), "requests")
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(all), "cpu-ms/request")
	b.ReportMetric(float64(b.N)*time.Hour.Seconds()/b.Elapsed().Seconds(), "x-real-time")
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage.Maxrss)/1024, "MiB-at-most")
}

// used is the processor's time that the process has taken.
func used() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
