package kubelet

import (
	"context"
	"slices"
	"strings"

	resourcehelper "k8s.io/component-helpers/resource"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// admitter judges pods that are new to the node: package allocation.
type admitter interface {
	// AddPod admits a pod beside others, or says why not. It may wait.
	AddPod(ctx context.Context, others func() []*v1.Pod, pod *v1.Pod) lifecycle.PodAdmitResult
}

// handlePodAdditions takes in pods that are new, oldest first.
// It mirrors upstream's HandlePodAdditions (pkg/kubelet/kubelet.go), as those
// below mirror the handlers of their names.
func (sl *syncLoop) handlePodAdditions(ctx context.Context, pods []*v1.Pod) {
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
		sl.setPod(pod)
		sl.volumes.trackCertificates(pod)
		if sl.opts.Unsupported != nil {
			for _, what := range sl.opts.Unsupported(pod) {
				sl.logf("Warning: the pod asks for what this kubelet does not do pod=%s: %s", podName(pod), what)
			}
		}
		if kubetypes.IsMirrorPod(pod) {
			sl.updateStaticOf(pod)
			continue
		}
		if !sl.workers.IsPodTerminationRequested(pod.UID) && !kubetypes.IsTerminalPhase(pod.Status.Phase) {
			before := sl.l.Steps()
			others := func() []*v1.Pod { return sl.podsBeside(pod, pods[from:i]) }
			if r := sl.admission.AddPod(ctx, others, pod); !r.Admit {
				sl.rejectPod(pod, r.Reason, r.Message)
				continue
			}
			if sl.l.Steps() != before { // somebody waited
				from = i + 1
			}
		}
		mirror, _ := sl.pods.GetMirrorPodByPod(pod)
		sl.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodCreate})
	}
	for _, pod := range pods { // those that have limits on local storage
		sl.eviction.AddPod(pod)
	}
	sl.restoreResizes(ctx, pods)
}

// setPod stores a pod, or mirror pod, and tells who keeps something about it.
func (sl *syncLoop) setPod(pod *v1.Pod) {
	sl.pods.UpdatePod(pod)
	sl.statusManager.PodChanged(pod.UID)
	sl.volumes.PodAdded(pod)
}

func (sl *syncLoop) removePod(pod *v1.Pod) {
	// The status manager finds a mirror's static pod by the translation that
	// ends with the removal.
	uid := sl.pods.TranslatePodUID(pod.UID)
	sl.volumes.forgetCertificates(pod)
	sl.pods.RemovePod(pod)
	sl.statusManager.PodChanged(uid)
	sl.volumes.PodsChanged()
}

// updateStaticOf has the static pod of a mirror pod synced.
func (sl *syncLoop) updateStaticOf(mirror *v1.Pod) {
	if pod, ok := sl.pods.GetPodByMirrorPod(mirror); ok {
		sl.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
	}
}

// rejectPod refuses a pod for good.
// The pod fails without a worker: nothing of it was started, so nothing is to be
// stopped.
func (sl *syncLoop) rejectPod(pod *v1.Pod, reason, message string) {
	sl.metrics.Rejected(reason)
	sl.logf("Pod admission denied pod=%s reason=%s message=%q", podName(pod), reason, message)
	sl.noteRejected(pod.UID)
	sl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, reason, message)
	sl.statusManager.SetPodStatus(pod, v1.PodStatus{
		QOSClass: qos.Class(pod),
		Phase:    v1.PodFailed,
		Reason:   reason,
		Message:  "Pod was rejected: " + message,
	})
}

// handlePodUpdates takes in pods that changed, or are to be deleted.
func (sl *syncLoop) handlePodUpdates(ctx context.Context, pods []*v1.Pod) {
	for _, pod := range pods {
		old, _ := sl.pods.GetPodByUID(pod.UID)
		sl.setPod(pod)
		if kubetypes.IsMirrorPod(pod) {
			sl.updateStaticOf(pod)
			continue
		}
		sl.resizeUpdated(ctx, old, pod)
		mirror, _ := sl.pods.GetMirrorPodByPod(pod)
		sl.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
	}
}

// handlePodRemoves takes in pods that are gone from their source.
func (sl *syncLoop) handlePodRemoves(ctx context.Context, pods []*v1.Pod) {
	for _, pod := range pods {
		sl.removePod(pod)
		sl.allocation.RemovePod(pod.UID)
		sl.containers.cgroups.Forget(pod.UID)
		delete(sl.rejected, pod.UID)
		sl.eviction.RemovePod(pod.UID)
		if kubetypes.IsMirrorPod(pod) {
			sl.updateStaticOf(pod)
			continue
		}
		// Before all sources are known it may belong to one of the others;
		// housekeeping finds it if not.
		if sl.podConfig.AllReady() {
			sl.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodKill})
		}
	}
	sl.allocation.RetryPendingResizes(ctx, "pods_removed")
}

// replacePod gives those who keep a pod's object, or its mirror's, the next
// version, which differs in its status alone. It is called after setPod.
func (sl *syncLoop) replacePod(old, pod *v1.Pod) {
	if old == nil || old == pod {
		return
	}
	sl.workers.ReplacePod(sl.pods.TranslatePodUID(pod.UID), old, pod)
	sl.probes.ReplacePod(old, pod)
	sl.volumes.replacePod(old, pod)
}

// handlePodReconcile takes in pods of which only the status changed.
func (sl *syncLoop) handlePodReconcile(ctx context.Context, pods []*v1.Pod) {
	retry := "" // why
	for _, pod := range pods {
		stored := sl.storedPod(pod.UID)
		if retry == "" && sl.allocation.HasPendingResizes() {
			old, _ := sl.pods.GetPodByUID(pod.UID)
			retry = freesResources(old, pod)
		}
		sl.setPod(pod)
		sl.replacePod(stored, pod)
		own, mirror, wasMirror := sl.pods.GetPodAndMirrorPod(pod)
		// The static pod of this mirror is gone; housekeeping deletes the mirror.
		if wasMirror && own == nil {
			continue
		}
		if status.NeedsReadinessReconcile(own) {
			sl.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: own, MirrorPod: mirror, UpdateType: kubetypes.SyncPodSync})
		}
		// An evicted pod is not restarted, so that none of its dead containers
		// are of use.
		if own.Status.Phase == v1.PodFailed && own.Status.Reason == eviction.Reason {
			if picture, err := sl.podCache.Get(own.UID); err == nil {
				sl.deletor.DeleteContainersInPod("", picture, true)
			}
		}
	}
	if retry != "" {
		sl.allocation.RetryPendingResizes(ctx, retry)
	}
}

// podsBeside are the allocated pods that use the node beside the pod, those that
// came with it last. What all pods use is counted anew then.
func (sl *syncLoop) podsBeside(pod *v1.Pod, came []*v1.Pod) []*v1.Pod {
	with := func(list []*v1.Pod, uid types.UID) bool {
		return slices.ContainsFunc(list, func(o *v1.Pod) bool { return o.UID == uid })
	}
	out := slices.DeleteFunc(sl.activePods(), func(o *v1.Pod) bool { return o.UID == pod.UID || with(came, o.UID) })
	for _, o := range came {
		if !kubetypes.IsMirrorPod(o) && sl.isActive(o) {
			out = append(out, o)
		}
	}
	return sl.allocation.AllocatedPods(out)
}

// restoreResizes takes over, after pods were added, what an earlier kubelet
// left of their resizes.
func (sl *syncLoop) restoreResizes(ctx context.Context, pods []*v1.Pod) {
	for _, pod := range pods {
		sl.statusManager.BackfillPodResizeConditions(pod)
	}
	if sl.allocation.HasPendingResizes() {
		sl.allocation.RetryPendingResizes(ctx, "pods_added")
	}
}

// resizeUpdated looks whether a pod's update asks for other resources. old is
// the pod before, nil if it was not known.
func (sl *syncLoop) resizeUpdated(ctx context.Context, old, pod *v1.Pod) {
	if !sl.allocation.SpecUpdated(old, pod) {
		return
	}
	if _, differs := sl.allocation.UpdatePodFromAllocation(pod); !differs {
		sl.allocation.ClearPendingResize(pod)
		return
	}
	sl.allocation.PushPendingResize(pod.UID)
	sl.allocation.RetryPendingResizes(ctx, "pod_updated")
}

// freesResources says how a change of a pod's status may make room for a
// pending resize: the pod has ended (pod_terminated), or what it uses has shrunk
// (pod_resized); "" if it has not.
func freesResources(old, pod *v1.Pod) string {
	if kubetypes.IsTerminalPhase(pod.Status.Phase) {
		if old == nil || !kubetypes.IsTerminalPhase(old.Status.Phase) {
			return "pod_terminated"
		}
		return ""
	}
	if old == nil {
		return ""
	}
	// The status has what containers were given, and that is what a resize waits
	// for.
	o := resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	was, is := resourcehelper.PodRequests(old, o), resourcehelper.PodRequests(pod, o)
	if is.Cpu().Cmp(*was.Cpu()) < 0 || is.Memory().Cmp(*was.Memory()) < 0 {
		return "pod_resized"
	}
	return ""
}

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
