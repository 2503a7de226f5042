// Package emptydir is the volume that begins empty and lives as long as its
// pod: on the disk, or in memory. It mirrors upstream's pkg/volume/emptydir.
package emptydir

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/empty-dir"

const (
	dirMode   = fs.FileMode(0o777)
	readyFile = "ready"
	// wrappedPrefix is before the name of a volume that another plugin keeps in
	// an emptyDir.
	wrappedPrefix = "wrapped_"
)

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.EmptyDir != nil }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, PluginName, v.Name)
}

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return false }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return true }

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(_ context.Context, r *volume.Request) error {
	return setUp(p.host, r, r.Volume.EmptyDir, r.Volume.Name)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(_ context.Context, uid types.UID, name string) error {
	return tearDown(p.host, uid, p.host.VolumeDir(uid, PluginName, name), name)
}

// SetUpWrapped makes the emptyDir in which another plugin keeps a volume: on
// the disk, or in memory.
func SetUpWrapped(host *volume.Host, r *volume.Request, medium v1.StorageMedium) error {
	return setUp(host, r, &v1.EmptyDirVolumeSource{Medium: medium}, wrappedPrefix+r.Volume.Name)
}

// TearDownWrapped removes an emptyDir of SetUpWrapped.
func TearDownWrapped(host *volume.Host, uid types.UID, dir, name string) error {
	return tearDown(host, uid, dir, wrappedPrefix+name)
}

// metaDir is where a volume is marked as ready.
func metaDir(host *volume.Host, uid types.UID, name string) string {
	return path.Join(host.PluginDir(uid, PluginName), name)
}

// setUp makes the volume unless it is there already. The ready file outlives
// the kubelet, and says that what there is was made whole.
func setUp(host *volume.Host, r *volume.Request, source *v1.EmptyDirVolumeSource, name string) error {
	uid := r.Pod.UID
	ready := path.Join(metaDir(host, uid, name), readyFile)
	if _, err := host.FS.Stat(ready); err == nil {
		switch source.Medium {
		case v1.StorageMediumMemory:
			if host.Mounter.IsMountPoint(r.Dir) {
				return nil
			}
		case v1.StorageMediumDefault:
			if _, err := host.FS.Stat(r.Dir); err == nil {
				return nil
			}
		}
	}
	var err error
	switch {
	case source.Medium == v1.StorageMediumDefault:
		err = setUpDir(host, r.Dir)
	case source.Medium == v1.StorageMediumMemory:
		err = setUpTmpfs(host, r, memorySize(host.NodeAllocatable(), source, r.Pod))
	case source.Medium == v1.StorageMediumHugePages, strings.HasPrefix(string(source.Medium), string(v1.StorageMediumHugePagesPrefix)):
		if err = checkHugePages(r.Pod, source.Medium); err == nil {
			err = setUpTmpfs(host, r, 0)
		}
	default:
		err = fmt.Errorf("unknown storage medium %q", source.Medium)
	}
	if err != nil {
		return err
	}
	// The wrapping plugin gives the files to the group once they are there,
	// and so does this for the directory.
	if err := util.SetVolumeOwnership(host.FS, r.Dir, false, r.FSGroup); err != nil {
		host.Logf("Failed to set the ownership of %s: %v", r.Dir, err)
	}
	if err := host.FS.MkdirAll(path.Dir(ready), 0o750); err != nil {
		return err
	}
	return host.FS.WriteFile(ready, nil, 0o644)
}

// setUpDir makes the directory for everybody: which user a container runs as is
// not known here. The mode is set apart, as the umask would take from it.
func setUpDir(host *volume.Host, dir string) error {
	if info, err := host.FS.Lstat(dir); err == nil && info.IsDir() {
		if info.Mode().Perm() == dirMode {
			return nil
		}
		return host.FS.Chmod(dir, dirMode)
	}
	if err := host.FS.MkdirAll(path.Dir(dir), 0o755); err != nil {
		return err
	}
	return host.FS.MkdirAll(dir, dirMode)
}

// setUpTmpfs mounts a tmpfs of a size in bytes, 0 for the kernel's default.
func setUpTmpfs(host *volume.Host, r *volume.Request, size int64) error {
	if err := setUpDir(host, r.Dir); err != nil {
		return err
	}
	if host.Mounter.IsMountPoint(r.Dir) {
		return nil
	}
	return host.Mounter.MountTmpfs(r.Dir, size)
}

// memorySize is the limit of a volume in memory, in bytes: the least of what
// the node can give to pods, what the pod may use and what the volume says.
func memorySize(allocatable v1.ResourceList, source *v1.EmptyDirVolumeSource, pod *v1.Pod) int64 {
	q := allocatable[v1.ResourceMemory]
	size := q.Value()
	if limit, ok := podMemoryLimit(pod); ok && (size == 0 || limit < size) {
		size = limit
	}
	if q := source.SizeLimit; q != nil && q.Sign() > 0 && (size == 0 || q.Value() < size) {
		size = q.Value()
	}
	return size
}

// podMemoryLimit is a pod's memory limit, if each of its containers has one.
func podMemoryLimit(pod *v1.Pod) (int64, bool) {
	if pod.Spec.Resources == nil || pod.Spec.Resources.Limits.Memory().IsZero() {
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if list[i].Resources.Limits.Memory().IsZero() {
					return 0, false
				}
			}
		}
	}
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	return limits.Memory().Value(), true
}

// checkHugePages refuses a medium that the pod asks no pages for.
func checkHugePages(pod *v1.Pod, medium v1.StorageMedium) error {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for name := range requests { //drydock:unordered any that matches
		size, huge := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !huge {
			continue
		}
		if medium == v1.StorageMediumHugePages {
			return nil
		}
		want, err := resource.ParseQuantity(strings.TrimPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix)))
		have, err2 := resource.ParseQuantity(size)
		if err == nil && err2 == nil && want.Cmp(have) == 0 {
			return nil
		}
	}
	return fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium)
}

// tearDown removes the ready file first, so that a half removed volume counts
// as none.
func tearDown(host *volume.Host, uid types.UID, dir, name string) error {
	if err := host.FS.RemoveAll(metaDir(host, uid, name)); err != nil {
		return err
	}
	if host.Mounter.IsMountPoint(dir) {
		if err := host.Mounter.Unmount(dir); err != nil {
			return err
		}
	}
	return host.FS.RemoveAll(dir)
}
