package stats

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// Runtime is what the provider asks of the CRI.
type Runtime interface {
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error)
}

// Images says where images are.
type Images interface {
	ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
}

// FS is what the provider needs of the node's files.
type FS interface {
	Usage(name string) (bytes, inodes int64)
}

// The labels by which the kubelet finds its containers.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

// Options are what a Provider is made of.
type Options struct {
	Loop     *loop.Loop
	NodeName string
	Runtime  Runtime
	Images   Images
	// Machine has what is not a container's; nil: it is not known.
	Machine Machine
	FS      FS
	// Volumes are those of the pods; nil: there are none.
	Volumes *Volumes
	// RootDir is the kubelet's directory, by which the root file system is
	// known.
	RootDir string
	// Labelled says that the runtime's file systems can be told apart, as
	// cAdvisor can for CRI-O only: then one for writable layers counts.
	Labelled bool
	// PodsCgroup is the path of the cgroup that holds all pods, PodCgroup that of
	// one pod's; "" if there is none.
	PodsCgroup string
	PodCgroup  func(uid types.UID) string
	// LogDir is a pod's log directory, HostsFile its /etc/hosts on the node.
	LogDir    func(namespace, name string, uid types.UID) string
	HostsFile func(uid types.UID) string
}

// Provider makes statistics of what the CRI and the machine say: upstream's CRI
// stats provider, in the mode in which cAdvisor has the pods' cgroups.
type Provider struct {
	o     Options
	cores nanoCores
}

// NewProvider returns a Provider. It keeps nothing but rates of CPU use.
func NewProvider(o Options) *Provider { return &Provider{o: o} }

// errNoMachine is what statistics of the node end in without a Machine.
var errNoMachine = errors.New("nobody counts what the machine uses")

// Summary returns the statistics of the node and of all its pods. With force
// rates of CPU use that the runtime does not tell are computed anew.
func (p *Provider) Summary(ctx context.Context, force bool) (*statsapi.Summary, error) {
	if p.o.Machine == nil {
		return nil, errNoMachine
	}
	s := &statsapi.Summary{Node: statsapi.NodeStats{NodeName: p.o.NodeName}}
	if err := p.node(ctx, &s.Node); err != nil {
		return nil, err
	}
	created, err := p.running(ctx, nil)
	if err == nil {
		s.Pods, err = p.pods(ctx, nil, created, force, s.Node.Fs)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to list pod stats: %w", err)
	}
	p.processes(ctx, s.Pods)
	return s, nil
}

// running returns when the containers that run were created, in ns.
func (p *Provider) running(ctx context.Context, selector map[string]string) (map[string]int64, error) {
	containers, err := p.o.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}, LabelSelector: selector,
	})
	if err != nil {
		return nil, fmt.Errorf("failed to list all containers: %w", err)
	}
	created := make(map[string]int64, len(containers))
	for _, c := range containers {
		created[c.Id] = c.CreatedAt
	}
	return created, nil
}

// processes counts those of pods whose cgroup nobody looks into: the runtime
// knows. Upstream never asks it, so nothing fails if it does not say.
func (p *Provider) processes(ctx context.Context, pods []statsapi.PodStats) {
	byUID := map[string]*statsapi.PodStats{}
	for i := range pods {
		if pods[i].ProcessStats == nil {
			byUID[pods[i].PodRef.UID] = &pods[i]
		}
	}
	if len(byUID) == 0 {
		return
	}
	list, err := p.o.Runtime.ListPodSandboxStats(ctx, nil)
	if err != nil {
		return
	}
	for _, s := range list {
		n := number(s.GetLinux().GetProcess().GetProcessCount())
		if pod := byUID[s.GetAttributes().GetLabels()[labelPodUID]]; pod != nil && n != nil {
			pod.ProcessStats = &statsapi.ProcessStats{ProcessCount: n}
		}
	}
}

// Pods returns the statistics of some pods, without the file systems that they
// are on. It fails when those of the node would.
func (p *Provider) Pods(ctx context.Context, pods []*v1.Pod) ([]statsapi.PodStats, error) {
	if p.o.Machine != nil {
		if _, err := p.Filesystems(ctx); err != nil {
			return nil, fmt.Errorf("failed to get imageFs stats: %w", err)
		}
	}
	var selector map[string]string
	var filter *runtimeapi.ContainerStatsFilter
	if len(pods) == 1 {
		selector = map[string]string{labelPodUID: string(pods[0].UID)}
		filter = &runtimeapi.ContainerStatsFilter{LabelSelector: selector}
	}
	created, err := p.running(ctx, selector)
	if err != nil {
		return nil, err
	}
	return p.pods(ctx, filter, created, false, nil)
}

// pods asks the runtime. created, if given, has the running containers, and
// others don't count.
func (p *Provider) pods(ctx context.Context, f *runtimeapi.ContainerStatsFilter, created map[string]int64, force bool, root *statsapi.FsStats) ([]statsapi.PodStats, error) {
	list, err := p.o.Runtime.ListContainerStats(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("failed to list all container stats: %w", err)
	}
	var out []statsapi.PodStats
	index := map[string]int{}
	disks := map[string]*Filesystem{}
	for _, s := range list {
		at, ok := created[s.GetAttributes().GetId()]
		if created != nil && !ok {
			continue
		}
		labels := s.GetAttributes().GetLabels()
		uid := labels[labelPodUID]
		i, known := index[uid]
		if !known {
			i = len(out)
			index[uid] = i
			out = append(out, statsapi.PodStats{PodRef: statsapi.PodReference{Name: labels[labelPodName], Namespace: labels[labelPodNamespace], UID: uid}})
		}
		pod := &out[i]
		c := p.container(ctx, s, pod, force, disks)
		if c.StartTime = metav1.NewTime(time.Unix(0, at)); pod.StartTime.IsZero() || c.StartTime.Before(&pod.StartTime) {
			pod.StartTime = c.StartTime
		}
		pod.Containers = append(pod.Containers, c)
	}
	for i := range out {
		p.finish(ctx, &out[i], root)
	}
	if force {
		p.cores.expire(p.o.Loop.UnixNano())
	}
	return out, nil
}

// finish adds what a pod has as a whole: of its cgroup, or else of its
// containers; its volumes; the sum of its local storage.
func (p *Provider) finish(ctx context.Context, s *statsapi.PodStats, root *statsapi.FsStats) {
	uid := types.UID(s.PodRef.UID)
	if p.o.Volumes != nil {
		s.VolumeStats = p.o.Volumes.Get(uid)
	}
	p.cgroup(ctx, s, uid)
	if s.CPU == nil {
		s.CPU = sumCPU(s.Containers)
	}
	if s.Memory == nil {
		s.Memory = sumMemory(s.Containers)
	}
	s.Swap, s.IO = p.swapped(s.Swap), p.pressures(s.CPU, s.Memory, s.IO)
	total := &statsapi.FsStats{Time: p.now()}
	if root != nil {
		total.AvailableBytes, total.CapacityBytes, total.InodesFree, total.Inodes = root.AvailableBytes, root.CapacityBytes, root.InodesFree, root.Inodes
	}
	var bytes, inodes uint64
	add := func(fs *statsapi.FsStats) {
		if fs != nil && fs.UsedBytes != nil {
			bytes += *fs.UsedBytes
		}
		if fs != nil && fs.InodesUsed != nil {
			inodes += *fs.InodesUsed
		}
	}
	for i := range s.Containers {
		if l := s.Containers[i].Logs; l != nil && root != nil {
			l.AvailableBytes, l.CapacityBytes, l.InodesFree, l.Inodes = root.AvailableBytes, root.CapacityBytes, root.InodesFree, root.Inodes
		}
		if s.Containers[i].Rootfs != nil {
			add(s.Containers[i].Rootfs)
			add(s.Containers[i].Logs)
		}
	}
	for i := range s.VolumeStats {
		if p.o.Volumes.ephemeral(uid, s.VolumeStats[i].Name) {
			add(&s.VolumeStats[i].FsStats)
		}
	}
	b, n := p.usage(ctx, p.o.HostsFile(uid))
	bytes, inodes = bytes+uint64(b), inodes+uint64(n)
	total.UsedBytes, total.InodesUsed = &bytes, &inodes
	s.EphemeralStorage = total
}

// cgroup reads the pod's, if the machine counts there.
func (p *Provider) cgroup(ctx context.Context, s *statsapi.PodStats, uid types.UID) {
	name := ""
	if p.o.Machine != nil && p.o.PodCgroup != nil {
		name = p.o.PodCgroup(uid)
	}
	if name == "" {
		return
	}
	g, err := p.o.Machine.Cgroup(ctx, name)
	if err != nil || g == nil {
		return
	}
	s.CPU, s.Memory, s.Swap, s.IO = g.CPU, g.Memory, g.Swap, g.IO
	if g.Processes != nil {
		s.ProcessStats = &statsapi.ProcessStats{ProcessCount: g.Processes}
	}
}

// container is one container's, with what its logs use, which no runtime
// reports.
func (p *Provider) container(ctx context.Context, s *runtimeapi.ContainerStats, pod *statsapi.PodStats, force bool, disks map[string]*Filesystem) statsapi.ContainerStats {
	name := s.GetAttributes().GetLabels()[labelContainerName]
	c := statsapi.ContainerStats{Name: name, CPU: p.cpu(s, force), Memory: p.memory(s), IO: p.io(s), Swap: p.swap(s)}
	if l := s.WritableLayer; l != nil {
		fs := &statsapi.FsStats{Time: at(l.Timestamp), UsedBytes: number(l.UsedBytes), InodesUsed: number(l.InodesUsed)}
		if d := p.disk(ctx, l.GetFsId().GetMountpoint(), disks); d != nil {
			fs.AvailableBytes, fs.CapacityBytes, fs.InodesFree, fs.Inodes = d.AvailableBytes, d.CapacityBytes, d.InodesFree, d.Inodes
		}
		c.Rootfs = fs
	}
	b, n := p.usage(ctx, path.Join(p.o.LogDir(pod.PodRef.Namespace, pod.PodRef.Name, types.UID(pod.PodRef.UID)), name))
	bytes, inodes := uint64(b), uint64(n)
	c.Logs = &statsapi.FsStats{Time: p.now(), UsedBytes: &bytes, InodesUsed: &inodes}
	return c
}

// disk finds the file system at a mount point, once for each answer.
func (p *Provider) disk(ctx context.Context, mountpoint string, known map[string]*Filesystem) *Filesystem {
	if p.o.Machine == nil || mountpoint == "" {
		return nil
	}
	d, ok := known[mountpoint]
	if !ok {
		d, _ = p.o.Machine.Filesystem(ctx, mountpoint)
		known[mountpoint] = d
	}
	return d
}

// memory is a container's. What is available of an unlimited one is unknown
// rather than 0.
func (p *Provider) memory(s *runtimeapi.ContainerStats) *statsapi.MemoryStats {
	m := s.Memory
	if m == nil {
		zero := uint64(0)
		return &statsapi.MemoryStats{Time: p.now(), WorkingSetBytes: &zero, UsageBytes: &zero}
	}
	out := &statsapi.MemoryStats{
		Time: at(m.Timestamp), WorkingSetBytes: number(m.WorkingSetBytes), UsageBytes: number(m.UsageBytes),
		RSSBytes: number(m.RssBytes), PageFaults: number(m.PageFaults), MajorPageFaults: number(m.MajorPageFaults), PSI: psi(m.Psi),
	}
	if v := number(m.AvailableBytes); v != nil && *v > 0 {
		out.AvailableBytes = v
	}
	return out
}

// swap is a container's; none used if the runtime says nothing.
func (p *Provider) swap(s *runtimeapi.ContainerStats) *statsapi.SwapStats {
	if s.Swap == nil {
		return &statsapi.SwapStats{Time: p.now(), SwapUsageBytes: new(uint64(0))}
	}
	return &statsapi.SwapStats{Time: at(s.Swap.Timestamp), SwapAvailableBytes: number(s.Swap.SwapAvailableBytes), SwapUsageBytes: number(s.Swap.SwapUsageBytes)}
}

// usage is what du(1) says of a path. Where that takes time, it waits.
func (p *Provider) usage(ctx context.Context, name string) (bytes, inodes int64) {
	return usageOf(ctx, p.o.FS, name)
}

// usageOf is what files below a directory use. Where counting takes time it
// waits; what can't be counted uses nothing.
func usageOf(ctx context.Context, files FS, name string) (bytes, inodes int64) {
	if name == "" || files == nil {
		return 0, 0
	}
	if u, ok := files.(filesystem.UsageWaiter); ok {
		bytes, inodes, err := u.UsageWait(ctx, name)
		if err != nil {
			return 0, 0
		}
		return bytes, inodes
	}
	return files.Usage(name)
}

// now is the time of what is computed here.
func (p *Provider) now() metav1.Time { return metav1.NewTime(p.o.Loop.Now()) }

// at is the runtime's time, in ns since the Unix epoch.
func at(ns int64) metav1.Time { return metav1.NewTime(time.Unix(0, ns)) }

// number is the runtime's number; nil: it reports none.
func number(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return new(v.Value)
}
