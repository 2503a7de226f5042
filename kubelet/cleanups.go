package kubelet

import (
	"cmp"
	"context"
	"io/fs"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// handlePodCleanups is one housekeeping pass: records, statuses, directories
// and mirror pods of pods that are gone are removed, pods without a record are
// started or finished, what runs without a pod is killed
// (pkg/kubelet/kubelet_pods.go). It reports whether anything was done, or is yet
// to be done.
func (kl *Kubelet) handlePodCleanups(ctx context.Context) (acted bool, err error) {
	kl.housekeepings++
	pods, _, orphanedMirrors := kl.pods.GetPodsAndMirrorPods()
	wanted := func(uid types.UID) bool { _, ok := kl.pods.GetPodByUID(uid); return ok }
	orphans, acted := kl.workers.SyncKnownPods(wanted)
	acted = acted || orphans // which are on their way out
	running, err := kl.runtime.ListPods(ctx, false)
	if err != nil {
		return false, err
	}
	// A pod that terminates may still run, and keeps its probes until it has
	// stopped.
	kl.probes.CleanupPods(kl.workers.CouldHaveRunningContainers)
	// As in upstream's removeOrphanedPodStatuses, the UIDs of mirror pods count
	// as known, too.
	kl.statusManager.RemoveOrphanedStatuses(func(uid types.UID) bool {
		if _, ok := kl.pods.GetPodByUID(uid); ok {
			return true
		}
		_, ok := kl.pods.GetMirrorPodByUID(uid)
		return ok
	})
	kl.allocation.RemoveOrphanedPods(wanted)
	if kl.cleanUpPodDirs(running) {
		acted = true
	}
	kl.cleanUpCgroups(running)
	if kl.deleteOrphanedMirrors(ctx, orphanedMirrors) {
		acted = true
	}
	if kl.restartUnknown(pods) {
		acted = true
	}
	if kl.finishRejected(pods, running) {
		acted = true
	}
	if kl.killRuntimeOrphans(running) {
		acted = true
	}
	kl.backOff.GC(kl.l.Now())
	return acted, nil
}

// deleteOrphanedMirrors deletes the mirror pods whose static pod is gone and
// has stopped.
func (kl *Kubelet) deleteOrphanedMirrors(ctx context.Context, orphaned []*v1.Pod) bool {
	for _, m := range orphaned {
		if kl.workers.IsPodForMirrorPodTerminating(nameOf(m)) {
			continue
		}
		if _, err := kl.mirrors.DeleteMirrorPod(ctx, m.Namespace, m.Name, ""); err != nil {
			kl.logf("Encountered error when deleting mirror pod %s: %v", podName(m), err)
		}
	}
	return len(orphaned) > 0
}

// restartUnknown starts active pods that the workers have no record of: static
// pods that came again with the same UID.
func (kl *Kubelet) restartUnknown(pods []*v1.Pod) (acted bool) {
	for _, pod := range pods {
		if kl.workers.Known(pod.UID) || !kl.isActive(pod) {
			continue
		}
		acted = true
		kl.logf("Starting a wanted pod that no worker knows (its UID was used before) pod=%s", podName(pod))
		mirror, _ := kl.pods.GetMirrorPodByPod(pod)
		kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodCreate})
	}
	return acted
}

// finishRejected lets pods that ended without a worker (rejected ones) be
// deleted from the API.
func (kl *Kubelet) finishRejected(pods []*v1.Pod, running []*kubecontainer.Pod) (acted bool) {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil || !kubetypes.IsTerminalPhase(pod.Status.Phase) ||
			kl.workers.Known(pod.UID) || runs(running, pod.UID) {
			continue
		}
		acted = true
		kl.logf("Finishing a pod that was rejected or is terminal, and is deleted pod=%s", podName(pod))
		kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodKill})
	}
	return acted
}

// runs reports whether a pod of a listing, which is by UID, runs.
func runs(listed []*kubecontainer.Pod, uid types.UID) bool {
	i, ok := slices.BinarySearchFunc(listed, uid, func(p *kubecontainer.Pod, uid types.UID) int { return cmp.Compare(p.ID, uid) })
	return ok && listed[i].Runs()
}

// killRuntimeOrphans kills what runs without a worker.
func (kl *Kubelet) killRuntimeOrphans(running []*kubecontainer.Pod) (acted bool) {
	var orphans []*kubecontainer.Pod
	for _, r := range running {
		if !kl.workers.Known(r.ID) && r.Runs() {
			orphans = append(orphans, r.Running())
		}
	}
	slices.SortFunc(orphans, kubecontainer.NewerPod)
	for _, r := range orphans {
		acted = true
		kl.logf("Clean up containers for orphaned pod we had not seen before pod=%s_%s podUID=%s", r.Name, r.Namespace, r.ID)
		// Nothing is known of the pod's spec. Upstream's HandlePodCleanups gives
		// it 1 s, too.
		one := int64(1)
		kl.workers.UpdatePod(UpdatePodOptions{UpdateType: kubetypes.SyncPodKill, RunningPod: r,
			KillPodOptions: &KillPodOptions{GracePeriodSecondsOverride: &one}})
	}
	return acted
}

// makePodDirs makes a pod's directories, if they are not there.
// It mirrors upstream's makePodDataDirs, with its permissions.
func (kl *Kubelet) makePodDirs(uid types.UID) error {
	names := podDirNames[:]
	if files, ok := kl.fs.(dirMaker); ok {
		return files.MkdirAllIn(kl.podsDir, string(uid), 0o750, names)
	}
	dir := kl.podDir(uid)
	if err := kl.fs.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, name := range names {
		if err := kl.fs.MkdirAll(dir+"/"+name, 0o750); err != nil {
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

// podDir mirrors upstream's getPodDir (pkg/kubelet/kubelet_getters.go).
func (kl *Kubelet) podDir(uid types.UID) string { return kl.podsDir + "/" + string(uid) }

// cleanUpPodDirs removes the directories of pods that are neither wanted nor
// running. It reports whether one still holds volumes.
// It mirrors upstream's cleanupOrphanedPodDirs (pkg/kubelet/kubelet_volumes.go).
func (kl *Kubelet) cleanUpPodDirs(running []*kubecontainer.Pod) (again bool) {
	var orphaned []types.UID
	for name := range filesystem.Names(kl.fs, kl.podsDir) {
		uid := types.UID(name)
		if _, ok := kl.pods.GetPodByUID(uid); !ok && !runs(running, uid) {
			orphaned = append(orphaned, uid)
		}
	}
	for _, uid := range orphaned {
		if kl.removeOrphanedPodDir(uid) {
			again = true
		}
	}
	return again
}
