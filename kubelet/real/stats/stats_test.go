//go:build linux

package stats

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
)

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

func fake(t *testing.T, files map[string]string) *Machine {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := open(nil, filepath.Join(dir, "cgroup"), filepath.Join(dir, "proc"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const meminfo = "MemTotal:       1024 kB\nMemFree:        100 kB\nSwapTotal:      64 kB\nSwapFree:       16 kB\n"

var trees = map[string]map[string]string{
	"v1": {
		"proc/meminfo":                                  meminfo,
		"cgroup/memory/memory.stat":                     "inactive_file 1\nrss 2\ntotal_inactive_file 4096\ntotal_rss 8192\npgfault 5\npgmajfault 6\n",
		"cgroup/memory/memory.usage_in_bytes":           "532480\n",
		"cgroup/memory/memory.limit_in_bytes":           "9223372036854771712\n",
		"cgroup/memory/kubepods/memory.stat":            "total_inactive_file 4096\ntotal_rss 8192\n",
		"cgroup/memory/kubepods/memory.usage_in_bytes":  "104096\n",
		"cgroup/memory/kubepods/memory.limit_in_bytes":  "500000\n",
		"cgroup/memory/unlimited/memory.stat":           "total_inactive_file 4096\n",
		"cgroup/memory/unlimited/memory.usage_in_bytes": "1000\n",
		"cgroup/memory/unlimited/memory.limit_in_bytes": "9223372036854771712\n",
		"cgroup/cpuacct/cpuacct.usage":                  "5000000\n",
		"cgroup/cpuacct/kubepods/cpuacct.usage":         "3000\n",
		"cgroup/pids/kubepods/cgroup.procs":             "1\n",
		"cgroup/pids/kubepods/besteffort/cgroup.procs":  "2\n3\n",
	},
	"v2": {
		"proc/meminfo":                            meminfo,
		"cgroup/cgroup.controllers":               "cpu memory pids\n",
		"cgroup/memory.stat":                      "anon 8192\nfile 524288\ninactive_file 4096\npgfault 5\npgmajfault 6\n",
		"cgroup/cpu.stat":                         "usage_usec 5000\nuser_usec 1\n",
		"cgroup/kubepods/memory.stat":             "anon 8192\ninactive_file 4096\n",
		"cgroup/kubepods/memory.current":          "104096\n",
		"cgroup/kubepods/memory.max":              "500000\n",
		"cgroup/kubepods/memory.swap.current":     "10\n",
		"cgroup/kubepods/memory.swap.max":         "100\n",
		"cgroup/kubepods/cpu.stat":                "usage_usec 3\n",
		"cgroup/kubepods/cgroup.procs":            "",
		"cgroup/kubepods/besteffort/cgroup.procs": "1\n2\n3\n",
		"cgroup/unlimited/memory.stat":            "inactive_file 4096\n",
		"cgroup/unlimited/memory.current":         "1000\n",
		"cgroup/unlimited/memory.max":             "max\n",
		"cgroup/unlimited/cpu.stat":               "usage_usec 3\n",
	},
}

// TestCgroups reads the same facts of both versions.
func TestCgroups(t *testing.T) {
	for version, files := range trees {
		m := fake(t, files)
		onLoop(t, func(ctx context.Context) {
			mem, err := m.Memory(ctx)
			if err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			memory(t, version+" machine", mem, 532480, 528384, 8192, 1048576-528384)
			if *mem.PageFaults != 5 || *mem.MajorPageFaults != 6 {
				t.Errorf("%s: %d and %d faults", version, *mem.PageFaults, *mem.MajorPageFaults)
			}
			cpu, err := m.CPU(ctx)
			if err != nil || *cpu.UsageCoreNanoSeconds != 5000000 || cpu.UsageNanoCores != nil {
				t.Errorf("%s: cpu %+v, %v", version, cpu, err)
			}
			c, err := m.Cgroup(ctx, "/kubepods")
			if err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			memory(t, version+" kubepods", c.Memory, 104096, 100000, 8192, 400000)
			if *c.CPU.UsageCoreNanoSeconds != 3000 || *c.Processes != 3 {
				t.Errorf("%s: kubepods: cpu %+v, %d processes", version, c.CPU, *c.Processes)
			}
			if swap := c.Swap; version == "v2" && (*swap.SwapUsageBytes != 10 || *swap.SwapAvailableBytes != 90) || version == "v1" && swap != nil {
				t.Errorf("%s: kubepods: swap %+v", version, swap)
			}
			if c, err = m.Cgroup(ctx, "/unlimited"); err != nil || *c.Memory.WorkingSetBytes != 0 || c.Memory.AvailableBytes != nil {
				t.Errorf("%s: unlimited: %+v, %v", version, c, err)
			}
			if c, err = m.Cgroup(ctx, "/none"); c != nil || err != nil {
				t.Errorf("%s: none: %+v, %v", version, c, err)
			}
			swap, err := m.Swap(ctx)
			if err != nil || *swap.SwapUsageBytes != 48<<10 || *swap.SwapAvailableBytes != 16<<10 {
				t.Errorf("%s: swap %+v, %v", version, swap, err)
			}
		})
	}
}

func memory(t *testing.T, name string, m *statsapi.MemoryStats, usage, working, rss, available uint64) {
	t.Helper()
	if *m.UsageBytes != usage || *m.WorkingSetBytes != working || *m.RSSBytes != rss || m.AvailableBytes == nil || *m.AvailableBytes != available {
		t.Errorf("%s: usage %d, working set %d, rss %d, available %v", name, *m.UsageBytes, *m.WorkingSetBytes, *m.RSSBytes, m.AvailableBytes)
	}
}

func TestPIDs(t *testing.T) {
	for _, tc := range []struct {
		loadavg        string
		pidMax, thread string
		maxpid, cur    int64
	}{
		{"0.1 0.2 0.3 1/30000 77\n", "32768\n", "100000\n", 32768, 30000},
		{"0.1 0.2 0.3 9/12 77\n", "4194304\n", "1000\n", 1000, 12},
	} {
		files := map[string]string{"proc/loadavg": tc.loadavg, "proc/sys/kernel/pid_max": tc.pidMax, "proc/sys/kernel/threads-max": tc.thread}
		for k, v := range trees["v2"] {
			files[k] = v
		}
		m := fake(t, files)
		onLoop(t, func(ctx context.Context) {
			r, err := m.PIDs(ctx)
			if err != nil || *r.MaxPID != tc.maxpid || *r.NumOfRunningProcesses != tc.cur {
				t.Errorf("%+v: %v of %v, %v", tc, *r.NumOfRunningProcesses, *r.MaxPID, err)
			}
		})
	}
}

func TestRate(t *testing.T) {
	m := &Machine{samples: map[string]sample{}}
	start := time.Unix(100, 0)
	for i, tc := range []struct {
		after time.Duration
		total uint64
		want  int64 // -1: none
	}{
		{0, 1000, -1},
		{500 * time.Millisecond, 2000, -1}, // too short
		{2 * time.Second, 9000, 4000},
		{2500 * time.Millisecond, 99000, 4000}, // as before
		{4 * time.Second, 9000, 0},
		{5 * time.Second, 10, -1}, // a new one of the name
	} {
		got := int64(-1)
		if r := m.rate("/x", start.Add(tc.after), tc.total); r != nil {
			got = int64(*r)
		}
		if got != tc.want {
			t.Errorf("%d: rate %d, want %d", i, got, tc.want)
		}
	}
	if m.rate("/y", start.Add(time.Hour), 1); len(m.samples) != 1 {
		t.Errorf("%d samples are kept", len(m.samples))
	}
}

// TestNotifyMemory has the kernel tell of memory that is taken.
func TestNotifyMemory(t *testing.T) {
	name := fmt.Sprintf("/drydock-stats-%d", os.Getpid())
	dir := filepath.Join(cgroupRoot, "memory", name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("it needs root and cgroup v1: %v", err)
	}
	defer func() { _ = os.Remove(dir) }()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	m, err := New(l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	told := false
	l.Root().Go("test", func(ctx context.Context) {
		stop, err := m.NotifyMemory(name, 16<<20, func() { told = true; cancel() })
		if err != nil {
			t.Error(err)
			cancel()
			return
		}
		l.Root().OnKill(stop)
		_, _ = loop.Await(ctx, func(context.Context) (struct{}, error) {
			return struct{}{}, exec.Command("sh", "-c", "echo $$ >"+dir+"/cgroup.procs && exec dd if=/dev/zero of=/dev/null bs=64M count=1").Run()
		})
	})
	_ = l.RunReal(ctx)
	l.Close()
	if !told {
		t.Error("nobody was told")
	}
	if _, err := m.NotifyMemory(name+"-none", 1, nil); !os.IsNotExist(err) {
		t.Errorf("a cgroup that is not there: %v", err)
	}
}

func TestThisMachine(t *testing.T) {
	m, err := New(nil)
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	onLoop(t, func(ctx context.Context) {
		mem, err := m.Memory(ctx)
		if err != nil || *mem.AvailableBytes == 0 || *mem.AvailableBytes+*mem.WorkingSetBytes != m.memory {
			t.Errorf("memory %+v, %v", mem, err)
		}
		if cpu, err := m.CPU(ctx); err != nil || *cpu.UsageCoreNanoSeconds == 0 {
			t.Errorf("cpu %+v, %v", cpu, err)
		}
		pids, err := m.PIDs(ctx)
		if err != nil || *pids.MaxPID <= *pids.NumOfRunningProcesses || *pids.NumOfRunningProcesses < 2 {
			t.Errorf("pids %+v, %v", pids, err)
		}
		f, err := m.Filesystem(ctx, dir)
		if err != nil || f.Device == "" || *f.CapacityBytes < *f.AvailableBytes || *f.CapacityBytes == 0 || *f.InodesUsed+*f.InodesFree != *f.Inodes {
			t.Errorf("file system %+v, %v", f, err)
		}
		if other, err := m.Filesystem(ctx, "/proc"); err != nil || other.Device == f.Device {
			t.Errorf("/proc is on %+v, %v", other, err)
		}
		if _, err := m.Filesystem(ctx, filepath.Join(dir, "none")); !os.IsNotExist(err) {
			t.Errorf("a path that is not there: %v", err)
		}
	})
}
