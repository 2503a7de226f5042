package kubelet

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/prober"
)

// housekeeping cleans up behind pods that are gone.
type housekeeping struct {
	*base
	*knownPods
	containers *containerManager
	volumes    *podVolumes
	runtime    *kuberuntime.Manager
	probes     *prober.Manager
	mirrors    *kubepod.MirrorClient
	backOff    *kubecontainer.Backoff
	passes     uint64 // counts the passes
}

// handlePodCleanups is one housekeeping pass: records, statuses, directories
// and mirror pods of pods that are gone are removed, pods without a record are
// started or finished, what runs without a pod is killed
// (pkg/kubelet/kubelet_pods.go). It reports whether anything was done, or is yet
// to be done.
func (h *housekeeping) handlePodCleanups(ctx context.Context) (acted bool, err error) {
	h.passes++
	pods, _, orphanedMirrors := h.pods.GetPodsAndMirrorPods()
	wanted := func(uid types.UID) bool { _, ok := h.pods.GetPodByUID(uid); return ok }
	orphans, acted := h.workers.SyncKnownPods(wanted)
	acted = acted || orphans // which are on their way out
	running, err := h.runtime.ListPods(ctx, false)
	if err != nil {
		return false, err
	}
	// A pod that terminates may still run, and keeps its probes until it has
	// stopped.
	h.probes.CleanupPods(h.workers.CouldHaveRunningContainers)
	// As in upstream's removeOrphanedPodStatuses, the UIDs of mirror pods count
	// as known, too.
	h.statusManager.RemoveOrphanedStatuses(func(uid types.UID) bool {
		if _, ok := h.pods.GetPodByUID(uid); ok {
			return true
		}
		_, ok := h.pods.GetMirrorPodByUID(uid)
		return ok
	})
	h.allocation.RemoveOrphanedPods(wanted)
	if h.volumes.cleanUpPodDirs(running) {
		acted = true
	}
	h.containers.cleanUpCgroups(running, h.volumes.anyLeft)
	if h.deleteOrphanedMirrors(ctx, orphanedMirrors) {
		acted = true
	}
	if h.restartUnknown(pods) {
		acted = true
	}
	if h.finishRejected(pods, running) {
		acted = true
	}
	if h.killRuntimeOrphans(running) {
		acted = true
	}
	h.backOff.GC(h.l.Now())
	return acted, nil
}

// deleteOrphanedMirrors deletes the mirror pods whose static pod is gone and
// has stopped.
func (h *housekeeping) deleteOrphanedMirrors(ctx context.Context, orphaned []*v1.Pod) bool {
	for _, m := range orphaned {
		if h.workers.IsPodForMirrorPodTerminating(nameOf(m)) {
			continue
		}
		if _, err := h.mirrors.DeleteMirrorPod(ctx, m.Namespace, m.Name, ""); err != nil {
			h.logf("Encountered error when deleting mirror pod %s: %v", podName(m), err)
		}
	}
	return len(orphaned) > 0
}

// restartUnknown starts active pods that the workers have no record of: static
// pods that came again with the same UID.
func (h *housekeeping) restartUnknown(pods []*v1.Pod) (acted bool) {
	for _, pod := range pods {
		if h.workers.Known(pod.UID) || !h.isActive(pod) {
			continue
		}
		acted = true
		h.logf("Starting a wanted pod that no worker knows (its UID was used before) pod=%s", podName(pod))
		mirror, _ := h.pods.GetMirrorPodByPod(pod)
		h.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodCreate})
	}
	return acted
}

// finishRejected lets pods that ended without a worker (rejected ones) be
// deleted from the API.
func (h *housekeeping) finishRejected(pods []*v1.Pod, running []*kubecontainer.Pod) (acted bool) {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil || !kubetypes.IsTerminalPhase(pod.Status.Phase) ||
			h.workers.Known(pod.UID) || runs(running, pod.UID) {
			continue
		}
		acted = true
		h.logf("Finishing a pod that was rejected or is terminal, and is deleted pod=%s", podName(pod))
		h.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodKill})
	}
	return acted
}

// runs reports whether a pod of a listing, which is by UID, runs.
func runs(listed []*kubecontainer.Pod, uid types.UID) bool {
	i, ok := slices.BinarySearchFunc(listed, uid, func(p *kubecontainer.Pod, uid types.UID) int { return cmp.Compare(p.ID, uid) })
	return ok && listed[i].Runs()
}

// killRuntimeOrphans kills what runs without a worker.
func (h *housekeeping) killRuntimeOrphans(running []*kubecontainer.Pod) (acted bool) {
	var orphans []*kubecontainer.Pod
	for _, r := range running {
		if !h.workers.Known(r.ID) && r.Runs() {
			orphans = append(orphans, r.Running())
		}
	}
	slices.SortFunc(orphans, kubecontainer.NewerPod)
	for _, r := range orphans {
		acted = true
		h.logf("Clean up containers for orphaned pod we had not seen before pod=%s_%s podUID=%s", r.Name, r.Namespace, r.ID)
		// Nothing is known of the pod's spec. Upstream's HandlePodCleanups gives
		// it 1 s, too.
		one := int64(1)
		h.metrics.OrphanFound()
		h.workers.UpdatePod(podworkers.UpdatePodOptions{UpdateType: kubetypes.SyncPodKill, RunningPod: r,
			KillPodOptions: &podworkers.KillPodOptions{GracePeriodSecondsOverride: &one}})
	}
	return acted
}
