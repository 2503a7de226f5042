package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/token"
	"github.com/drydock-sim/drydock/kubelet/internal/util/manager"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/downwardapi"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/emptydir"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/hostpath"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/image"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/keyed"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/projected"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/unavailable"
	"github.com/drydock-sim/drydock/kubelet/internal/volumemanager"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// noMounter is a node on which nothing can be mounted: what would be in memory
// is on the disk.
type noMounter struct{}

func (noMounter) MountTmpfs(string, int64) error { return nil }
func (noMounter) Unmount(string) error           { return nil }
func (noMounter) IsMountPoint(string) bool       { return false }

// buildVolumes makes what gives pods their volumes, and what keeps the
// configMaps and secrets that they refer to. Without an API there are neither.
func (kl *Kubelet) buildVolumes() {
	host := &volume.Host{
		FS: kl.fs, Mounter: kl.opts.Mounter, PodsDir: kl.podsDir,
		NodeAllocatable: func() v1.ResourceList { return kl.nodeResources().Allocatable },
		Annotated:       kl.annotated,
		Now:             kl.l.Now,
		Random: func(object string, n uint64) uint32 {
			return uint32(kl.l.Uint64("volume/timestamp-dir", object, n) >> 32)
		},
		Log: kl.log,
	}
	if host.Mounter == nil {
		host.Mounter = noMounter{}
	}
	if kl.client != nil {
		// With the strategy Cache, objects live as long as the node's annotation
		// says (upstream's GetObjectTTLFromNodeFunc), so the node is asked.
		o := manager.Options{Group: kl.g, Strategy: kl.cfg.ConfigMapAndSecretChangeDetectionStrategy, Resync: kl.cfg.SyncFrequency.Duration, Node: kl.node.get}
		kl.configMaps, kl.secrets = manager.NewConfigMaps(kl.client, o), manager.NewSecrets(kl.client, o)
		kl.tokens = token.New(token.Options{Loop: kl.l, Client: kl.client, NodeName: kl.nodeName, Log: kl.log})
		host.ConfigMaps, host.Secrets, host.Tokens = kl.configMaps, kl.secrets, kl.tokens
	}
	kl.volumes = volumemanager.New(volumemanager.Options{
		Group: kl.g, NodeName: kl.nodeName, Host: host, Plugins: volumePlugins(host),
		Pods: kl.pods, States: kl.workers, Recorder: kl.recorder,
		SourcesReady: kl.podConfig.AllReady, Log: kl.log,
	})
}

// volumePlugins are the node's plugins (cmd/kubelet/app/plugins.go).
func volumePlugins(host *volume.Host) []volume.Plugin {
	return []volume.Plugin{
		emptydir.New(host), unavailable.NewGitRepo(host), hostpath.New(host), keyed.NewSecret(host), downwardapi.New(host),
		keyed.NewConfigMap(host), projected.New(host), unavailable.NewCSI(host), image.New(),
	}
}

// registerReferences has the configMaps and secrets kept that a pod refers to,
// unless it is on its way out.
func (kl *Kubelet) registerReferences(pod *v1.Pod) {
	if kl.client == nil || kl.workers.IsPodTerminationRequested(pod.UID) {
		return
	}
	kl.secrets.RegisterPod(pod)
	kl.configMaps.RegisterPod(pod)
}

// unregisterReferences lets go of what registerReferences keeps.
func (kl *Kubelet) unregisterReferences(pod *v1.Pod) {
	if kl.client != nil {
		kl.secrets.UnregisterPod(pod)
		kl.configMaps.UnregisterPod(pod)
	}
}

// mountVolumes waits until a pod's volumes are mounted. Of all that a sync does
// this alone gives up when the pod is to terminate.
func (kl *Kubelet) mountVolumes(ctx context.Context, pod *v1.Pod) error {
	if len(pod.Spec.Volumes) == 0 {
		return nil
	}
	if kl.workers.IsPodTerminationRequested(pod.UID) {
		var cancel context.CancelFunc
		ctx, cancel = loop.WithCancel(ctx)
		cancel()
	}
	err := kl.volumes.WaitForAttachAndMount(ctx, pod)
	if err == nil {
		return nil
	}
	var w *volumemanager.WaitError
	if !errors.As(err, &w) || !w.Quiet() {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedMountVolume, fmt.Sprintf("Unable to attach or mount volumes: %v", err))
	}
	return err
}

// unmountVolumes waits until nothing of an ended pod is mounted any more.
// Upstream's SyncTerminatedPod waits for both, too: the directories must be gone
// before the pod is deleted from the API.
func (kl *Kubelet) unmountVolumes(ctx context.Context, pod *v1.Pod) error {
	if err := kl.volumes.WaitForUnmount(ctx, pod); err != nil {
		return err
	}
	return kl.volumes.WaitForVolumePaths(ctx, pod)
}

// podVolumesExist reports whether anything of a pod is mounted, or may be; onDisk
// are its volumePathsOnDisk.
func (kl *Kubelet) podVolumesExist(uid types.UID, onDisk []string) bool {
	if kl.volumes.HasPossiblyMountedVolumesForPod(uid) {
		return true
	}
	if kl.opts.Mounter == nil {
		return false
	}
	for _, dir := range onDisk {
		if kl.opts.Mounter.IsMountPoint(dir) {
			kl.logf("Orphaned pod found, but volumes are still mounted podUID=%s path=%s", uid, dir)
			return true
		}
	}
	return false
}

// volumePathsOnDisk lists the directories of a pod's volumes.
func (kl *Kubelet) volumePathsOnDisk(uid types.UID) []string {
	var out []string
	top := path.Join(kl.podDir(uid), "volumes")
	plugins, err := kl.fs.ReadDir(top)
	if err != nil {
		return nil
	}
	for _, p := range plugins {
		volumes, err := kl.fs.ReadDir(path.Join(top, p.Name()))
		if err != nil {
			continue
		}
		for _, v := range volumes {
			out = append(out, path.Join(top, p.Name(), v.Name()))
		}
	}
	return out
}

// removeOrphanedPodDir removes the directory of a pod that is gone
// (pkg/kubelet/kubelet_volumes.go). What is in a volume is never removed: that
// is the volume plugins' to do. It reports whether another pass has to come back
// to it.
func (kl *Kubelet) removeOrphanedPodDir(uid types.UID) (again bool) {
	dir, onDisk := kl.podDir(uid), kl.volumePathsOnDisk(uid)
	if kl.podVolumesExist(uid, onDisk) {
		return true
	}
	for _, v := range onDisk {
		if err := kl.fs.Remove(v); err != nil {
			kl.logf("orphaned pod %q found, but failed to rmdir() volume at path %v: %v", uid, v, err)
			return false // no pass will do better until somebody cleans up
		}
	}
	volumes := path.Join(dir, "volumes")
	if plugins, err := kl.fs.ReadDir(volumes); err == nil {
		for _, p := range plugins {
			if err := kl.fs.Remove(path.Join(volumes, p.Name())); err != nil {
				kl.logf("orphaned pod %q found, but failed to rmdir() subdir at path %v: %v", uid, path.Join(volumes, p.Name()), err)
				return false
			}
		}
	}
	if s, ok := kl.opts.Mounter.(filesystem.SubPather); ok {
		if err := s.CleanSubPaths(path.Join(dir, "volume-subpaths")); err != nil {
			kl.logf("orphaned pod %q found, but its subPaths can't be unmounted: %v", uid, err)
			return true
		}
	}
	if err := kl.fs.RemoveAll(dir); err != nil {
		kl.logf("Failed to remove orphaned pod directory podUID=%s: %v", uid, err)
	}
	return false
}
