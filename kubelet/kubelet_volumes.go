package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/clustertrustbundle"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/podcertificate"
	"github.com/drydock-sim/drydock/kubelet/internal/token"
	"github.com/drydock-sim/drydock/kubelet/internal/util/manager"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/csi"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/downwardapi"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/emptydir"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/hostpath"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/image"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/keyed"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/nfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/nodestorage"
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

// podVolumes gives pods their volumes, and keeps the configMaps and secrets that
// they refer to.
type podVolumes struct {
	*base
	*knownPods
	*volumemanager.Manager
	// configMaps, secrets and tokens are nil without an API.
	configMaps *manager.Store[*v1.ConfigMap]
	secrets    *manager.Store[*v1.Secret]
	tokens     *token.Manager
	csi        *csi.Handler
	// certificates are nil without an API, or the gate PodCertificateRequest.
	certificates *podcertificate.Manager
}

// newPodVolumes makes the volumes of a node. Without an API there are neither
// configMaps nor secrets.
func newPodVolumes(b *base, known *knownPods, node *nodeView, inUseChanged func()) *podVolumes {
	v := &podVolumes{base: b, knownPods: known}
	host := &volume.Host{
		FS: b.fs, Mounter: b.opts.Mounter, PodsDir: b.podsDir,
		NodeAllocatable: func() v1.ResourceList { return node.nodeResources().Allocatable },
		Annotated:       known.annotated,
		Now:             b.l.Now,
		Random: func(object string, n uint64) uint32 {
			return uint32(b.l.Uint64("volume/timestamp-dir", object, n) >> 32)
		},
		Log: b.log,
	}
	if host.Mounter == nil {
		host.Mounter = noMounter{}
	}
	var claims volumemanager.Claims
	drivers := csi.Options{Loop: b.l, NodeName: b.nodeName, Sockets: b.opts.PluginSockets, VolumeHealth: b.settings.gates.Enabled(features.CSIVolumeHealth), Log: b.logf}
	if b.client != nil {
		drivers.Client = b.client
		claims = b.client
		// With the strategy Cache, objects live as long as the node's annotation
		// says (upstream's GetObjectTTLFromNodeFunc), so the node is asked.
		o := manager.Options{Group: b.g, Strategy: b.cfg.ConfigMapAndSecretChangeDetectionStrategy, Resync: b.cfg.SyncFrequency.Duration, Node: node.get}
		v.configMaps, v.secrets = manager.NewConfigMaps(b.client, o), manager.NewSecrets(b.client, o)
		v.tokens = token.New(token.Options{Loop: b.l, Client: b.client, NodeName: b.nodeName, Log: b.log})
		host.ConfigMaps, host.Secrets, host.Tokens = v.configMaps, v.secrets, v.tokens
		v.useCertificates(host, node)
	}
	v.csi = csi.NewHandler(drivers)
	v.Manager = volumemanager.New(volumemanager.Options{
		Group: b.g, NodeName: b.nodeName, Host: host, Plugins: volumePlugins(host, v.csi), InUseChanged: inUseChanged,
		Pods: known.pods, States: known.workers, Recorder: b.recorder,
		SourcesReady: known.podConfig.AllReady, Claims: claims, AttachesItself: !ptr.Deref(b.cfg.EnableControllerAttachDetach, true), Log: b.log,
	})
	return v
}

// useCertificates has pods get certificates in files, whom to trust and their own, if there
// are gates for it.
func (v *podVolumes) useCertificates(host *volume.Host, node *nodeView) {
	if v.settings.gates.Enabled(features.ClusterTrustBundleProjection) {
		host.TrustBundles = clustertrustbundle.New(clustertrustbundle.Options{
			Group: v.g, Client: v.client, NodeName: v.nodeName, CacheSize: 2 * int(v.cfg.MaxPods), Log: v.log,
		})
	}
	if !v.settings.gates.Enabled(features.PodCertificateRequest) {
		return
	}
	v.certificates = podcertificate.New(podcertificate.Options{
		Group: v.g, Client: v.client, NodeName: v.nodeName, Pods: v.pods, Recorder: v.recorder,
		Node: node.get, NodeSynced: node.hasSynced, Keys: v.opts.PodKeys, Log: v.log,
	})
	host.PodCertificates = v.certificates
}

// Start starts the volume manager, and what asks for pods' certificates.
func (v *podVolumes) Start() {
	v.Manager.Start()
	if v.certificates != nil {
		v.certificates.Start()
	}
}

// trackCertificates has certificates asked for that a pod which is new to the node wants,
// forgetCertificates forgets them.
func (v *podVolumes) trackCertificates(pod *v1.Pod) {
	if v.certificates != nil {
		v.certificates.TrackPod(pod)
	}
}

func (v *podVolumes) forgetCertificates(pod *v1.Pod) {
	if v.certificates != nil {
		v.certificates.ForgetPod(pod)
	}
}

// volumePlugins are the node's plugins (cmd/kubelet/app/plugins.go).
func volumePlugins(host *volume.Host, drivers *csi.Handler) []volume.Plugin {
	return []volume.Plugin{
		emptydir.New(host), unavailable.NewGitRepo(host), hostpath.New(host), keyed.NewSecret(host), downwardapi.New(host),
		keyed.NewConfigMap(host), projected.New(host), nodestorage.New(host), csi.New(host, drivers), image.New(), nfs.New(host),
	}
}

// registerReferences has the configMaps and secrets kept that a pod refers to,
// unless it is on its way out.
func (v *podVolumes) registerReferences(pod *v1.Pod) {
	if v.client == nil || v.workers.IsPodTerminationRequested(pod.UID) {
		return
	}
	v.secrets.RegisterPod(pod)
	v.configMaps.RegisterPod(pod)
}

// unregisterReferences lets go of what registerReferences keeps.
func (v *podVolumes) unregisterReferences(pod *v1.Pod) {
	if v.client != nil {
		v.secrets.UnregisterPod(pod)
		v.configMaps.UnregisterPod(pod)
	}
}

// replacePod puts the next version of a pod's object in the place of the old one.
func (v *podVolumes) replacePod(old, pod *v1.Pod) {
	v.ReplacePod(old, pod)
	if v.client != nil {
		v.secrets.ReplacePod(old, pod)
		v.configMaps.ReplacePod(old, pod)
	}
}

// mountVolumes waits until a pod's volumes are mounted. Of all that a sync does
// this alone gives up when the pod is to terminate.
func (v *podVolumes) mountVolumes(ctx context.Context, pod *v1.Pod) error {
	if len(pod.Spec.Volumes) == 0 {
		return nil
	}
	if v.workers.IsPodTerminationRequested(pod.UID) {
		var cancel context.CancelFunc
		ctx, cancel = loop.WithCancel(ctx)
		cancel()
	}
	err := v.WaitForAttachAndMount(ctx, pod)
	if err == nil {
		return nil
	}
	var w *volumemanager.WaitError
	if !errors.As(err, &w) || !w.Quiet() {
		v.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedMountVolume, fmt.Sprintf("Unable to attach or mount volumes: %v", err))
	}
	return err
}

// unmountVolumes waits until nothing of an ended pod is mounted any more.
// Upstream's SyncTerminatedPod waits for both, too: the directories must be gone
// before the pod is deleted from the API.
func (v *podVolumes) unmountVolumes(ctx context.Context, pod *v1.Pod) error {
	if err := v.WaitForUnmount(ctx, pod); err != nil {
		return err
	}
	return v.WaitForVolumePaths(ctx, pod)
}

// podVolumesExist reports whether anything of a pod is mounted, or may be; onDisk
// are its volumePathsOnDisk.
func (v *podVolumes) podVolumesExist(uid types.UID, onDisk []string) bool {
	if v.HasPossiblyMountedVolumesForPod(uid) {
		return true
	}
	if v.opts.Mounter == nil {
		return false
	}
	for _, dir := range onDisk {
		if v.opts.Mounter.IsMountPoint(dir) {
			v.logf("Orphaned pod found, but volumes are still mounted podUID=%s path=%s", uid, dir)
			return true
		}
	}
	return false
}

// anyLeft reports whether anything of a pod that is gone is mounted, or may be.
func (v *podVolumes) anyLeft(uid types.UID) bool {
	return v.podVolumesExist(uid, v.volumePathsOnDisk(uid))
}

// volumePathsOnDisk lists the directories of a pod's volumes.
func (v *podVolumes) volumePathsOnDisk(uid types.UID) []string {
	var out []string
	top := path.Join(v.podDir(uid), "volumes")
	plugins, err := v.fs.ReadDir(top)
	if err != nil {
		return nil
	}
	for _, p := range plugins {
		volumes, err := v.fs.ReadDir(path.Join(top, p.Name()))
		if err != nil {
			continue
		}
		for _, dir := range volumes {
			out = append(out, path.Join(top, p.Name(), dir.Name()))
		}
	}
	return out
}

// removeOrphanedPodDir removes the directory of a pod that is gone
// (pkg/kubelet/kubelet_volumes.go). What is in a volume is never removed: that
// is the volume plugins' to do. It reports whether another pass has to come back
// to it.
func (v *podVolumes) removeOrphanedPodDir(uid types.UID) (again bool) {
	dir, onDisk := v.podDir(uid), v.volumePathsOnDisk(uid)
	if v.podVolumesExist(uid, onDisk) {
		return true
	}
	for _, dir := range onDisk {
		if err := v.fs.Remove(dir); err != nil {
			v.logf("orphaned pod %q found, but failed to rmdir() volume at path %v: %v", uid, dir, err)
			return false // no pass will do better until somebody cleans up
		}
	}
	volumes := path.Join(dir, "volumes")
	if plugins, err := v.fs.ReadDir(volumes); err == nil {
		for _, p := range plugins {
			if err := v.fs.Remove(path.Join(volumes, p.Name())); err != nil {
				v.logf("orphaned pod %q found, but failed to rmdir() subdir at path %v: %v", uid, path.Join(volumes, p.Name()), err)
				return false
			}
		}
	}
	if s, ok := v.opts.Mounter.(filesystem.SubPather); ok {
		if err := s.CleanSubPaths(path.Join(dir, "volume-subpaths")); err != nil {
			v.logf("orphaned pod %q found, but its subPaths can't be unmounted: %v", uid, err)
			return true
		}
	}
	if err := v.fs.RemoveAll(dir); err != nil {
		v.logf("Failed to remove orphaned pod directory podUID=%s: %v", uid, err)
	}
	return false
}

// makePodDirs makes a pod's directories, if they are not there.
// It mirrors upstream's makePodDataDirs, with its permissions.
func (v *podVolumes) makePodDirs(uid types.UID) error {
	names := podDirNames[:]
	if files, ok := v.fs.(dirMaker); ok {
		return files.MkdirAllIn(v.podsDir, string(uid), 0o750, names)
	}
	dir := v.podDir(uid)
	if err := v.fs.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, name := range names {
		if err := v.fs.MkdirAll(dir+"/"+name, 0o750); err != nil {
			return err
		}
	}
	return nil
}

var podDirNames = [...]string{"volumes", "plugins"}

// dirMaker is a file system that makes a directory with others in it at once,
// which is done at each sync and mostly finds them made.
type dirMaker interface {
	MkdirAllIn(parent, dir string, perm fs.FileMode, names []string) error
}

// cleanUpPodDirs removes the directories of pods that are neither wanted nor
// running. It reports whether one still holds volumes.
// It mirrors upstream's cleanupOrphanedPodDirs (pkg/kubelet/kubelet_volumes.go).
func (v *podVolumes) cleanUpPodDirs(running []*kubecontainer.Pod) (again bool) {
	var orphaned []types.UID
	for name := range filesystem.Names(v.fs, v.podsDir) {
		uid := types.UID(name)
		if _, ok := v.pods.GetPodByUID(uid); !ok && !runs(running, uid) {
			orphaned = append(orphaned, uid)
		}
	}
	for _, uid := range orphaned {
		if v.removeOrphanedPodDir(uid) {
			again = true
		}
	}
	return again
}
