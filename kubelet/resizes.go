package kubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
)

// trackResize brings the condition PodResizeInProgress up to what containers
// have been given, before a sync. pod is the allocated one.
func (sy *syncer) trackResize(pod *v1.Pod, runtime *kubecontainer.PodStatus) {
	e := sy.allocation.State().Get(pod.UID)
	if actions.ResizeInProgress(pod, e, runtime) {
		sy.statusManager.SetPodResizeInProgress(pod.UID, "", "", pod.Generation)
		return
	}
	if generation, cleared := sy.statusManager.ClearPodResizeInProgress(pod.UID); cleared {
		sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeNormal, events.ResizeCompleted, allocation.ResizeMessage("completed", pod, generation, ""))
	}
}

// resizeResult notes that a resize in place failed, if it did.
func (sy *syncer) resizeResult(pod *v1.Pod, result *kubecontainer.PodSyncResult) {
	for _, r := range result.SyncResults {
		if r.Action != kubecontainer.ResizePodInPlace || r.Error == nil {
			continue
		}
		if sy.statusManager.SetPodResizeInProgress(pod.UID, v1.PodReasonError, r.Message, pod.Generation) {
			sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.ResizeError, allocation.ResizeMessage("error", pod, pod.Generation, r.Message))
		}
	}
}

// resizing reports whether a pod's resources, or what is told of them, are
// changing: no sync of it is left out then.
func (sy *syncer) resizing(uid types.UID) bool {
	pending, inProgress := sy.statusManager.PodResizeConditions(uid)
	return pending != nil || inProgress != nil || sy.allocation.State().Get(uid) != nil
}

// resizeInput adds to the input of a status what is known of a resize.
func (sy *syncer) resizeInput(in *status.Input) {
	pod := in.Pod
	in.ResizeConditions = sy.statusManager.ResizeConditions(pod.UID)
	e := sy.allocation.State().Get(pod.UID)
	if e == nil {
		return
	}
	in.Resizing = true
	in.ActuatedMemoryRequest = func(container string) int64 {
		r := e.Actuated.Containers[container]
		return r.Requests.Memory().Value()
	}
	if sy.containers.cgroups.Known(pod.UID) {
		in.PodCgroup = func() (milliRequest, milliLimit, memoryLimit int64) {
			g := sy.containers.cgroups.Get(pod)
			return g.MilliCPU, g.MilliCPULimit, g.MemoryLimit
		}
	}
}
