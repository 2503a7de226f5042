package fakecri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// usageNow is what a container uses: memory in bytes, CPU in millicores and,
// since its start, in core-nanoseconds. Nothing once it has ended.
func (r *accounts) usageNow(c *container, now int64) (memory, milli, coreNanos int64) {
	p := c.process
	if p == nil {
		return 0, 0, 0
	}
	memory = r.memoryNow(c, now)
	if p.in != nil {
		return memory, p.in.milliCPU(now), p.in.coreNanos()
	}
	if p.b.CPU == nil {
		return memory, 0, 0
	}
	return memory, p.usageOf(r.l, r.cpuOf(p).curve, now), r.cpuTotal(p, now)
}

// memoryNow is what a container that has started uses of memory, in bytes.
func (r *accounts) memoryNow(c *container, now int64) int64 {
	if p := c.process; p.in == nil {
		return p.usageOf(r.l, p.b.memory(), now)
	}
	return c.process.in.kc.MemoryUsage()
}

// startCPU is what an interpreted program has used by the time it runs.
const startCPU = 20 * time.Millisecond

// coreNanos is the processor time that the container's processes have used.
func (in *interpreted) coreNanos() int64 { return int64(startCPU) + in.kc.CPU() }

// milliCPU is what the container uses of processors, in millicores: the mean
// since somebody last asked, of a second at least.
func (in *interpreted) milliCPU(now int64) int64 {
	if in.askedAt == 0 {
		in.askedAt = in.c.process.startedAt
	}
	if d := now - in.askedAt; d >= int64(time.Second) {
		cpu := in.kc.CPU()
		in.milli = (cpu - in.askedCPU) / (d / 1000)
		in.askedAt, in.askedCPU = now, cpu
	}
	return in.milli
}

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
	u.memory.PageFaults, u.memory.MajorPageFaults = v(6, memory/pageSize), v(7, 0)
	u.io.Timestamp, u.io.Psi = now, noPressure
}

func (r *viewer) containerStats(c *container, now int64) *runtimeapi.ContainerStats {
	memory, milli, coreNanos := r.use.usageNow(c, now)
	written := r.disks.layerMeasured(c)
	b := &struct {
		usageStats
		stats      runtimeapi.ContainerStats
		attributes runtimeapi.ContainerAttributes
		layer      runtimeapi.FilesystemUsage
		fs         runtimeapi.FilesystemIdentifier
		swap       runtimeapi.SwapUsage
		more       [4]runtimeapi.UInt64Value
	}{}
	lin := c.linuxResources()
	b.fill(now, memory, milli, coreNanos, lin.GetMemoryLimitInBytes())
	b.attributes.Id, b.attributes.Metadata = c.id, c.config.Metadata
	b.attributes.Labels, b.attributes.Annotations = c.labels(), c.config.Annotations
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
	if err := c.by.read(ctx, mContainerStats, c.r.recs.containerSubject(id)); err != nil {
		return nil, err
	}
	ctr, err := c.r.recs.needContainer(id)
	if err != nil {
		return nil, err
	}
	return c.r.view.containerStats(ctr, c.r.l.UnixNano()), nil
}

// ListContainerStats returns what the running containers use that the filter
// lets through.
func (c *Client) ListContainerStats(ctx context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if err := c.by.read(ctx, mListContainerStats, c.r.recs.selectorSubject(f.GetLabelSelector())); err != nil {
		return nil, err
	}
	var out []*runtimeapi.ContainerStats
	now := c.r.l.UnixNano()
	for _, ctr := range c.r.recs.containerCandidates(f.GetId(), f.GetPodSandboxId(), f.GetLabelSelector()) {
		if ctr.state == stateRunning {
			out = append(out, c.r.view.containerStats(ctr, now))
		}
	}
	return out, nil
}

// processes is how many processes a container has.
func (r *accounts) processesOf(c *container) int64 {
	switch p := c.process; {
	case p == nil:
		return 0
	case p.in != nil:
		return int64(p.in.kc.ProcessCount())
	default:
		return p.usageOf(r.l, r.cappedPIDs(p.b), r.l.UnixNano())
	}
}

func (r *viewer) sandboxStats(s *sandbox, now int64) *runtimeapi.PodSandboxStats {
	var memory, milli, coreNanos int64
	lin := &runtimeapi.LinuxPodSandboxStats{}
	processes := int64(0)
	if s.state == sandboxReady {
		processes = 1 // the sandbox's own
	}
	for _, c := range s.containers {
		if c.listed && c.state == stateRunning {
			m, u, n := r.use.usageNow(c, now)
			memory, milli, coreNanos = memory+m, milli+u, coreNanos+n
			processes += r.use.processesOf(c)
			lin.Containers = append(lin.Containers, r.containerStats(c, now))
		}
	}
	u := &usageStats{}
	u.fill(now, memory, milli, coreNanos, s.config.GetLinux().GetResources().GetMemoryLimitInBytes())
	lin.Cpu, lin.Memory, lin.Io = &u.cpu, &u.memory, &u.io
	lin.Process = &runtimeapi.ProcessUsage{Timestamp: now, ProcessCount: uint64Value(processes)}
	if !s.hostNetwork() {
		eth0 := networkUsage("eth0")
		lin.Network = &runtimeapi.NetworkUsage{Timestamp: now, DefaultInterface: eth0, Interfaces: []*runtimeapi.NetworkInterfaceUsage{eth0}}
	}
	whole := s.whole()
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id:          s.id,
			Metadata:    s.metadata,
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
	if err := c.by.read(ctx, mPodSandboxStats, c.r.recs.sandboxSubject(id)); err != nil {
		return nil, err
	}
	s, err := c.r.recs.needSandbox(id)
	if err != nil {
		return nil, err
	}
	return c.r.view.sandboxStats(s, c.r.l.UnixNano()), nil
}

// ListPodSandboxStats returns the sums of the READY sandboxes that the filter
// lets through.
func (c *Client) ListPodSandboxStats(ctx context.Context, f *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	if err := c.by.read(ctx, mListPodSandboxStats, c.r.recs.selectorSubject(f.GetLabelSelector())); err != nil {
		return nil, err
	}
	var out []*runtimeapi.PodSandboxStats
	now := c.r.l.UnixNano()
	for _, s := range c.r.recs.sandboxCandidates(f.GetId(), f.GetLabelSelector()) {
		if s.listed && s.state == sandboxReady && labelsMatch(s, f.GetLabelSelector()) {
			out = append(out, c.r.view.sandboxStats(s, now))
		}
	}
	return out, nil
}
