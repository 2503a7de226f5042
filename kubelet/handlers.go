package kubelet

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// handlePodAdditions takes in pods that are new, oldest first.
// It mirrors upstream's HandlePodAdditions (pkg/kubelet/kubelet.go), as those
// below mirror the handlers of their names.
func (kl *Kubelet) handlePodAdditions(ctx context.Context, pods []*v1.Pod) {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		if c := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		// Upstream leaves the order of pods of one time open; here it must
		// repeat.
		return config.ComparePods(a, b)
	})
	from := 0 // pods from here on come last among those that the next is beside
	for i, pod := range pods {
		usage := kl.usage()
		kl.setPod(pod)
		if kubetypes.IsMirrorPod(pod) {
			kl.updateStaticOf(pod)
			continue
		}
		if !kl.workers.IsPodTerminationRequested(pod.UID) && !kubetypes.IsTerminalPhase(pod.Status.Phase) {
			before := kl.l.Steps()
			others := func() []*v1.Pod { return kl.podsBeside(pod, pods[from:i]) }
			if r := kl.allocation.AddPod(ctx, others, usage, pod); !r.Admit {
				kl.rejectPod(pod, r.Reason, r.Message)
				continue
			}
			if kl.l.Steps() != before { // somebody waited
				from = i + 1
			}
		}
		kl.committed.Add(pod)
		mirror, _ := kl.pods.GetMirrorPodByPod(pod)
		kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodCreate})
	}
	kl.watchLocalStorage(pods)
	kl.restoreResizes(ctx, pods)
}

// setPod stores a pod, or mirror pod, and tells who keeps something about it.
func (kl *Kubelet) setPod(pod *v1.Pod) {
	kl.pods.UpdatePod(pod)
	kl.statusManager.PodChanged(pod.UID)
	kl.volumes.PodAdded(pod)
}

func (kl *Kubelet) removePod(pod *v1.Pod) {
	kl.counted = false
	// The status manager finds a mirror's static pod by the translation that
	// ends with the removal.
	uid := kl.pods.TranslatePodUID(pod.UID)
	kl.pods.RemovePod(pod)
	kl.statusManager.PodChanged(uid)
	kl.volumes.PodsChanged()
}

// updateStaticOf has the static pod of a mirror pod synced.
func (kl *Kubelet) updateStaticOf(mirror *v1.Pod) {
	if pod, ok := kl.pods.GetPodByMirrorPod(mirror); ok {
		kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
	}
}

// rejectPod refuses a pod for good.
// The pod fails without a worker: nothing of it was started, so nothing is to be
// stopped.
func (kl *Kubelet) rejectPod(pod *v1.Pod, reason, message string) {
	kl.logf("Pod admission denied pod=%s reason=%s message=%q", podName(pod), reason, message)
	kl.noteRejected(pod.UID)
	kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, reason, message)
	kl.statusManager.SetPodStatus(pod, v1.PodStatus{
		QOSClass: qos.Class(pod),
		Phase:    v1.PodFailed,
		Reason:   reason,
		Message:  "Pod was rejected: " + message,
	})
}

// handlePodUpdates takes in pods that changed, or are to be deleted.
func (kl *Kubelet) handlePodUpdates(ctx context.Context, pods []*v1.Pod) {
	for _, pod := range pods {
		old, _ := kl.pods.GetPodByUID(pod.UID)
		kl.counted = false
		kl.setPod(pod)
		if kubetypes.IsMirrorPod(pod) {
			kl.updateStaticOf(pod)
			continue
		}
		kl.resizeUpdated(ctx, old, pod)
		mirror, _ := kl.pods.GetMirrorPodByPod(pod)
		kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
	}
}

// handlePodRemoves takes in pods that are gone from their source.
func (kl *Kubelet) handlePodRemoves(ctx context.Context, pods []*v1.Pod) {
	for _, pod := range pods {
		kl.removePod(pod)
		kl.allocation.RemovePod(pod.UID)
		kl.cgroups.Forget(pod.UID)
		delete(kl.rejected, pod.UID)
		kl.eviction.RemovePod(pod.UID)
		if kubetypes.IsMirrorPod(pod) {
			kl.updateStaticOf(pod)
			continue
		}
		// Before all sources are known it may belong to one of the others;
		// housekeeping finds it if not.
		if kl.podConfig.AllReady() {
			kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodKill})
		}
	}
	kl.allocation.RetryPendingResizes(ctx, "pods_removed")
}

// handlePodReconcile takes in pods of which only the status changed.
func (kl *Kubelet) handlePodReconcile(ctx context.Context, pods []*v1.Pod) {
	retry := "" // why
	for _, pod := range pods {
		stored := kl.storedPod(pod.UID)
		if retry == "" && kl.allocation.HasPendingResizes() {
			old, _ := kl.pods.GetPodByUID(pod.UID)
			retry = freesResources(old, pod)
		}
		if stored == nil || lifecycle.Resizes(stored) || lifecycle.Resizes(pod) {
			kl.counted = false
		}
		kl.setPod(pod)
		kl.replacePod(stored, pod)
		own, mirror, wasMirror := kl.pods.GetPodAndMirrorPod(pod)
		// The static pod of this mirror is gone; housekeeping deletes the mirror.
		if wasMirror && own == nil {
			continue
		}
		if needsReadinessReconcile(own) {
			kl.workers.UpdatePod(UpdatePodOptions{Pod: own, MirrorPod: mirror, UpdateType: kubetypes.SyncPodSync})
		}
		// An evicted pod is not restarted, so that none of its dead containers
		// are of use.
		if own.Status.Phase == v1.PodFailed && own.Status.Reason == reasonEvicted {
			if status, err := kl.podCache.Get(own.UID); err == nil {
				kl.deletor.deleteContainersInPod("", status, true)
			}
		}
	}
	if retry != "" {
		kl.allocation.RetryPendingResizes(ctx, retry)
	}
}

// handlePodSyncs has pods synced.
func (kl *Kubelet) handlePodSyncs(pods []*v1.Pod) {
	for _, pod := range pods {
		kl.handlePodSync(pod)
	}
}

func (kl *Kubelet) handlePodSync(pod *v1.Pod) {
	mirror, _ := kl.pods.GetMirrorPodByPod(pod)
	kl.workers.UpdatePod(UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodSync})
}

// isActive reports whether a pod counts as using the node.
// It mirrors upstream's filterOutInactivePods: a pod whose status is terminal
// still counts while its containers are being stopped.
func (kl *Kubelet) isActive(pod *v1.Pod) bool {
	if kl.workers.IsPodKnownTerminated(pod.UID) || kl.rejected[pod.UID] {
		return false
	}
	terminal := kubetypes.IsTerminalPhase(pod.Status.Phase) || kubetypes.IsTerminalPhase(kl.podStatus(pod).Phase)
	return !terminal || kl.workers.IsPodTerminationRequested(pod.UID)
}

// activePods returns the pods that use the node, in a slice of the caller's with
// room for one more.
func (kl *Kubelet) activePods() []*v1.Pod {
	out := make([]*v1.Pod, 0, kl.pods.Len()+1)
	kl.pods.Each(func(pod *v1.Pod) {
		if kl.isActive(pod) {
			out = append(out, pod)
		}
	})
	return out
}

// podStatus is the status manager's status of a pod, or else the API's.
func (kl *Kubelet) podStatus(pod *v1.Pod) *v1.PodStatus {
	if s, ok := kl.statusManager.GetPodStatus(pod.UID); ok {
		return s
	}
	return &pod.Status
}

func podName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func podNames(pods []*v1.Pod) string {
	var b strings.Builder
	for i, p := range pods {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(podName(p))
	}
	return b.String()
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
