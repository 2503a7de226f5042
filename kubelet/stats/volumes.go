package stats

import (
	"context"
	"path"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// VolumesOptions are what Volumes are made of.
type VolumesOptions struct {
	Loop  *loop.Loop
	Group *loop.Group
	FS    FS
	// Period is volumeStatsAggPeriod; 0 or less: volumes are not looked at.
	Period time.Duration
	// PodDir is a pod's directory.
	PodDir func(uid types.UID) string
	// Driver asks a driver how much there is in a pod's volume, by its name in the pod; it
	// may wait. False: nobody can tell. Nil: there are no drivers.
	Driver func(ctx context.Context, uid types.UID, name string) (DriverStats, bool)
	// Abnormal is called each time that a driver says that a pod's volume is so.
	Abnormal func(pod *v1.ObjectReference, name, message string)
}

// DriverStats is what a driver says of a volume, in bytes and inodes.
type DriverStats struct {
	Capacity, Used, Available      int64
	Inodes, InodesUsed, InodesFree int64
	// Abnormal and Message are the volume's condition; nil: it is not known.
	Abnormal *bool
	Message  string
}

// Volumes look how much there is in pods' volumes, one pod at a time: when a
// pod is noticed, which happens each period, and then every one to two periods.
// So what they say of a volume is up to two periods old (upstream
// pkg/kubelet/server/stats: fsResourceAnalyzer, volumeStatCalculator).
//
// Only the pods are looked at of which somebody wants to know.
type Volumes struct {
	o    VolumesOptions
	born int64 // ns; refreshes begin with it
	pods map[types.UID]*podVolumes
}

// podVolumes is what is kept of a pod whose volumes are looked at.
type podVolumes struct {
	uid     types.UID
	volumes []v1.Volume
	ref     *v1.ObjectReference
	timer   *loop.Timer
	draws   uint64
	// found is what was found last; nil: nobody has looked yet.
	found []statsapi.VolumeStats
}

// NewVolumes returns Volumes that look at no pod.
func NewVolumes(o VolumesOptions) *Volumes {
	return &Volumes{o: o, born: o.Loop.UnixNano(), pods: map[types.UID]*podVolumes{}}
}

// Add has a pod's volumes looked at, from the next refresh on: or, if there was
// one since the pod came (in ns), as if it had been since then. It may be
// repeated.
func (v *Volumes) Add(pod *v1.Pod, came int64) {
	if v.o.Period <= 0 || v.pods[pod.UID] != nil || !measurable(pod) {
		return
	}
	p := &podVolumes{uid: pod.UID, volumes: pod.Spec.Volumes, ref: kubecontainer.PodRef(pod)}
	v.pods[pod.UID] = p
	p.timer = v.o.Group.NewTimer("volume-stats", func() { v.due(p) })
	now, period := v.o.Loop.UnixNano(), int64(v.o.Period)
	last := now - (now-v.born)%period
	if came >= last {
		p.timer.Reset(time.Duration(last + period - now))
		return
	}
	v.due(p)
}

// Remove forgets a pod.
func (v *Volumes) Remove(uid types.UID) {
	if p := v.pods[uid]; p != nil {
		p.timer.Stop()
		delete(v.pods, uid)
	}
}

// Watched reports whether a pod's volumes are looked at.
func (v *Volumes) Watched(uid types.UID) bool { return v.pods[uid] != nil }

// Get returns what was found in a pod's volumes, which is shared.
func (v *Volumes) Get(uid types.UID) []statsapi.VolumeStats {
	if p := v.pods[uid]; p != nil {
		return p.found
	}
	return nil
}

// ephemeral reports whether a volume counts as the pod's local storage.
func (v *Volumes) ephemeral(uid types.UID, name string) bool {
	p := v.pods[uid]
	if p == nil {
		return false
	}
	for i := range p.volumes {
		if s := &p.volumes[i]; s.Name == name {
			return s.EmptyDir != nil && s.EmptyDir.Medium == v1.StorageMediumDefault || s.ConfigMap != nil || s.GitRepo != nil
		}
	}
	return false
}

// due measures: by a task where that takes time.
func (v *Volumes) due(p *podVolumes) {
	if _, slow := v.o.FS.(filesystem.UsageWaiter); slow || slices.ContainsFunc(p.volumes, Driven) {
		v.o.Group.Go("volume-stats", func(ctx context.Context) { v.measure(ctx, p) })
		return
	}
	v.measure(v.o.Group.Background(), p)
}

// measure looks at a pod's volumes, and sets the next look.
func (v *Volumes) measure(ctx context.Context, p *podVolumes) {
	var found []statsapi.VolumeStats
	for i := range p.volumes {
		s := &p.volumes[i]
		if Driven(*s) {
			if of, ok := v.driverStats(ctx, p, s); ok {
				found = append(found, of)
			}
			continue
		}
		plugin := pluginOf(s)
		if plugin == "" {
			continue
		}
		b, n := usageOf(ctx, v.o.FS, path.Join(v.o.PodDir(p.uid), "volumes", plugin, s.Name))
		if b == 0 && n == 0 {
			continue // it is not there
		}
		bytes, inodes := uint64(b), uint64(n)
		found = append(found, statsapi.VolumeStats{Name: s.Name, FsStats: statsapi.FsStats{Time: at(v.o.Loop.UnixNano()), UsedBytes: &bytes, InodesUsed: &inodes}})
	}
	if v.pods[p.uid] != p {
		return // it has gone meanwhile
	}
	p.found = found
	p.draws++
	p.timer.Reset(v.o.Loop.Jitter(v.o.Period, 1, "volume-stats", string(p.uid), p.draws))
}

// Driven reports whether a volume is a driver's, as far as the pod tells.
func Driven(s v1.Volume) bool {
	return s.PersistentVolumeClaim != nil || s.Ephemeral != nil || s.CSI != nil
}

// driverStats is what a driver says of a volume, and which claim it is of.
func (v *Volumes) driverStats(ctx context.Context, p *podVolumes, s *v1.Volume) (statsapi.VolumeStats, bool) {
	out := statsapi.VolumeStats{Name: s.Name}
	if v.o.Driver == nil {
		return out, false
	}
	is, ok := v.o.Driver(ctx, p.uid, s.Name)
	if !ok {
		return out, false
	}
	number := func(n int64) *uint64 { u := uint64(max(n, 0)); return &u }
	out.FsStats = statsapi.FsStats{
		Time: at(v.o.Loop.UnixNano()), CapacityBytes: number(is.Capacity), UsedBytes: number(is.Used), AvailableBytes: number(is.Available),
		Inodes: number(is.Inodes), InodesUsed: number(is.InodesUsed), InodesFree: number(is.InodesFree),
	}
	if is.Abnormal != nil {
		out.VolumeHealthStats = &statsapi.VolumeHealthStats{Abnormal: *is.Abnormal}
		if *is.Abnormal {
			v.o.Abnormal(p.ref, s.Name, is.Message)
		}
	}
	switch {
	case s.PersistentVolumeClaim != nil:
		out.PVCRef = &statsapi.PVCReference{Name: s.PersistentVolumeClaim.ClaimName, Namespace: p.ref.Namespace}
	case s.Ephemeral != nil:
		out.PVCRef = &statsapi.PVCReference{Name: p.ref.Name + "-" + s.Name, Namespace: p.ref.Namespace}
	}
	return out, true
}

// measurable reports whether a pod has a volume that can hold more over time.
func measurable(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if s := &pod.Spec.Volumes[i]; s.EmptyDir != nil || s.ConfigMap != nil || s.GitRepo != nil || Driven(*s) {
			return true
		}
	}
	return false
}

// pluginOf is the directory of a volume's plugin in the pod's; "" if it has no
// statistics.
func pluginOf(s *v1.Volume) string {
	switch {
	case s.EmptyDir != nil:
		return "kubernetes.io~empty-dir"
	case s.ConfigMap != nil:
		return "kubernetes.io~configmap"
	case s.Secret != nil:
		return "kubernetes.io~secret"
	case s.DownwardAPI != nil:
		return "kubernetes.io~downward-api"
	case s.Projected != nil:
		return "kubernetes.io~projected"
	case s.GitRepo != nil:
		return "kubernetes.io~git-repo"
	}
	return ""
}
