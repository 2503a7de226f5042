package kernel_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
)

// idleContainers starts n containers whose program sleeps, as the runtime would
// set them up: a few binds, a network, log files.
func idleContainers(r *rig, n int) []*kernel.Container {
	must(r.t, r.fs.MkdirAll("/pods/token", 0o755))
	must(r.t, r.fs.WriteFile("/pods/hosts", nil, 0o644))
	out := make([]*kernel.Container, n)
	for i := range out {
		v := r.m.NewView(kernel.ViewOptions{Image: r.img})
		must(r.t, v.Namespace().Bind("/var/run/secrets/kubernetes.io/serviceaccount", r.fs, "/pods/token", true))
		must(r.t, v.Namespace().Bind("/etc/hosts", r.fs, "/pods/hosts", false))
		must(r.t, v.Namespace().Bind("/dev/termination-log", r.fs, "/pods/hosts", false))
		out[i] = r.m.NewContainer(kernel.ContainerOptions{Root: v, Net: r.m.NewNet(fmt.Sprint("10.0.", i/250, ".", i%250)), Commands: r.cmds})
		s := argv("sleep", "3600")
		s.FDs = []kernel.File{r.m.Null(), r.m.Null(), r.m.Null()}
		_, err := out[i].Start(s)
		must(r.t, err)
	}
	r.run(time.Second)
	return out
}

func heap() (heap, stacks int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

// TestIdleContainerIsSmall holds what an idle interpreted container takes beside
// the stack of its task.
func TestIdleContainerIsSmall(t *testing.T) {
	r := newRig(t)
	_ = idleContainers(r, 10)
	h0, s0 := heap()
	const n = 1000
	list := idleContainers(r, n)
	h1, s1 := heap()
	per := (h1 - h0) / n
	t.Logf("%d bytes per container, and %d of stack", per, (s1-s0)/n)
	if per > 6000 {
		t.Errorf("%d bytes per container", per)
	}
	runtime.KeepAlive(list)
}

func BenchmarkIdleContainer(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := newRig(b)
				h0, _ := heap()
				list := idleContainers(r, n)
				h1, _ := heap()
				b.ReportMetric(float64(h1-h0)/float64(n), "heapbytes/container")
				runtime.KeepAlive(list)
				r.l.Close()
			}
		})
	}
}

func BenchmarkStat(b *testing.B) {
	r := newRig(b)
	v := r.m.NewView(kernel.ViewOptions{Image: r.img})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Stat("/usr/bin/env"); err == nil {
			b.Fatal("there is no env")
		}
		if _, err := v.Stat("/bin/sh"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImage(b *testing.B) {
	for b.Loop() {
		if _, err := rootfs.BusyboxImage([]string{"sh"}); err != nil {
			b.Fatal(err)
		}
	}
}
