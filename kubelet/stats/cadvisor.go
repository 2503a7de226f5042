package stats

import (
	"context"
	"path"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Cgroups is what cAdvisor would say of the machine and its cgroups.
type Cgroups struct {
	Machine *cadvisorapi.MachineInfo
	Version *cadvisorapi.VersionInfo
	// List has each cgroup with its last statistics, in no order.
	List []*cadvisorapi.ContainerInfo
	// Pressure says that the kernel counts for how long processes wait.
	Pressure bool
}

// CgroupLister is a Machine that can tell everything about its cgroups.
type CgroupLister interface {
	// Cgroups may wait. Only List and Pressure are set, without labels and images.
	Cgroups(ctx context.Context) (*Cgroups, error)
}

// ContainerLister has what else there is to know of containers.
type ContainerLister interface {
	Runtime
	ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error)
}

// Cgroups returns what cAdvisor would: the machine's own list of cgroups, or, where it
// has none, the statistics of the node, the pods and the running containers.
func (p *Provider) Cgroups(ctx context.Context, rt ContainerLister, info *cadvisorapi.MachineInfo, version *cadvisorapi.VersionInfo) (*Cgroups, error) {
	containers, err := rt.ListContainers(ctx, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	if err != nil {
		return nil, err
	}
	sandboxes, err := rt.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}})
	if err != nil {
		return nil, err
	}
	if m, ok := p.o.Machine.(CgroupLister); ok {
		out, err := m.Cgroups(ctx)
		if err != nil {
			return nil, err
		}
		out.Machine, out.Version = info, version
		p.name(out.List, containers, sandboxes)
		return out, nil
	}
	out := &Cgroups{Machine: info, Version: version, Pressure: true}
	s, err := p.Summary(ctx, false)
	if err != nil {
		return nil, err
	}
	out.List = p.summed(ctx, s, rt, containers)
	p.name(out.List, containers, sandboxes)
	return out, nil
}

// podCgroup is the cgroup of a pod, wherever cgroups are kept.
func (p *Provider) podCgroup(uid string) string {
	if p.o.PodCgroup != nil {
		return p.o.PodCgroup(types.UID(uid))
	}
	return ""
}

// name says whose the cgroups are: by the ID in a container's, and a pod's by its path.
func (p *Provider) name(list []*cadvisorapi.ContainerInfo, containers []*runtimeapi.Container, sandboxes []*runtimeapi.PodSandbox) {
	byID := map[string]*runtimeapi.Container{}
	for _, c := range containers {
		byID[c.Id] = c
	}
	pods, pauses := map[string]*runtimeapi.PodSandbox{}, map[string]*runtimeapi.PodSandbox{}
	for _, s := range sandboxes {
		pauses[s.Id] = s
		if g := p.podCgroup(s.GetMetadata().GetUid()); g != "" {
			pods[g] = s
		}
	}
	for _, c := range list {
		id := strings.TrimSuffix(path.Base(c.Name), ".scope")
		if i := strings.LastIndexByte(id, '-'); i >= 0 && len(id)-i > 64 {
			id = id[i+1:] // systemd's have the runtime before
		}
		if of := byID[id]; of != nil {
			c.Aliases, c.Spec.Image, c.Spec.Labels = []string{id}, of.GetImage().GetUserSpecifiedImage(), of.Labels
			if c.Spec.Image == "" {
				c.Spec.Image = of.GetImage().GetImage()
			}
		} else if of := pauses[id]; of != nil {
			c.Aliases, c.Spec.Labels = []string{id}, of.Labels
		} else if of := pods[c.Name]; of != nil {
			c.Spec.Labels = map[string]string{labelPodName: of.GetMetadata().GetName(), labelPodNamespace: of.GetMetadata().GetNamespace()}
		}
	}
}

// summed makes cgroups of statistics.
func (p *Provider) summed(ctx context.Context, s *statsapi.Summary, rt ContainerLister, containers []*runtimeapi.Container) []*cadvisorapi.ContainerInfo {
	now := p.o.Loop.Now()
	root := counted("/", now, s.Node.CPU, s.Node.Memory, s.Node.Swap)
	root.Spec.CreationTime = s.Node.StartTime.Time
	if r := s.Node.Rlimit; r != nil && r.NumOfRunningProcesses != nil {
		root.Stats[0].Processes = cadvisorapi.ProcessStats{ProcessCount: uint64(*r.NumOfRunningProcesses), ThreadsCurrent: uint64(*r.NumOfRunningProcesses)}
	}
	if n := s.Node.Network; n != nil {
		root.Spec.HasNetwork = true
		for _, i := range n.Interfaces {
			root.Stats[0].Network.Interfaces = append(root.Stats[0].Network.Interfaces, cadvisorapi.InterfaceStats{
				Name: i.Name, RxBytes: value(i.RxBytes), RxErrors: value(i.RxErrors), TxBytes: value(i.TxBytes), TxErrors: value(i.TxErrors),
			})
		}
	}
	if fs := s.Node.Fs; fs != nil {
		root.Spec.HasFilesystem = true
		root.Stats[0].Filesystem = []cadvisorapi.FsStats{{
			Device: rootDevice, Limit: value(fs.CapacityBytes), Usage: value(fs.UsedBytes), Available: value(fs.AvailableBytes),
			HasInodes: true, Inodes: value(fs.Inodes), InodesFree: value(fs.InodesFree),
		}}
	}
	out := []*cadvisorapi.ContainerInfo{root}
	for i := range s.Node.SystemContainers {
		c := &s.Node.SystemContainers[i]
		g := counted(p.o.PodsCgroup, now, c.CPU, c.Memory, c.Swap)
		g.Spec.CreationTime = c.StartTime.Time
		out = append(out, g)
	}
	ids := map[string]*runtimeapi.Container{}
	for _, c := range containers {
		ids[c.Labels[labelPodUID]+"/"+c.Labels[labelContainerName]] = c
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		cgroup := p.podCgroup(pod.PodRef.UID)
		g := counted(cgroup, now, pod.CPU, pod.Memory, pod.Swap)
		g.Spec.CreationTime = pod.StartTime.Time
		if n := pod.ProcessStats; n != nil {
			g.Stats[0].Processes.ProcessCount, g.Stats[0].Processes.ThreadsCurrent = value(n.ProcessCount), value(n.ProcessCount)
		}
		out = append(out, g)
		for j := range pod.Containers {
			of := ids[pod.PodRef.UID+"/"+pod.Containers[j].Name]
			if of == nil {
				continue
			}
			c := &pod.Containers[j]
			g := counted(path.Join(cgroup, of.Id), now, c.CPU, c.Memory, c.Swap)
			g.Spec.CreationTime = c.StartTime.Time
			if fs := c.Rootfs; fs != nil {
				g.Stats[0].Filesystem = []cadvisorapi.FsStats{{Device: rootDevice, Limit: value(fs.CapacityBytes), Usage: value(fs.UsedBytes),
					HasInodes: true, Inodes: value(fs.Inodes), InodesFree: value(fs.InodesFree)}}
			}
			if resp, err := rt.ContainerStatus(ctx, of.Id, false); err == nil {
				limits(&g.Spec, resp.GetStatus().GetResources().GetLinux())
			}
			out = append(out, g)
		}
	}
	return out
}

// rootDevice is what a machine's disk is called that has no name.
const rootDevice = "/dev/vda1"

// limits are what a cgroup may have.
func limits(spec *cadvisorapi.ContainerSpec, r *runtimeapi.LinuxContainerResources) {
	if r == nil {
		return
	}
	spec.Cpu.Limit, spec.Cpu.Period = uint64(max(r.CpuShares, 2)), uint64(r.CpuPeriod)
	if r.CpuQuota > 0 {
		spec.Cpu.Quota = uint64(r.CpuQuota)
	}
	spec.Memory.Limit, spec.Memory.SwapLimit = uint64(max(r.MemoryLimitInBytes, 0)), uint64(max(r.MemorySwapLimitInBytes, 0))
}

// counted is a cgroup with its statistics.
func counted(name string, now time.Time, c *statsapi.CPUStats, m *statsapi.MemoryStats, w *statsapi.SwapStats) *cadvisorapi.ContainerInfo {
	s := &cadvisorapi.ContainerStats{Timestamp: now}
	if c != nil {
		s.Timestamp = c.Time.Time
		s.Cpu.Usage.Total = value(c.UsageCoreNanoSeconds)
		// Nobody says how much of it was the kernel's.
		s.Cpu.Usage.User = s.Cpu.Usage.Total
		s.Cpu.PSI = pressed(c.PSI)
	}
	if m != nil {
		s.Memory.Usage, s.Memory.MaxUsage, s.Memory.WorkingSet, s.Memory.RSS = value(m.UsageBytes), value(m.UsageBytes), value(m.WorkingSetBytes), value(m.RSSBytes)
		faults := cadvisorapi.MemoryStatsMemoryData{Pgfault: value(m.PageFaults), Pgmajfault: value(m.MajorPageFaults)}
		s.Memory.ContainerData, s.Memory.HierarchicalData = faults, faults
		s.Memory.PSI = pressed(m.PSI)
	}
	if w != nil {
		s.Memory.Swap = value(w.SwapUsageBytes)
	}
	return &cadvisorapi.ContainerInfo{
		ContainerReference: cadvisorapi.ContainerReference{Name: name},
		Spec:               cadvisorapi.ContainerSpec{HasCpu: c != nil, HasMemory: m != nil, HasProcesses: true, Cpu: cadvisorapi.CpuSpec{Limit: defaultShares, Period: defaultPeriod}},
		Stats:              []*cadvisorapi.ContainerStats{s},
	}
}

// The kernel's defaults of a cgroup: its shares, and the period of quotas in us.
const (
	defaultShares = 1024
	defaultPeriod = 100_000
)

func pressed(s *statsapi.PSIStats) (out cadvisorapi.PSIStats) {
	if s != nil {
		out.Full, out.Some = cadvisorapi.PSIData(s.Full), cadvisorapi.PSIData(s.Some)
	}
	return out
}

// value is a number that may be missing.
func value(v *uint64) uint64 {
	if v == nil {
		return 0
	}
	return *v
}
