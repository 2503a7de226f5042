package sim

import (
	"context"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/kubelet/oom"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// MachineUsage is what a machine uses itself, outside pods, by the time since
// the run's start; nil is nothing.
type MachineUsage struct {
	// Memory in bytes, CPU in millicores, PIDs in processes.
	Memory, CPU, PIDs *usage.Curve
	// Disk and Inodes are of the root file system, ImageDisk and ImageInodes of
	// the images', if that is another one; bytes, and how many.
	Disk, Inodes, ImageDisk, ImageInodes *usage.Curve
}

// SetUsage changes what the machine uses itself, from now on: each curve that is
// not nil takes an earlier one's place, and begins now.
func (n *Node) SetUsage(u MachineUsage) {
	if u.Memory != nil {
		n.rt.SetSystemMemory(u.Memory)
	}
	if u.CPU != nil {
		n.rt.SetSystemCPU(u.CPU)
	}
	if u.PIDs != nil {
		n.rt.SetSystemPIDs(u.PIDs)
	}
	n.setDiskUsage(u)
}

// maxPIDs is how many processes a machine can have: the smaller of the kernel's
// pid_max and threads-max.
func (o *NodeOptions) maxPIDs(memory int64) int64 {
	pids, threads := o.PIDMax, o.ThreadsMax
	if pids == 0 {
		pids = 1 << 22 // what systemd sets
	}
	if threads == 0 {
		// An eighth of the memory in kernel stacks of 16 KiB (kernel/fork.c).
		threads = max(memory/(8*16<<10), 20)
	}
	return min(pids, threads)
}

// machineStats is what a kubelet of the node is told of the machine's use.
type machineStats struct {
	n *Node
	g *loop.Group // the kubelet's
	// nil: pods' cgroups are not counted.
	s *sampler
}

var (
	_ stats.Machine = machineStats{}
	_ stats.Watcher = machineStats{}
	_ stats.Prober  = machineStats{}
	_ oom.Source    = machineStats{}
)

func (m machineStats) usage() fakecri.NodeUsage { return m.n.rt.NodeUsage() }

func (m machineStats) memoryCapacity() int64 { return m.n.machine.capacity.Memory().Value() }

// memoryStats are those of a cgroup with a limit in bytes, 0 for none.
func (m machineStats) memoryStats(used, limit int64) *statsapi.MemoryStats {
	s := &statsapi.MemoryStats{
		Time: metav1.NewTime(m.n.l.Now()), UsageBytes: amount(used), WorkingSetBytes: amount(used), RSSBytes: amount(used),
		PageFaults: amount(used / pageSize), MajorPageFaults: amount(0), // each page was touched once
	}
	if limit > 0 {
		s.AvailableBytes = amount(limit - used)
	}
	return s
}

// pageSize is a page of memory, in bytes.
const pageSize = 4096

func amount(n int64) *uint64 {
	return new(uint64(max(n, 0)))
}

func (m machineStats) cpuStats(milli, total int64) *statsapi.CPUStats {
	return &statsapi.CPUStats{Time: metav1.NewTime(m.n.l.Now()), UsageNanoCores: amount(milli * 1_000_000), UsageCoreNanoSeconds: amount(total)}
}

// Memory implements stats.Machine.
func (m machineStats) Memory(context.Context) (*statsapi.MemoryStats, error) {
	return m.memoryStats(m.usage().Memory, m.memoryCapacity()), nil
}

// CPU implements stats.Machine.
func (m machineStats) CPU(context.Context) (*statsapi.CPUStats, error) {
	u := m.usage()
	return m.cpuStats(u.MilliCPU, u.CPU), nil
}

// Swap implements stats.Machine: nothing is ever swapped out.
func (m machineStats) Swap(context.Context) (*statsapi.SwapStats, error) {
	return &statsapi.SwapStats{Time: metav1.NewTime(m.n.l.Now()), SwapAvailableBytes: amount(m.n.machine.swap), SwapUsageBytes: amount(0)}, nil
}

// Created implements stats.Machine: cgroups are made right after a boot.
func (m machineStats) Created(context.Context, string) (metav1.Time, error) {
	return metav1.NewTime(time.Unix(0, m.n.machine.booted)), nil
}

// IO implements stats.Machine: nobody waits for a disk.
func (m machineStats) IO(context.Context) (*statsapi.IOStats, error) {
	return &statsapi.IOStats{Time: metav1.NewTime(m.n.l.Now())}, nil
}

// Network implements stats.Machine. Connections are calls within the simulation, so
// nothing passes the interface.
func (m machineStats) Network(context.Context) (*statsapi.NetworkStats, error) {
	eth0 := statsapi.InterfaceStats{Name: "eth0", RxBytes: amount(0), RxErrors: amount(0), TxBytes: amount(0), TxErrors: amount(0)}
	return &statsapi.NetworkStats{Time: metav1.NewTime(m.n.l.Now()), InterfaceStats: eth0, Interfaces: []statsapi.InterfaceStats{eth0}}, nil
}

// Cgroup implements stats.Machine. Only the cgroup of all pods is counted, and
// those of pods if there is a sampler.
func (m machineStats) Cgroup(_ context.Context, path string) (*stats.Cgroup, error) {
	if c := m.sampled(path); c != nil {
		return c, nil
	}
	if !strings.HasSuffix(path, "kubepods") && !strings.HasSuffix(path, "kubepods.slice") {
		return nil, nil
	}
	u := m.usage()
	return &stats.Cgroup{
		CPU: m.cpuStats(u.PodsMilliCPU, u.PodsCPU), Memory: m.memoryStats(u.PodsMemory, u.PodsMemoryLimit), Processes: amount(u.PodsPIDs),
	}, nil
}

// PIDs implements stats.Machine.
func (m machineStats) PIDs(context.Context) (*statsapi.RlimitStats, error) {
	u := m.usage()
	return &statsapi.RlimitStats{Time: metav1.NewTime(m.n.l.Now()), MaxPID: &u.MaxPIDs, NumOfRunningProcesses: &u.PIDs}, nil
}

// ceilings are how much may be used of memory, of the pods' memory and of
// process numbers so that floor is still available.
func (m machineStats) ceilings(floor stats.Floor, u fakecri.NodeUsage) (memory, pods, pids int64) {
	below := func(floor, capacity int64) int64 {
		if floor <= 0 || capacity <= 0 {
			return math.MaxInt64
		}
		return capacity - floor
	}
	return below(floor.Memory, m.memoryCapacity()), below(floor.PodsMemory, u.PodsMemoryLimit), below(floor.PIDs, u.MaxPIDs)
}

// Below implements stats.Prober.
func (m machineStats) Below(floor stats.Floor) bool {
	u := m.usage()
	memory, pods, pids := m.ceilings(floor, u)
	return u.Memory > memory || u.PodsMemory > pods || u.PIDs > pids || m.n.disksBelow(floor)
}

// Watch implements stats.Watcher.
func (m machineStats) Watch(floor stats.Floor, changed func()) bool {
	done := false
	fire := func() {
		if done || m.g.Dead() {
			return
		}
		done = true
		m.n.rt.WatchUsage(0, 0, 0, nil)
		m.n.watchDisks(stats.Floor{}, nil)
		changed()
	}
	memory, pods, pids := m.ceilings(floor, m.usage())
	if m.n.disksBelow(floor) || !m.n.rt.WatchUsage(memory, pods, pids, fire) {
		m.n.rt.WatchUsage(0, 0, 0, nil)
		m.n.watchDisks(stats.Floor{}, nil)
		return false
	}
	m.n.watchDisks(floor, fire)
	return true
}

// WatchOOM implements oom.Source.
func (m machineStats) WatchOOM(fn func(oom.Kill)) error {
	m.n.rt.WatchOOM(m.g, func(k fakecri.OOMKill) {
		fn(oom.Kill{Time: m.n.l.Now(), Process: k.Process, PID: k.PID, Container: k.Cgroup, Victim: k.Victim})
	})
	return nil
}
