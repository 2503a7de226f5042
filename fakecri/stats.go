package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/disk"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

func uint64Value(v int64) *runtimeapi.UInt64Value {
	return &runtimeapi.UInt64Value{Value: uint64(max(v, 0))}
}

// usageStats are the parts that a container's and a pod's stats share, in one
// piece of memory: stats are asked for all the time.
type usageStats struct {
	cpu    runtimeapi.CpuUsage
	memory runtimeapi.MemoryUsage
	io     runtimeapi.IoUsage
	values [8]runtimeapi.UInt64Value
}

// noPressure is shared by all stats: nobody waits for anything here.
var noPressure = &runtimeapi.PsiStats{Full: &runtimeapi.PsiData{}, Some: &runtimeapi.PsiData{}}

func (u *usageStats) fill(now, memory, milli, coreNanos, limit int64) {
	v := func(i int, n int64) *runtimeapi.UInt64Value {
		u.values[i].Value = uint64(max(n, 0))
		return &u.values[i]
	}
	u.cpu.Timestamp, u.cpu.Psi = now, noPressure
	u.cpu.UsageCoreNanoSeconds, u.cpu.UsageNanoCores = v(0, coreNanos), v(1, milli*1_000_000)
	u.memory.Timestamp, u.memory.Psi = now, noPressure
	u.memory.WorkingSetBytes, u.memory.UsageBytes, u.memory.RssBytes = v(2, memory), v(3, memory), v(4, memory)
	u.memory.AvailableBytes = v(5, limit-memory)
	u.memory.PageFaults, u.memory.MajorPageFaults = v(6, memory/disk.PageSize), v(7, 0)
	u.io.Timestamp, u.io.Psi = now, noPressure
}

func (r *viewer) containerStats(c *records.Container, now int64) *runtimeapi.ContainerStats {
	memory, milli, coreNanos := r.use.UsageNow(c, now)
	written := r.disks.Measured(c)
	b := &struct {
		usageStats
		stats      runtimeapi.ContainerStats
		attributes runtimeapi.ContainerAttributes
		layer      runtimeapi.FilesystemUsage
		fs         runtimeapi.FilesystemIdentifier
		swap       runtimeapi.SwapUsage
		more       [4]runtimeapi.UInt64Value
	}{}
	lin := c.LinuxResources()
	b.fill(now, memory, milli, coreNanos, lin.GetMemoryLimitInBytes())
	b.attributes.Id, b.attributes.Metadata = c.ID, c.Config.Metadata
	b.attributes.Labels, b.attributes.Annotations = c.Labels(), c.Config.Annotations
	b.fs.Mountpoint = r.opts.ContainerFilesystem
	b.more[0].Value, b.more[1].Value = uint64(written.Bytes), uint64(written.Inodes)
	b.layer.Timestamp, b.layer.FsId = now, &b.fs
	b.layer.UsedBytes, b.layer.InodesUsed = &b.more[0], &b.more[1]
	if swap := lin.GetMemorySwapLimitInBytes() - lin.GetMemoryLimitInBytes(); swap > 0 {
		b.more[2].Value = uint64(swap)
	}
	b.swap.Timestamp, b.swap.SwapAvailableBytes, b.swap.SwapUsageBytes = now, &b.more[2], &b.more[3]
	b.stats.Attributes, b.stats.WritableLayer, b.stats.Swap = &b.attributes, &b.layer, &b.swap
	b.stats.Cpu, b.stats.Memory, b.stats.Io = &b.cpu, &b.memory, &b.io
	return &b.stats
}

// ContainerStats returns what a container uses, from its program; NotFound if
// there is none.
func (c *Client) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	ctr, err := c.readContainer(ctx, calls.ContainerStats, id)
	if err != nil {
		return nil, err
	}
	return c.r.view.containerStats(ctr, c.r.l.UnixNano()), nil
}

// ListContainerStats returns what the running containers use that the filter
// lets through.
func (c *Client) ListContainerStats(ctx context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if err := c.by.Read(ctx, calls.ListContainerStats, c.r.recs.SelectorSubject(f.GetLabelSelector())); err != nil {
		return nil, err
	}
	var out []*runtimeapi.ContainerStats
	now := c.r.l.UnixNano()
	for _, ctr := range c.r.recs.ContainerCandidates(f.GetId(), f.GetPodSandboxId(), f.GetLabelSelector()) {
		if ctr.State == records.StateRunning {
			out = append(out, c.r.view.containerStats(ctr, now))
		}
	}
	return out, nil
}

func (r *viewer) sandboxStats(s *records.Sandbox, now int64) *runtimeapi.PodSandboxStats {
	var memory, milli, coreNanos int64
	lin := &runtimeapi.LinuxPodSandboxStats{}
	processes := int64(0)
	if s.State == records.SandboxReady {
		processes = 1 // the sandbox's own
	}
	for _, c := range s.Containers {
		if c.Listed && c.State == records.StateRunning {
			m, u, n := r.use.UsageNow(c, now)
			memory, milli, coreNanos = memory+m, milli+u, coreNanos+n
			processes += r.use.ProcessesOf(c)
			lin.Containers = append(lin.Containers, r.containerStats(c, now))
		}
	}
	u := &usageStats{}
	u.fill(now, memory, milli, coreNanos, s.Config.GetLinux().GetResources().GetMemoryLimitInBytes())
	lin.Cpu, lin.Memory, lin.Io = &u.cpu, &u.memory, &u.io
	lin.Process = &runtimeapi.ProcessUsage{Timestamp: now, ProcessCount: uint64Value(processes)}
	if !s.HostNetwork() {
		eth0 := networkUsage("eth0")
		lin.Network = &runtimeapi.NetworkUsage{Timestamp: now, DefaultInterface: eth0, Interfaces: []*runtimeapi.NetworkInterfaceUsage{eth0}}
	}
	whole := s.Whole()
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id:          s.ID,
			Metadata:    s.Metadata,
			Labels:      whole.Labels,
			Annotations: whole.Annotations,
		},
		Linux: lin,
	}
}

// networkUsage is the traffic of an interface, which nobody counts here.
func networkUsage(name string) *runtimeapi.NetworkInterfaceUsage {
	return &runtimeapi.NetworkInterfaceUsage{
		Name: name, RxBytes: uint64Value(0), RxErrors: uint64Value(0), TxBytes: uint64Value(0), TxErrors: uint64Value(0),
	}
}

// PodSandboxStats returns the sums over a sandbox's running containers;
// NotFound if there is no such sandbox.
func (c *Client) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	s, err := c.readSandbox(ctx, calls.PodSandboxStats, id)
	if err != nil {
		return nil, err
	}
	return c.r.view.sandboxStats(s, c.r.l.UnixNano()), nil
}

// ListPodSandboxStats returns the sums of the READY sandboxes that the filter
// lets through.
func (c *Client) ListPodSandboxStats(ctx context.Context, f *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	if err := c.by.Read(ctx, calls.ListPodSandboxStats, c.r.recs.SelectorSubject(f.GetLabelSelector())); err != nil {
		return nil, err
	}
	var out []*runtimeapi.PodSandboxStats
	now := c.r.l.UnixNano()
	for _, s := range c.r.recs.SandboxCandidates(f.GetId(), f.GetLabelSelector()) {
		if s.Listed && s.State == records.SandboxReady && records.LabelsMatch(s, f.GetLabelSelector()) {
			out = append(out, c.r.view.sandboxStats(s, now))
		}
	}
	return out, nil
}
