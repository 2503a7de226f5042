package eviction

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

const (
	ki = int64(1) << 10
	mi = int64(1) << 20
	gi = int64(1) << 30
)

// use is what a pod uses on the machine of a test.
type use struct {
	memory, processes      int64
	layer, logs, dir       int64 // bytes
	layerInodes, dirInodes int64
	unknown                bool // there are no statistics
}

// machine is a node on which a test says how much is used.
type machine struct {
	t     *testing.T
	l     *loop.Loop
	m     *Manager
	pods  []*v1.Pod
	uses  map[string]*use // by pod
	log   []string
	took  time.Duration // to kill a pod
	fails error         // of a kill
	// Capacities and what is used outside pods.
	memory, disk, inodes, pids             int64
	otherMemory, otherDisk                 int64
	otherInodes, otherPids                 int64
	imageDisk                              int64 // of a disk for images; 0: there is none
	otherImages                            int64
	split                                  bool
	frozen                                 time.Time // of statistics; zero: now
	statsError                             error
	summaries                              int
	cleanup                                time.Duration // after a kill until it is finished
	ended                                  map[types.UID]time.Time
	watching                               func()
	floor                                  stats.Floor
	freeContainers, freeImages             func()
	containersError, imagesError, fsErrors error
}

func newMachine(t *testing.T, c Config, change ...func(*machine, *Options)) *machine {
	t.Helper()
	n := &machine{
		t: t, l: loop.New(loop.Options{}), uses: map[string]*use{}, ended: map[types.UID]time.Time{},
		memory: 8 * gi, disk: 100 * gi, inodes: 1_000_000, pids: 32768,
	}
	t.Cleanup(n.l.Close)
	if c.PressureTransition == 0 {
		c.PressureTransition = 5 * time.Minute
	}
	c.LocalStorage = true
	o := Options{
		Loop: n.l, Group: n.l.Root(), Config: c, Stats: n, Node: true, PodsCgroup: "/kubepods",
		Volumes:                stats.NewVolumes(stats.VolumesOptions{Loop: n.l, Group: n.l.Root(), FS: n, Period: time.Minute, PodDir: func(uid types.UID) string { return "/pods/" + string(uid) }}),
		Came:                   func(types.UID) int64 { return n.l.UnixNano() },
		ActivePods:             func() []*v1.Pod { return slices.Clone(n.pods) },
		Kill:                   n.kill,
		Finished:               func(uid types.UID) bool { return n.l.Since(n.ended[uid]) >= n.cleanup },
		DeleteUnusedContainers: func(context.Context) error { return n.free("containers", n.freeContainers, n.containersError) },
		DeleteUnusedImages:     func(context.Context) error { return n.free("images", n.freeImages, n.imagesError) },
		Event: func(p *v1.Pod, annotations map[string]string, eventtype, reason, message string) {
			n.say("%s %s %s: %s%v", eventtype, reason, p.Name, message, annotations)
		},
		NodeEvent: func(eventtype, reason, message string) { n.say("%s %s: %s", eventtype, reason, message) },
	}
	for _, f := range change {
		f(n, &o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	n.m = m
	m.Start()
	return n
}

// watched has the machine tell when it may be low.
func watched(n *machine, o *Options) { o.Watcher = n }

func (n *machine) Watch(f stats.Floor, changed func()) bool {
	n.floor, n.watching = f, nil
	s, _ := n.Summary(context.Background(), false)
	seen := observe(s)
	memory, _ := seen.of(MemoryAvailable)
	disk, _ := seen.of(NodeFsAvailable)
	if memory.available < f.Memory || disk.available < f.RootBytes {
		return false
	}
	n.watching = changed
	return true
}

// low tells who watches.
func (n *machine) low() {
	if w := n.watching; w != nil {
		n.watching = nil
		w()
	}
}

func (n *machine) say(format string, args ...any) {
	n.log = append(n.log, fmt.Sprintf("%.0fs ", n.l.Since(start).Seconds())+fmt.Sprintf(format, args...))
}

func (n *machine) free(what string, fn func(), err error) error {
	n.say("delete unused %s", what)
	if fn != nil {
		fn()
	}
	return err
}

func (n *machine) kill(ctx context.Context, p *v1.Pod, grace int64, fn func(*v1.PodStatus)) error {
	var s v1.PodStatus
	fn(&s)
	text := ""
	for _, c := range s.Conditions {
		text += fmt.Sprintf(" %s=%s/%s", c.Type, c.Status, c.Reason)
		if c.Message != s.Message || c.ObservedGeneration != p.Generation {
			n.t.Errorf("condition %+v of status %+v", c, s)
		}
	}
	n.say("kill %s grace=%d %s %s%s", p.Name, grace, s.Phase, s.Reason, text)
	err := n.l.Sleep(ctx, n.took)
	n.pods = slices.DeleteFunc(n.pods, func(o *v1.Pod) bool { return o == p })
	n.ended[p.UID] = n.l.Now()
	if err == nil {
		err = n.fails
	}
	return err
}

func (n *machine) now() metav1.Time {
	if !n.frozen.IsZero() {
		return metav1.NewTime(n.frozen)
	}
	return metav1.NewTime(n.l.Now())
}

func amount(v int64) *uint64 {
	u := uint64(max(v, 0))
	return &u
}

func (n *machine) fsStats(capacity, used, inodes, inodesUsed int64) *statsapi.FsStats {
	return &statsapi.FsStats{
		Time: n.now(), AvailableBytes: amount(capacity - used), CapacityBytes: amount(capacity), UsedBytes: amount(used),
		InodesFree: amount(inodes - inodesUsed), Inodes: amount(inodes), InodesUsed: amount(inodesUsed),
	}
}

func (n *machine) Summary(context.Context, bool) (*statsapi.Summary, error) {
	n.summaries++
	if n.statsError != nil {
		return nil, n.statsError
	}
	s := &statsapi.Summary{}
	var pods, layers, disk, inodes, pids int64
	for _, p := range n.pods {
		u := n.uses[p.Name]
		pods, layers, disk, pids = pods+u.memory, layers+u.layer, disk+u.logs+u.dir, pids+u.processes
		inodes += u.layerInodes + u.dirInodes
	}
	s.Pods, _ = n.Pods(context.Background(), n.pods)
	memory := func(limit, used int64) *statsapi.MemoryStats {
		return &statsapi.MemoryStats{Time: n.now(), AvailableBytes: amount(limit - used), WorkingSetBytes: amount(used), UsageBytes: amount(used + 5*mi)}
	}
	s.Node.Memory = memory(n.memory, n.otherMemory+pods)
	s.Node.SystemContainers = []statsapi.ContainerStats{{Name: "pods", Memory: memory(n.memory-gi, pods)}}
	if n.imageDisk == 0 {
		s.Node.Fs = n.fsStats(n.disk, n.otherDisk+disk+layers, n.inodes, n.otherInodes+inodes)
		s.Node.Runtime = &statsapi.RuntimeStats{ImageFs: s.Node.Fs, ContainerFs: s.Node.Fs}
	} else {
		image := n.fsStats(n.imageDisk, n.otherImages+layers, n.inodes, 0)
		s.Node.Fs = n.fsStats(n.disk, n.otherDisk+disk, n.inodes, n.otherInodes+inodes)
		s.Node.Runtime = &statsapi.RuntimeStats{ImageFs: image, ContainerFs: image}
	}
	maximum, running := n.pids, n.otherPids+pids
	s.Node.Rlimit = &statsapi.RlimitStats{Time: n.now(), MaxPID: &maximum, NumOfRunningProcesses: &running}
	return s, nil
}

func (n *machine) Pods(_ context.Context, pods []*v1.Pod) ([]statsapi.PodStats, error) {
	var out []statsapi.PodStats
	for _, p := range pods {
		u := n.uses[p.Name]
		if u.unknown {
			continue
		}
		s := statsapi.PodStats{
			PodRef: statsapi.PodReference{Name: p.Name, UID: string(p.UID)},
			Memory: &statsapi.MemoryStats{WorkingSetBytes: amount(u.memory)}, ProcessStats: &statsapi.ProcessStats{ProcessCount: amount(u.processes)},
		}
		for i, c := range p.Spec.Containers {
			cs := statsapi.ContainerStats{Name: c.Name, Memory: &statsapi.MemoryStats{WorkingSetBytes: amount(0)}, Rootfs: &statsapi.FsStats{UsedBytes: amount(0)}, Logs: &statsapi.FsStats{UsedBytes: amount(0)}}
			if i == 0 {
				cs.Memory.WorkingSetBytes = amount(u.memory)
				cs.Rootfs = &statsapi.FsStats{UsedBytes: amount(u.layer), InodesUsed: amount(u.layerInodes)}
				cs.Logs = &statsapi.FsStats{UsedBytes: amount(u.logs)}
			}
			s.Containers = append(s.Containers, cs)
		}
		s.VolumeStats = n.m.o.Volumes.Get(p.UID)
		volumes := int64(0)
		for _, v := range s.VolumeStats {
			volumes += int64(*v.UsedBytes)
		}
		s.EphemeralStorage = &statsapi.FsStats{UsedBytes: amount(u.layer + u.logs + volumes)}
		out = append(out, s)
	}
	return out, nil
}

func (n *machine) Filesystems(context.Context) (stats.Filesystems, error) {
	return stats.Filesystems{Dedicated: n.imageDisk > 0, Split: n.split}, n.fsErrors
}

// Usage is of the volume directories.
func (n *machine) Usage(name string) (bytes, inodes int64) {
	parts := strings.Split(name, "/")
	if u := n.uses[parts[2]]; u != nil {
		return u.dir, u.dirInodes + 1
	}
	return 0, 0
}

// start is when loops begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (n *machine) add(p *v1.Pod, u use) *use {
	n.pods = append(n.pods, p)
	n.uses[p.Name] = &u
	n.m.AddPod(p)
	return &u
}

func (n *machine) run(d time.Duration) { n.l.RunUntil(n.l.Now().Add(d)) }

// kills are the pods that were killed, in order, and when.
func (n *machine) kills() []string {
	var out []string
	for _, line := range n.log {
		if f := strings.Fields(line); f[1] == "kill" {
			out = append(out, f[0]+" "+f[2])
		}
	}
	return out
}

func pod(name string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 3}}
	p.Spec.Containers = []v1.Container{{Name: "main"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func priority(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }

func requests(name v1.ResourceName, q string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse(q)}
	}
}

func created(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) { p.CreationTimestamp = metav1.Unix(seconds, 0) }
}

func emptyDir(limit string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		e := &v1.EmptyDirVolumeSource{}
		if limit != "" {
			q := resource.MustParse(limit)
			e.SizeLimit = &q
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: e}})
	}
}

func storage(limit string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
	}
}
