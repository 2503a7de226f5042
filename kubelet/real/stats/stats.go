//go:build linux

// Package stats reads what the machine uses from cgroups (v1, hybrid, v2), procfs and statfs. It
// mirrors what upstream's kubelet has of cAdvisor (container/libcontainer/handler.go, fs), and
// pkg/kubelet/stats/pidlimit.
//
// stats.go has the figures of the machine, of cgroups and of file systems; memcg.go the kernel's
// notice when memory crosses a level. Every figure is read when it is asked for: there is no
// housekeeping in the background, and only rates of CPU keep something, the last sample of each
// cgroup.
package stats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	procRoot   = "/proc"
	// unlimited is from where on a limit of memory is none
	// (pkg/kubelet/stats/helper.go). Cgroup v1 has no word for none but a number near the
	// largest.
	unlimited = 1 << 62
	// ratePeriod is over how long at least a rate of CPU use is taken.
	ratePeriod = time.Second
	// sampleAge is after how long a sample that nobody asked for again goes.
	sampleAge = 10 * time.Minute
)

// Machine is this machine.
// The files are read on goroutines, several at a time, hence the lock. The methods run in tasks
// of l and read on goroutines.
type Machine struct {
	l             *loop.Loop
	cgroups, proc string
	unified       bool
	memory        uint64 // bytes

	mu      sync.Mutex
	samples map[string]sample
}

// sample is a cgroup's use of CPU at a time, and its last rate. total is in nanoseconds since the
// cgroup was made.
type sample struct {
	at    time.Time
	total uint64
	rate  *uint64
}

var _ stats.Machine = (*Machine)(nil)

// New returns this machine for a loop of the wall clock; an error if it has no
// cgroups or doesn't tell its memory.
func New(l *loop.Loop) (*Machine, error) { return open(l, cgroupRoot, procRoot) }

// Tests have directories of their own.
func open(l *loop.Loop, cgroups, proc string) (*Machine, error) {
	m := &Machine{l: l, cgroups: cgroups, proc: proc, samples: map[string]sample{}}
	_, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers"))
	m.unified = err == nil
	if !m.unified {
		if _, err := os.Stat(filepath.Join(cgroups, "memory")); err != nil {
			return nil, fmt.Errorf("machine statistics: %w", err)
		}
	}
	info, err := keyed(filepath.Join(proc, "meminfo"))
	if err != nil {
		return nil, fmt.Errorf("machine statistics: %w", err)
	}
	if m.memory = info["MemTotal:"] << 10; m.memory == 0 {
		return nil, errors.New("machine statistics: /proc/meminfo has no MemTotal")
	}
	return m, nil
}

func await[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	return loop.Await(ctx, func(context.Context) (T, error) { return fn() })
}

// file is one of a cgroup's in the hierarchy of a controller.
// On cgroup v2 all controllers' files are in one directory.
func (m *Machine) file(controller, path, name string) string {
	if m.unified {
		controller = ""
	}
	return filepath.Join(m.cgroups, controller, path, name)
}

// Memory implements stats.Machine.
func (m *Machine) Memory(ctx context.Context) (*statsapi.MemoryStats, error) {
	return await(ctx, func() (*statsapi.MemoryStats, error) { return m.memoryOf("/") })
}

// CPU implements stats.Machine.
func (m *Machine) CPU(ctx context.Context) (*statsapi.CPUStats, error) {
	return await(ctx, func() (*statsapi.CPUStats, error) { return m.cpuOf("/") })
}

// Swap implements stats.Machine.
func (m *Machine) Swap(ctx context.Context) (*statsapi.SwapStats, error) {
	// meminfo counts in KiB.
	return await(ctx, func() (*statsapi.SwapStats, error) {
		info, err := keyed(filepath.Join(m.proc, "meminfo"))
		if err != nil {
			return nil, err
		}
		return &statsapi.SwapStats{
			Time: metav1.Now(), SwapAvailableBytes: ptr(info["SwapFree:"] << 10), SwapUsageBytes: ptr((info["SwapTotal:"] - info["SwapFree:"]) << 10),
		}, nil
	})
}

// Cgroup implements stats.Machine. A cgroup without its memory file counts as gone; other files
// may be missing.
func (m *Machine) Cgroup(ctx context.Context, path string) (*stats.Cgroup, error) {
	return await(ctx, func() (*stats.Cgroup, error) {
		mem, err := m.memoryOf(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil //nolint:nilnil // there is none
		}
		if err != nil {
			return nil, err
		}
		out := &stats.Cgroup{Memory: mem, Swap: m.swapOf(path), IO: m.ioOf(path)}
		if out.CPU, err = m.cpuOf(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		controller := "pids"
		if n, ok := processes(m.file(controller, path, "")); ok {
			out.Processes = &n
		}
		return out, nil
	})
}

// memoryOf is the memory of a cgroup: what it uses, without what could be had
// back at once.
// What could be had back at once is the file pages that nobody used of late. A
// limit near the greatest number is none. The working set is what evictions go by: usage less
// inactive file pages (cAdvisor setMemoryStats).
func (m *Machine) memoryOf(path string) (*statsapi.MemoryStats, error) {
	stat, err := keyed(m.file("memory", path, "memory.stat"))
	if err != nil {
		return nil, err
	}
	out := &statsapi.MemoryStats{Time: metav1.Now(), PageFaults: ptr(stat["pgfault"]), MajorPageFaults: ptr(stat["pgmajfault"])}
	var usage, limit uint64
	inactive, rss := stat["inactive_file"], stat["anon"]
	switch {
	case !m.unified:
		inactive, rss = stat["total_inactive_file"], stat["total_rss"]
		if usage, err = number(m.file("memory", path, "memory.usage_in_bytes")); err == nil {
			limit, err = number(m.file("memory", path, "memory.limit_in_bytes"))
		}
	case path == "/": // the topmost cgroup of v2 has neither file
		usage, limit = stat["anon"]+stat["file"], math.MaxUint64
	default:
		if usage, err = number(m.file("memory", path, "memory.current")); err == nil {
			limit, err = number(m.file("memory", path, "memory.max"))
		}
	}
	if err != nil {
		return nil, err
	}
	if path == "/" {
		limit = m.memory
	}
	working := usage - min(inactive, usage)
	out.UsageBytes, out.WorkingSetBytes, out.RSSBytes, out.PSI = &usage, &working, &rss, m.pressure("memory", path)
	if limit <= unlimited {
		out.AvailableBytes = ptr(limit - min(working, limit))
	}
	return out, nil
}

// swapOf is the swap of a cgroup; nil where it is not counted.
// On v1 the kernel counts memory and swap together. A kernel without swap accounting has no such
// files.
func (m *Machine) swapOf(path string) *statsapi.SwapStats {
	var used, limit uint64
	var err error
	if m.unified {
		if used, err = number(m.file("", path, "memory.swap.current")); err == nil {
			limit, err = number(m.file("", path, "memory.swap.max"))
		}
	} else {
		var both, memory uint64
		if both, err = number(m.file("memory", path, "memory.memsw.usage_in_bytes")); err == nil {
			memory, err = number(m.file("memory", path, "memory.usage_in_bytes"))
		}
		used, limit = both-min(memory, both), math.MaxUint64
	}
	if err != nil {
		return nil
	}
	out := &statsapi.SwapStats{Time: metav1.Now(), SwapUsageBytes: &used}
	if limit <= unlimited {
		out.SwapAvailableBytes = ptr(limit - min(used, limit))
	}
	return out
}

// cpuOf is the CPU of a cgroup. The rate is that since an earlier question; there
// is none to the first. Nanoseconds: cpu.stat has microseconds, cpuacct.usage nanoseconds.
func (m *Machine) cpuOf(path string) (*statsapi.CPUStats, error) {
	var total uint64
	var err error
	if m.unified {
		var stat map[string]uint64
		stat, err = keyed(m.file("cpu", path, "cpu.stat"))
		total = stat["usage_usec"] * 1000
	} else {
		total, err = number(m.file("cpuacct", path, "cpuacct.usage"))
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &statsapi.CPUStats{Time: metav1.NewTime(now), UsageCoreNanoSeconds: &total, UsageNanoCores: m.rate(path, now, total), PSI: m.pressure("cpu", path)}, nil
}

// rate is how many nanoseconds of CPU a second a cgroup used of late.
// A second at least lies between two samples, or the rate would be noise; asked
// more often, it is the last one. A total that went back means a new cgroup of the same path.
func (m *Machine) rate(path string, now time.Time, total uint64) *uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.samples[path]
	passed := now.Sub(last.at)
	switch {
	case !ok || total < last.total: // it is another cgroup by now
		last = sample{at: now, total: total}
	case passed >= ratePeriod:
		last = sample{at: now, total: total, rate: new(uint64(float64(total-last.total) / passed.Seconds()))}
	}
	m.samples[path] = last
	// Old samples are looked for only when a new path comes, which is when the map grows.
	if !ok {
		for p, s := range m.samples {
			if now.Sub(s.at) > sampleAge {
				delete(m.samples, p)
			}
		}
	}
	return last.rate
}

// Created implements stats.Machine: the earliest time of the cgroup's directories, as
// cAdvisor has it.
func (m *Machine) Created(ctx context.Context, path string) (metav1.Time, error) {
	return await(ctx, func() (metav1.Time, error) { return m.created(path), nil })
}

func (m *Machine) created(path string) (first metav1.Time) {
	controllers := [...]string{"cpu", "cpuacct", "memory", "pids"}
	for _, c := range controllers {
		info, err := os.Stat(m.file(c, path, ""))
		if err != nil {
			continue
		}
		if at := metav1.NewTime(info.ModTime()); first.IsZero() || at.Before(&first) {
			first = at
		}
	}
	return first
}

// Filesystem implements stats.Machine. The device tells file systems apart: imagefs and nodefs
// are one if it is the same.
func (m *Machine) Filesystem(ctx context.Context, path string) (*stats.Filesystem, error) {
	return await(ctx, func() (*stats.Filesystem, error) {
		var info unix.Stat_t
		var st unix.Statfs_t
		if err := unix.Stat(path, &info); err != nil {
			return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		if err := unix.Statfs(path, &st); err != nil {
			return nil, &fs.PathError{Op: "statfs", Path: path, Err: err}
		}
		unit := cmp.Or(uint64(st.Frsize), uint64(st.Bsize))
		return &stats.Filesystem{
			Device: fmt.Sprintf("%d:%d", unix.Major(info.Dev), unix.Minor(info.Dev)),
			FsStats: statsapi.FsStats{
				Time: metav1.Now(), AvailableBytes: ptr(st.Bavail * unit), CapacityBytes: ptr(st.Blocks * unit), UsedBytes: ptr((st.Blocks - st.Bfree) * unit),
				Inodes: ptr(st.Files), InodesFree: ptr(st.Ffree), InodesUsed: ptr(st.Files - st.Ffree),
			},
		}, nil
	})
}

// PIDs implements stats.Machine. The smaller of the two limits counts.
func (m *Machine) PIDs(ctx context.Context) (*statsapi.RlimitStats, error) {
	return await(ctx, func() (*statsapi.RlimitStats, error) {
		out := &statsapi.RlimitStats{}
		for _, name := range [...]string{"pid_max", "threads-max"} {
			n, err := number(filepath.Join(m.proc, "sys/kernel", name))
			if v := int64(min(n, math.MaxInt64)); err == nil && (out.MaxPID == nil || v < *out.MaxPID) {
				out.MaxPID = &v
			}
		}
		if n, ok := m.tasks(); ok {
			out.NumOfRunningProcesses = &n
		} else {
			var info unix.Sysinfo_t
			if err := unix.Sysinfo(&info); err == nil {
				out.NumOfRunningProcesses = new(int64(info.Procs))
			}
		}
		out.Time = metav1.Now()
		return out, nil
	})
}

// tasks is the number right of the slash in loadavg's fourth field. It counts threads, as the
// limit does (loadavg in proc(5)).
func (m *Machine) tasks() (int64, bool) {
	data, err := os.ReadFile(filepath.Join(m.proc, "loadavg"))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(data))
	if len(f) < 4 {
		return 0, false
	}
	_, all, ok := strings.Cut(f[3], "/")
	n, err := strconv.ParseInt(all, 10, 64)
	return n, ok && err == nil
}

// processes counts those in and below a cgroup's directory.
// It walks, since the controller's own count has threads in it. Cgroups may come and go on the
// way, so errors are passed over.
func processes(dir string) (n uint64, ok bool) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // it has gone
		}
		data, err := os.ReadFile(p)
		if err == nil {
			n += uint64(strings.Count(string(data), "\n"))
			ok = true
		}
		return nil
	})
	return n, ok
}

// number reads a file with one number; "max" is the largest. max is cgroup v2's word for no
// limit.
func number(file string) (uint64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(data))
	if text == "max" {
		return math.MaxUint64, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// keyed reads a file of lines with a name and a number. Lines of another form are left out.
func keyed(file string) (map[string]uint64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 {
			if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				out[f[0]] = n
			}
		}
	}
	return out, nil
}

func ptr[T any](v T) *T { return &v }
