//go:build linux

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

	"github.com/containerd/cgroups/v3/cgroup2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

func TestQuota(t *testing.T) {
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

func TestPageSize(t *testing.T) {
	for bytes, want := range map[int64]string{2 << 20: "2MB", 1 << 30: "1GB", 64 << 10: "64KB", 16 << 30: "16GB"} {
		if got := pageSize(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
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
	if r.HugeTlb != nil || r.Memory.Min != nil || r.Memory.Low != nil || r.CPU.Cpus != "" {
		t.Errorf("more than was asked for: %+v %+v", r.HugeTlb, r.Memory)
	}
	c.pages = []int64{2 << 20, 1 << 30}
	low := int64(4096)
	r = c.v2(values{cpus: "0-1", low: &low, pages: c.limits(map[int64]int64{2 << 20: 64 << 20, 512: 1}, 0)})
	if got := *r.HugeTlb; len(got) != 2 || got[0] != (cgroup2.HugeTlbEntry{HugePageSize: "2MB", Limit: 64 << 20}) ||
		got[1] != (cgroup2.HugeTlbEntry{HugePageSize: "1GB"}) || r.CPU.Cpus != "0-1" || *r.Memory.Low != 4096 {
		t.Errorf("got %+v %+v", got, r.CPU)
	}
	v1 := c.v1(values{cpus: "0-1", pages: c.limits(nil, unboundedPages)})
	if len(v1.HugepageLimits) != 2 || v1.HugepageLimits[1].Limit != 1<<62 || v1.CPU.Cpus != "0-1" {
		t.Errorf("v1: %+v %+v", v1.HugepageLimits, v1.CPU)
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
		setNode(ctx, t, c, root, read)
		if err := c.SetClass(ctx, v1.PodQOSBurstable, cm.ClassCgroup{CPUShares: 768}); err != nil {
			t.Error(err)
		}
		if n, err := c.ClassMemory(ctx, v1.PodQOSBurstable); n < 0 || n > 1<<20 || err != nil {
			t.Errorf("nothing uses %d bytes, %v", n, err)
		}
		if got := read("cpu.shares", "cpu.weight", c.names.Class(v1.PodQOSBurstable)); got != "768" && got != "30" {
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
		pod := c.names.Pod(v1.PodQOSBurstable, "u-1")
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

// setNode sets the cgroup of all pods and one that is reserved.
func setNode(ctx context.Context, t *testing.T, c *Cgroups, root string, read func(v1name, v2name, name string) string) {
	t.Helper()
	shares, memory, pids := int64(2048), int64(8<<30), int64(3000)
	v := cm.NodeCgroup{CPUShares: &shares, MemoryLimit: &memory, Pids: &pids, AllCPUs: true}
	if err := c.SetRoot(ctx, v); err != nil {
		t.Error(err)
	}
	check := func(name string) {
		t.Helper()
		for file, want := range map[[2]string]string{
			{"cpu.shares", "cpu.weight"}: "2048", {"memory.limit_in_bytes", "memory.max"}: fmt.Sprint(memory), {"pids.max", "pids.max"}: "3000", {"cpuset.cpus", "cpuset.cpus"}: c.cpus,
		} {
			if got := read(file[0], file[1], name); got != want && got != "none" && got != "79" {
				t.Errorf("%s of %s is %s, want %s", file[0], name, got, want)
			}
		}
	}
	check(c.names.Pods())
	reserved := root + "/daemons"
	if err := c.SetReserved(ctx, reserved, v); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("cgroup %q has some missing paths: /", []string{root[1:], "daemons"})) {
		t.Errorf("a cgroup that is not there: %v", err)
	}
	if err := c.write(reserved, values{}); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReserved(ctx, reserved, v); err != nil {
		t.Error(err)
	}
	check(reserved)
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
