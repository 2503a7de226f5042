package cgroups

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/sim/loop"
)

func TestConversions(t *testing.T) {
	for milli, want := range map[int64]int64{0: 2, 1: 2, 100: 102, 1000: 1024, 750: 768, 1 << 40: 262144} {
		if got := milliToShares(milli); got != want {
			t.Errorf("%dm are %d shares, want %d", milli, got, want)
		}
	}
	for shares, want := range map[int64]uint64{0: 1, 2: 1, 102: 4, 768: 30, 1024: 39, 262144: 10000, 1 << 40: 10000} {
		if got := sharesToWeight(shares); got != want {
			t.Errorf("%d shares are weight %d, want %d", shares, got, want)
		}
	}
	for _, tc := range []struct {
		milli, want int64
		o           Options
	}{
		{250, 25000, Options{CFSPeriod: 100 * time.Millisecond}}, {5, 1000, Options{CFSPeriod: 100 * time.Millisecond}},
		{0, -1, Options{CFSPeriod: 100 * time.Millisecond}}, {1000, 10000, Options{CFSPeriod: 10 * time.Millisecond}},
		{250, -1, Options{CFSPeriod: 100 * time.Millisecond, NoCPUQuota: true}},
	} {
		if got := (&Cgroups{o: tc.o}).milliToQuota(tc.milli); got != tc.want {
			t.Errorf("%dm with %+v: quota %d, want %d", tc.milli, tc.o, got, tc.want)
		}
	}
}

func TestPaths(t *testing.T) {
	c := &Cgroups{top: "/a/kubepods"}
	for class, want := range map[v1.PodQOSClass]string{
		v1.PodQOSGuaranteed: "/a/kubepods/podu-1", v1.PodQOSBurstable: "/a/kubepods/burstable/podu-1", v1.PodQOSBestEffort: "/a/kubepods/besteffort/podu-1",
	} {
		if got := c.pod(class, "u-1"); got != want {
			t.Errorf("%s: %s", class, got)
		}
	}
}

// TestV2Values checks what cgroup v2 is given: this machine may have v1 only.
func TestV2Values(t *testing.T) {
	c := &Cgroups{o: Options{CFSPeriod: 100 * time.Millisecond}}
	r := c.v2(values{shares: 102, quota: 25000, memory: 1 << 20, pids: 10})
	if *r.CPU.Weight != 4 || r.CPU.Max != "25000 100000" || *r.Memory.Max != 1<<20 || r.Pids.Max != 10 {
		t.Errorf("got %+v %+v", r.CPU, r.Memory)
	}
	if r = c.v2(values{quota: -1, memory: -1}); r.CPU.Weight != nil || r.CPU.Max != "max 100000" || *r.Memory.Max != math.MaxInt64 {
		t.Errorf("unlimited: %+v %+v", r.CPU, r.Memory)
	}
}

// onLoop runs fn as a task of a real loop.
func onLoop(t *testing.T, fn func(ctx context.Context)) {
	t.Helper()
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.Root().Go("test", func(ctx context.Context) {
		defer cancel()
		fn(ctx)
	})
	if err := l.RunReal(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestOnThisMachine makes cgroups below one of its own.
func TestOnThisMachine(t *testing.T) {
	root := fmt.Sprintf("/drydock-test-%d", os.Getpid())
	c, err := New(Options{Root: root})
	if err != nil {
		t.Skipf("cgroups can't be made here (it needs root): %v", err)
	}
	t.Cleanup(func() {
		for _, m := range c.mounts {
			_ = remove(filepath.Join(m, root))
		}
	})
	read := func(v1name, v2name, pod string) string {
		dirs := c.mounts
		name := v1name
		if c.unified {
			name = v2name
		}
		for _, m := range dirs {
			if data, err := os.ReadFile(filepath.Join(m, pod, name)); err == nil {
				return strings.TrimSpace(string(data))
			}
		}
		return "none"
	}
	onLoop(t, func(ctx context.Context) {
		if err := c.SetRoot(ctx, cm.RootCgroup{MilliCPU: 2000, MemoryLimit: 8 << 30}); err != nil {
			t.Error(err)
		}
		if err := c.SetClass(ctx, v1.PodQOSBurstable, 750); err != nil {
			t.Error(err)
		}
		if got := read("cpu.shares", "cpu.weight", c.class(v1.PodQOSBurstable)); got != "768" && got != "30" {
			t.Errorf("the shares of burstable pods are %s", got)
		}
		if c.PodExists(v1.PodQOSBurstable, "u-1") {
			t.Error("a pod's cgroup is there before it is made")
		}
		if err := c.SetPod(ctx, v1.PodQOSBurstable, "u-1", cm.PodCgroup{MilliCPU: 100, MilliCPULimit: 250, MemoryLimit: 64 << 20}); err != nil {
			t.Error(err)
		}
		if err := c.SetPod(ctx, v1.PodQOSGuaranteed, "u-0", cm.PodCgroup{MilliCPU: 100}); err != nil {
			t.Error(err)
		}
		pod := c.pod(v1.PodQOSBurstable, "u-1")
		if got := read("memory.limit_in_bytes", "memory.max", pod); got != fmt.Sprint(64<<20) {
			t.Errorf("the memory limit is %s", got)
		}
		if got := read("cpu.shares", "cpu.weight", pod); got != "102" && got != "4" {
			t.Errorf("the shares are %s", got)
		}
		if got := read("cpu.cfs_quota_us", "cpu.max", pod); got != "25000" && got != "25000 100000" && got != "none" {
			t.Errorf("the quota is %s", got)
		}
		if !c.PodExists(v1.PodQOSBurstable, "u-1") || !slices.Equal(c.Pods(), []types.UID{"u-0", "u-1"}) {
			t.Errorf("the pods are %v", c.Pods())
		}
		if err := c.ShrinkPod(ctx, "u-1"); err != nil {
			t.Error(err)
		}
		if got := read("cpu.shares", "cpu.weight", pod); got != "2" && got != "1" {
			t.Errorf("the shares of what is gone are %s", got)
		}
		removeBusy(ctx, t, c)
	})
}

// removeBusy removes a pod's cgroup in which something still runs, in a cgroup
// of its own.
func removeBusy(ctx context.Context, t *testing.T, c *Cgroups) {
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Error(err)
		return
	}
	ended := make(chan struct{})
	go func() { _ = sleep.Wait(); close(ended) }()
	for _, dir := range c.dirs("u-1") {
		inner := filepath.Join(dir, "container")
		if err := os.Mkdir(inner, 0o755); err != nil {
			t.Error(err)
		}
		_ = os.WriteFile(filepath.Join(inner, procs), fmt.Append(nil, sleep.Process.Pid), 0) // not everywhere
	}
	for _, uid := range []types.UID{"u-1", "u-0", "none"} {
		if err := c.RemovePod(ctx, uid); err != nil {
			t.Errorf("remove %s: %v", uid, err)
		}
	}
	if got := c.Pods(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("what ran in the cgroup still runs")
	}
	for _, uid := range []types.UID{"", "../x"} {
		if err := c.RemovePod(ctx, uid); err == nil {
			t.Errorf("%q was removed", uid)
		}
	}
}
