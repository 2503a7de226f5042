package fakecri

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// usageNow is what a container uses: memory in bytes, CPU in millicores and,
// since its start, in core-nanoseconds. Nothing once it has ended.
func (c *container) usageNow(now int64) (memory, milli, coreNanos int64) {
	p := c.process
	if p == nil {
		return 0, 0, 0
	}
	t := time.Duration(now - p.startedAt)
	if p.in != nil {
		return p.in.kc.MemoryUsage(), 0, 0
	}
	memory = defaultMemory
	if len(p.b.Memory) > 0 {
		memory = p.b.Memory.at(t)
	}
	return memory, p.b.CPU.at(t), p.b.CPU.total(t, 1000)
}

func uint64Value(v int64) *runtimeapi.UInt64Value {
	return &runtimeapi.UInt64Value{Value: uint64(v)}
}

func (c *container) stats(now int64) *runtimeapi.ContainerStats {
	memory, milli, coreNanos := c.usageNow(now)
	bytes, inodes := c.layer()
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id:          c.id,
			Metadata:    c.config.Metadata,
			Labels:      c.config.Labels,
			Annotations: c.config.Annotations,
		},
		Cpu: cpuUsage(now, milli, coreNanos),
		Memory: &runtimeapi.MemoryUsage{
			Timestamp:       now,
			WorkingSetBytes: uint64Value(memory),
			UsageBytes:      uint64Value(memory),
			RssBytes:        uint64Value(memory),
			AvailableBytes:  uint64Value(max(c.linuxResources().GetMemoryLimitInBytes()-memory, 0)),
		},
		WritableLayer: &runtimeapi.FilesystemUsage{
			Timestamp:  now,
			FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: imageFilesystem},
			UsedBytes:  uint64Value(bytes),
			InodesUsed: uint64Value(inodes),
		},
	}
}

// layer is what a container has written beside its mounts.
func (c *container) layer() (bytes, inodes int64) {
	if c.process == nil || c.process.in == nil {
		return 0, 0
	}
	return c.process.in.view.LayerUsage()
}

// writableLayers is the sum of the containers' layers.
func (r *Runtime) writableLayers() (bytes, inodes int64) {
	if r.machine == nil {
		return 0, 0
	}
	for _, c := range r.containers {
		b, i := c.layer()
		bytes, inodes = bytes+b, inodes+i
	}
	return bytes, inodes
}

func cpuUsage(now, milli, coreNanos int64) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{
		Timestamp:            now,
		UsageCoreNanoSeconds: uint64Value(coreNanos),
		UsageNanoCores:       uint64Value(milli * 1_000_000),
	}
}

// ContainerStats returns what a container uses, from its program; NotFound if
// there is none.
func (c *Client) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	if err := c.read(ctx, mContainerStats, c.r.containerSubject(id)); err != nil {
		return nil, err
	}
	ctr := c.r.containerByID[id]
	if ctr == nil {
		return nil, containerNotFound(id)
	}
	return ctr.stats(c.r.l.UnixNano()), nil
}

// ListContainerStats returns what the running containers use that the filter
// lets through.
func (c *Client) ListContainerStats(ctx context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if err := c.read(ctx, mListContainerStats, c.r.selectorSubject(f.GetLabelSelector())); err != nil {
		return nil, err
	}
	var out []*runtimeapi.ContainerStats
	now := c.r.l.UnixNano()
	for _, ctr := range c.r.containerCandidates(f.GetId(), f.GetPodSandboxId(), f.GetLabelSelector()) {
		if ctr.state == stateRunning {
			out = append(out, ctr.stats(now))
		}
	}
	return out, nil
}

func (s *sandbox) stats(now int64) *runtimeapi.PodSandboxStats {
	var memory, milli, coreNanos int64
	lin := &runtimeapi.LinuxPodSandboxStats{}
	for _, c := range s.containers {
		if c.listed && c.state == stateRunning {
			m, u, n := c.usageNow(now)
			memory, milli, coreNanos = memory+m, milli+u, coreNanos+n
			lin.Containers = append(lin.Containers, c.stats(now))
		}
	}
	lin.Cpu = cpuUsage(now, milli, coreNanos)
	lin.Memory = &runtimeapi.MemoryUsage{Timestamp: now, WorkingSetBytes: uint64Value(memory), UsageBytes: uint64Value(memory), RssBytes: uint64Value(memory)}
	lin.Process = &runtimeapi.ProcessUsage{Timestamp: now, ProcessCount: uint64Value(int64(len(lin.Containers)))}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id:          s.id,
			Metadata:    s.config.Metadata,
			Labels:      s.config.Labels,
			Annotations: s.config.Annotations,
		},
		Linux: lin,
	}
}

// PodSandboxStats returns the sums over a sandbox's running containers;
// NotFound if there is no such sandbox.
func (c *Client) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	if err := c.read(ctx, mPodSandboxStats, c.r.sandboxSubject(id)); err != nil {
		return nil, err
	}
	s := c.r.sandboxByID[id]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "an error occurred when trying to find sandbox %s: not found", id)
	}
	return s.stats(c.r.l.UnixNano()), nil
}

// ListPodSandboxStats returns the sums of the READY sandboxes that the filter
// lets through.
func (c *Client) ListPodSandboxStats(ctx context.Context, f *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	if err := c.read(ctx, mListPodSandboxStats, c.r.selectorSubject(f.GetLabelSelector())); err != nil {
		return nil, err
	}
	var out []*runtimeapi.PodSandboxStats
	now := c.r.l.UnixNano()
	for _, s := range c.r.sandboxCandidates(f.GetId(), f.GetLabelSelector()) {
		if s.listed && s.state == sandboxReady && labelsMatch(s.config.Labels, f.GetLabelSelector()) {
			out = append(out, s.stats(now))
		}
	}
	return out, nil
}
