//go:build linux

package stats

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/kubelet/stats"
)

var _ stats.CgroupLister = (*Machine)(nil)

// Cgroups implements stats.CgroupLister: all cgroups of the machine, read when asked for
// (cAdvisor container/raw and container/libcontainer).
func (m *Machine) Cgroups(ctx context.Context) (*stats.Cgroups, error) {
	return await(ctx, func() (*stats.Cgroups, error) {
		out := &stats.Cgroups{Pressure: m.unified && m.pressure("cpu", "/") != nil}
		top := m.file("cpu", "/", "")
		err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // it has gone
			}
			name, err := filepath.Rel(top, p)
			if err != nil {
				return err
			}
			if g := m.cgroup(filepath.Join("/", name)); g != nil {
				out.List = append(out.List, g)
			}
			return nil
		})
		return out, err
	})
}

// cgroup is everything about one cgroup; nil if it has gone.
func (m *Machine) cgroup(path string) *cadvisorapi.ContainerInfo {
	s := &cadvisorapi.ContainerStats{Timestamp: time.Now()}
	out := &cadvisorapi.ContainerInfo{Stats: []*cadvisorapi.ContainerStats{s}}
	out.Name, out.Spec.CreationTime = path, m.created(path).Time
	if !m.cpuInfo(path, out, s) {
		return nil
	}
	if mem, err := m.memoryOf(path); err == nil {
		m.memoryInfo(path, mem, out, s)
	}
	out.Spec.HasProcesses = true
	s.Processes = m.processInfo(path)
	out.Spec.Processes.Limit = s.Processes.ThreadsMax
	out.Spec.HasDiskIo = true
	if io := m.pressure("io", path); io != nil {
		s.DiskIo.PSI = psiInfo(io)
	}
	if path == "/" {
		out.Spec.HasNetwork, out.Spec.HasFilesystem = true, true
		if dev, err := networkOf(m.proc); err == nil {
			for _, i := range dev {
				s.Network.Interfaces = append(s.Network.Interfaces, i.info())
			}
		}
		s.Filesystem = m.filesystems()
	}
	return out
}

// cpuInfo fills in the CPU of a cgroup; false: there is no such cgroup.
func (m *Machine) cpuInfo(path string, out *cadvisorapi.ContainerInfo, s *cadvisorapi.ContainerStats) bool {
	c, err := m.cpuOf(path)
	if err != nil {
		return false
	}
	s.Cpu.Usage.Total = *c.UsageCoreNanoSeconds
	s.Cpu.PSI = psiInfo(c.PSI)
	out.Spec.HasCpu = true
	stat, _ := keyed(m.file("cpu", path, "cpu.stat"))
	s.Cpu.CFS.Periods, s.Cpu.CFS.ThrottledPeriods, s.Cpu.CFS.BurstsPeriods = stat["nr_periods"], stat["nr_throttled"], stat["nr_bursts"]
	if m.unified {
		s.Cpu.Usage.User, s.Cpu.Usage.System = stat["user_usec"]*1000, stat["system_usec"]*1000
		s.Cpu.CFS.ThrottledTime, s.Cpu.CFS.BurstTime = stat["throttled_usec"]*1000, stat["burst_usec"]*1000
		if weight, err := number(m.file("", path, "cpu.weight")); err == nil && weight > 0 {
			out.Spec.Cpu.Limit = 2 + (weight-1)*262142/9999
		}
		b, _ := os.ReadFile(m.file("", path, "cpu.max"))
		if f := strings.Fields(string(b)); len(f) == 2 {
			out.Spec.Cpu.Quota, _ = strconv.ParseUint(f[0], 10, 64)
			out.Spec.Cpu.Period, _ = strconv.ParseUint(f[1], 10, 64)
		}
		return true
	}
	// cpuacct.stat counts in hundredths of a second.
	split, _ := keyed(m.file("cpuacct", path, "cpuacct.stat"))
	s.Cpu.Usage.User, s.Cpu.Usage.System = split["user"]*uint64(10*time.Millisecond), split["system"]*uint64(10*time.Millisecond)
	s.Cpu.CFS.ThrottledTime, s.Cpu.CFS.BurstTime = stat["throttled_time"], stat["burst_time"]
	out.Spec.Cpu.Limit, _ = number(m.file("cpu", path, "cpu.shares"))
	out.Spec.Cpu.Period, _ = number(m.file("cpu", path, "cpu.cfs_period_us"))
	out.Spec.Cpu.Quota, _ = number(m.file("cpu", path, "cpu.cfs_quota_us")) // -1, none, is no number
	return true
}

// memoryInfo fills in the memory of a cgroup.
func (m *Machine) memoryInfo(path string, mem *statsapi.MemoryStats, out *cadvisorapi.ContainerInfo, s *cadvisorapi.ContainerStats) {
	stat, _ := keyed(m.file("memory", path, "memory.stat"))
	out.Spec.HasMemory = true
	s.Memory.Usage, s.Memory.WorkingSet, s.Memory.PSI = *mem.UsageBytes, *mem.WorkingSetBytes, psiInfo(mem.PSI)
	read := func(name string) uint64 {
		n, err := number(m.file("memory", path, name))
		if err != nil || n == math.MaxUint64 {
			return 0
		}
		return n
	}
	if w := m.swapOf(path); w != nil {
		s.Memory.Swap = *w.SwapUsageBytes
	}
	s.Memory.ContainerData = cadvisorapi.MemoryStatsMemoryData{Pgfault: stat["pgfault"], Pgmajfault: stat["pgmajfault"]}
	s.Memory.HierarchicalData = s.Memory.ContainerData
	if m.unified {
		s.Memory.Cache, s.Memory.RSS, s.Memory.MappedFile = stat["file"], stat["anon"], stat["file_mapped"]
		s.Memory.TotalActiveFile, s.Memory.TotalInactiveFile = stat["active_file"], stat["inactive_file"]
		s.Memory.KernelUsage = stat["kernel"]
		s.Memory.MaxUsage = read("memory.peak")
		out.Spec.Memory.Limit, out.Spec.Memory.SwapLimit, out.Spec.Memory.Reservation = read("memory.max"), read("memory.swap.max"), read("memory.min")
		events, _ := keyed(m.file("memory", path, "memory.events"))
		s.Memory.Failcnt, s.OOMEvents = events["max"], events["oom_kill"]
		return
	}
	s.Memory.HierarchicalData = cadvisorapi.MemoryStatsMemoryData{Pgfault: stat["total_pgfault"], Pgmajfault: stat["total_pgmajfault"]}
	s.Memory.Cache, s.Memory.RSS, s.Memory.MappedFile = stat["total_cache"], stat["total_rss"], stat["total_mapped_file"]
	s.Memory.TotalActiveFile, s.Memory.TotalInactiveFile = stat["total_active_file"], stat["total_inactive_file"]
	s.Memory.KernelUsage, s.Memory.MaxUsage, s.Memory.Failcnt = read("memory.kmem.usage_in_bytes"), read("memory.max_usage_in_bytes"), read("memory.failcnt")
	out.Spec.Memory.Limit, out.Spec.Memory.Reservation = read("memory.limit_in_bytes"), read("memory.soft_limit_in_bytes")
	out.Spec.Memory.SwapLimit = read("memory.memsw.limit_in_bytes")
	control, _ := keyed(m.file("memory", path, "memory.oom_control"))
	s.OOMEvents = control["oom_kill"]
}

func psiInfo(s *statsapi.PSIStats) (out cadvisorapi.PSIStats) {
	if s != nil {
		out.Full, out.Some = cadvisorapi.PSIData(s.Full), cadvisorapi.PSIData(s.Some)
	}
	return out
}

// processInfo counts the processes of a cgroup, without those below, their files and sockets
// (cAdvisor's container/libcontainer, processStatsFromProcs).
func (m *Machine) processInfo(path string) (out cadvisorapi.ProcessStats) {
	b, err := os.ReadFile(m.file("cpu", path, "cgroup.procs"))
	if err != nil {
		return out // it has gone
	}
	pids := strings.Fields(string(b))
	out.ProcessCount = uint64(len(pids))
	for _, pid := range pids {
		files := filepath.Join(m.proc, pid, "fd")
		list, err := os.ReadDir(files)
		if err != nil {
			continue
		}
		out.FdCount += uint64(len(list))
		for _, f := range list {
			if to, err := os.Readlink(filepath.Join(files, f.Name())); err == nil && strings.HasPrefix(to, "socket") {
				out.SocketCount++
			}
		}
	}
	// cAdvisor knows the first process of a container alone, by its runtime.
	if len(pids) > 0 && containerID.MatchString(path) {
		out.Ulimits = openFiles(filepath.Join(m.proc, pids[0], "limits"))
	}
	// Threads are those below, too. The root has no such file.
	if out.ThreadsCurrent, err = number(m.file("pids", path, "pids.current")); err != nil {
		out.ThreadsCurrent = out.ProcessCount
	}
	if limit, err := number(m.file("pids", path, "pids.max")); err == nil && limit < unlimited {
		out.ThreadsMax = limit
	}
	return out
}

// containerID is how the cgroup of a container ends: in its ID, of systemd's with .scope.
var containerID = regexp.MustCompile(`[-/][0-9a-f]{64}(\.scope)?$`)

// openFiles is a process's limit of open files, the only one that cAdvisor tells.
func openFiles(file string) []cadvisorapi.UlimitSpec {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 {
			continue
		}
		limit := func(text string) int64 {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return -1 // unlimited
			}
			return n
		}
		return []cadvisorapi.UlimitSpec{{Name: "max_open_files", SoftLimit: limit(f[0]), HardLimit: limit(f[1])}}
	}
	return nil
}
