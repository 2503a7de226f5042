package stats

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// node is a runtime and a machine that say what a test wants.
type node struct {
	l          *loop.Loop
	containers []*runtimeapi.Container
	stats      []*runtimeapi.ContainerStats
	sandboxes  []*runtimeapi.PodSandboxStats
	noPods     error // of ListPodSandboxStats
	cgroups    map[string]*Cgroup
	disks      map[string]string // device by path
	info       *runtimeapi.ImageFsInfoResponse
	usages     map[string]int64 // bytes by path
}

func (n *node) ListContainers(_ context.Context, f *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var out []*runtimeapi.Container
	for _, c := range n.containers {
		if f.GetState() == nil || f.State.State == c.State {
			out = append(out, c)
		}
	}
	return out, nil
}

func (n *node) ListContainerStats(_ context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	var out []*runtimeapi.ContainerStats
	for _, s := range n.stats {
		if uid := f.GetLabelSelector()[labelPodUID]; uid == "" || uid == s.Attributes.Labels[labelPodUID] {
			out = append(out, s)
		}
	}
	return out, nil
}

func (n *node) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return n.sandboxes, n.noPods
}

func (n *node) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return n.info, nil
}

func (n *node) Usage(name string) (bytes, inodes int64) {
	if b := n.usages[name]; b > 0 {
		return b, 2
	}
	return 0, 0
}

func (n *node) Memory(context.Context) (*statsapi.MemoryStats, error) {
	v := uint64(7)
	return &statsapi.MemoryStats{WorkingSetBytes: &v}, nil
}
func (n *node) CPU(context.Context) (*statsapi.CPUStats, error)         { return &statsapi.CPUStats{}, nil }
func (n *node) Created(context.Context, string) (metav1.Time, error)    { return metav1.Time{}, nil }
func (n *node) IO(context.Context) (*statsapi.IOStats, error)           { return nil, nil }
func (n *node) Network(context.Context) (*statsapi.NetworkStats, error) { return nil, nil }
func (n *node) Swap(context.Context) (*statsapi.SwapStats, error)       { return nil, nil }
func (n *node) PIDs(context.Context) (*statsapi.RlimitStats, error)     { return nil, nil }
func (n *node) Cgroup(_ context.Context, path string) (*Cgroup, error) {
	return n.cgroups[path], nil
}

func (n *node) Filesystem(_ context.Context, path string) (*Filesystem, error) {
	d, ok := n.disks[path]
	if !ok {
		return nil, errors.New("not there")
	}
	v := uint64(len(d))
	return &Filesystem{Device: d, FsStats: statsapi.FsStats{CapacityBytes: &v}}, nil
}

func wrap(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }

// add adds a running container with its statistics.
func (n *node) add(uid, name string, memory, layer uint64) *runtimeapi.ContainerStats {
	id := uid + "-" + name
	n.containers = append(n.containers, &runtimeapi.Container{Id: id, CreatedAt: int64(len(n.containers)+1) * int64(time.Second), State: runtimeapi.ContainerState_CONTAINER_RUNNING})
	s := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: id, Labels: map[string]string{
			labelPodUID: uid, labelPodName: "pod-" + uid, labelPodNamespace: "ns", labelContainerName: name}},
		Cpu:           &runtimeapi.CpuUsage{Timestamp: 5, UsageCoreNanoSeconds: wrap(1000)},
		Memory:        &runtimeapi.MemoryUsage{Timestamp: 5, WorkingSetBytes: wrap(memory), AvailableBytes: wrap(0)},
		WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: 5, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/images"}, UsedBytes: wrap(layer), InodesUsed: wrap(3)},
	}
	n.stats = append(n.stats, s)
	return s
}

func newNode(t *testing.T) (*node, *Provider) {
	n := &node{
		l: loop.New(loop.Options{}), cgroups: map[string]*Cgroup{}, usages: map[string]int64{},
		disks: map[string]string{"/root": "/dev/a", "/images": "/dev/a", "/other": "/dev/bb"},
		info: &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
			{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/images"}, UsedBytes: wrap(11)}}},
	}
	t.Cleanup(n.l.Close)
	volumes := NewVolumes(VolumesOptions{Loop: n.l, Group: n.l.Root(), FS: n, Period: time.Minute, PodDir: func(uid types.UID) string { return "/pods/" + string(uid) }})
	return n, NewProvider(Options{
		Loop: n.l, NodeName: "n", Runtime: n, Images: n, Machine: n, FS: n, Volumes: volumes, RootDir: "/root", PodsCgroup: "/kubepods",
		PodCgroup: func(uid types.UID) string { return "/kubepods/" + string(uid) },
		LogDir:    func(namespace, name string, uid types.UID) string { return "/logs/" + name },
		HostsFile: func(uid types.UID) string { return "/hosts/" + string(uid) },
	})
}

// TestSummary: a pod is the sum of its running containers, or what its cgroup
// says; its local storage is layers, logs, local volumes and the hosts file.
func TestSummary(t *testing.T) {
	n, p := newNode(t)
	n.add("a", "one", 100, 1000)
	n.add("a", "two", 50, 500)
	n.add("a", "ended", 9, 9)
	n.containers[2].State = runtimeapi.ContainerState_CONTAINER_EXITED
	n.add("b", "one", 10, 0).WritableLayer = nil
	n.sandboxes = []*runtimeapi.PodSandboxStats{{
		Attributes: &runtimeapi.PodSandboxAttributes{Labels: map[string]string{labelPodUID: "a"}},
		Linux:      &runtimeapi.LinuxPodSandboxStats{Process: &runtimeapi.ProcessUsage{ProcessCount: wrap(4)}},
	}}
	cgroup, processes := uint64(77), uint64(6)
	n.cgroups["/kubepods/b"] = &Cgroup{Memory: &statsapi.MemoryStats{WorkingSetBytes: &cgroup}, Processes: &processes}
	n.cgroups["/kubepods"] = &Cgroup{Memory: &statsapi.MemoryStats{WorkingSetBytes: &cgroup}}
	n.usages["/logs/pod-a/one"], n.usages["/logs/pod-a/two"], n.usages["/hosts/a"], n.usages["/logs/pod-b/one"] = 10, 20, 7, 99
	n.usages["/pods/a/volumes/kubernetes.io~empty-dir/d"], n.usages["/pods/a/volumes/kubernetes.io~empty-dir/m"], n.usages["/pods/a/volumes/kubernetes.io~secret/s"] = 300, 5000, 70000
	pod := &v1.Pod{}
	pod.UID = "a"
	pod.Spec.Volumes = []v1.Volume{
		{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "m", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
		{Name: "s", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}},
		{Name: "h", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}},
	}
	p.o.Volumes.Add(pod, -int64(time.Hour))
	s, err := p.Summary(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pods) != 2 || len(s.Pods[0].Containers) != 2 {
		t.Fatalf("got %+v", s.Pods)
	}
	a, b := &s.Pods[0], &s.Pods[1]
	if a.PodRef != (statsapi.PodReference{Name: "pod-a", Namespace: "ns", UID: "a"}) || a.StartTime.Unix() != 1 {
		t.Errorf("%+v since %v", a.PodRef, a.StartTime)
	}
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"memory", *a.Memory.WorkingSetBytes, 150}, {"CPU", *a.CPU.UsageCoreNanoSeconds, 2000}, {"processes", *a.ProcessStats.ProcessCount, 4},
		{"local storage", *a.EphemeralStorage.UsedBytes, 1000 + 500 + 10 + 20 + 300 + 7}, {"inodes", *a.EphemeralStorage.InodesUsed, 3 + 3 + 2 + 2 + 2 + 2},
		{"volumes", uint64(len(a.VolumeStats)), 3}, {"logs", *a.Containers[1].Logs.UsedBytes, 20}, {"layer", *a.Containers[0].Rootfs.UsedBytes, 1000},
		{"a cgroup's memory", *b.Memory.WorkingSetBytes, 77}, {"its processes", *b.ProcessStats.ProcessCount, 6},
		{"storage without a layer", *b.EphemeralStorage.UsedBytes, 0},
		{"the machine's memory", *s.Node.Memory.WorkingSetBytes, 7}, {"all pods'", *s.Node.SystemContainers[0].Memory.WorkingSetBytes, 77},
		{"images", *s.Node.Runtime.ImageFs.UsedBytes, 11},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	if a.Containers[0].Memory.AvailableBytes != nil {
		t.Error("memory without a limit has something available")
	}
}

// TestSandboxStatsFail: containerd 1.6 tells of no pod while one has ended and
// lost its cgroup; the rest is known all the same.
func TestSandboxStatsFail(t *testing.T) {
	n, p := newNode(t)
	n.add("a", "one", 100, 1000)
	n.noPods = errors.New("failed to load sandbox cgroup: cgroups: cgroup deleted")
	s, err := p.Summary(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pods) != 1 || *s.Pods[0].Memory.WorkingSetBytes != 100 || s.Pods[0].ProcessStats != nil {
		t.Errorf("got %+v", s.Pods)
	}
}

// TestFilesystems: what is told apart by device, and by which runtime.
func TestFilesystems(t *testing.T) {
	fs := func(path string) []*runtimeapi.FilesystemUsage {
		return []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: path}}}
	}
	for _, tc := range []struct {
		image, container string
		labelled         bool
		dedicated, split bool
		err              bool
	}{
		{image: "/images"},
		{image: "/other", dedicated: true},
		{image: "/other", container: "/images", dedicated: true},
		{image: "/other", container: "/images", labelled: true, dedicated: true, split: true},
		{image: "/other", container: "/other", labelled: true, dedicated: true},
		{image: "/nowhere", err: true},
	} {
		n, p := newNode(t)
		p.o.Labelled = tc.labelled
		n.info.ImageFilesystems = fs(tc.image)
		if tc.container != "" {
			n.info.ContainerFilesystems = fs(tc.container)
		}
		got, err := p.Filesystems(t.Context())
		if got.Dedicated != tc.dedicated || got.Split != tc.split || (err != nil) != tc.err {
			t.Errorf("%+v: dedicated %v, split %v, %v", tc, got.Dedicated, got.Split, err)
		}
	}
}

// TestRates: a rate of CPU use that the runtime does not tell is that between
// forced looks, and stays in between.
func TestRates(t *testing.T) {
	n, p := newNode(t)
	c := n.add("a", "one", 1, 1).Cpu
	rate := func(force bool) *uint64 {
		s, err := p.Summary(t.Context(), force)
		if err != nil {
			t.Fatal(err)
		}
		return s.Pods[0].Containers[0].CPU.UsageNanoCores
	}
	if r := rate(true); r != nil {
		t.Errorf("a rate of one sample: %d", *r)
	}
	c.Timestamp += int64(2 * time.Second)
	c.UsageCoreNanoSeconds = wrap(1000 + uint64(time.Second))
	if r := rate(false); r != nil {
		t.Errorf("a rate without force: %d", *r)
	}
	if r := rate(true); r == nil || *r != 500_000_000 {
		t.Errorf("got %v", r)
	}
	c.Timestamp += int64(time.Second)
	if r := rate(false); r == nil || *r != 500_000_000 {
		t.Errorf("not kept: %v", r)
	}
	n.stats = nil
	n.l.RunUntil(n.l.Now().Add(11 * time.Minute))
	if _, err := p.Summary(t.Context(), true); err != nil || len(p.cores.last) > 0 {
		t.Errorf("still kept: %v, %v", p.cores.last, err)
	}
}

// TestVolumesLate: a pod that came before the last refresh has been looked at by
// now, one that came after it not yet.
func TestVolumesLate(t *testing.T) {
	n, p := newNode(t)
	v := p.o.Volumes
	n.usages["/pods/a/volumes/kubernetes.io~empty-dir/d"], n.usages["/pods/b/volumes/kubernetes.io~empty-dir/d"] = 1, 1
	n.l.RunUntil(n.l.Now().Add(130 * time.Second))
	pod := func(uid types.UID) *v1.Pod {
		pod := &v1.Pod{}
		pod.UID = uid
		pod.Spec.Volumes = []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		return pod
	}
	v.Add(pod("a"), n.l.UnixNano()-int64(20*time.Second))
	v.Add(pod("b"), n.l.UnixNano()-int64(5*time.Second))
	if len(v.Get("a")) != 1 || v.Get("b") != nil {
		t.Errorf("a %v, b %v", v.Get("a"), v.Get("b"))
	}
	n.l.RunUntil(n.l.Now().Add(51 * time.Second))
	if len(v.Get("b")) != 1 {
		t.Error("b was not looked at")
	}
	v.Remove("a")
	v.Remove("b")
	steps := n.l.Steps()
	n.l.RunUntil(n.l.Now().Add(time.Hour))
	if n.l.Steps() != steps || v.Get("a") != nil {
		t.Error("pods that are gone are looked at")
	}
}
