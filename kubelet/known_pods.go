package kubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// knownPods are the pods that the kubelet knows, each under several aspects: what
// its source says (podConfig, pods), what the runtime shows (podCache), what was
// reported (statusManager), what its worker is at (workers), and what it was given
// of the node (allocation).
//
// The kubelet's object of a pod of the API is the API's own, of which there is
// another after each change. So that no old one stays in memory, whoever keeps
// one is given the next when only the status has changed, which is when nobody
// else would tell them. What upstream's kubelet adds to its copy of a pod, or
// keeps of its first version, is added where it is seen: in the annotations that
// the runtime and containers see, and in the references of events.
type knownPods struct {
	podConfig     *config.PodConfig
	pods          *kubepod.Manager
	podCache      *kubecontainer.Cache
	statusManager *status.Manager
	workers       *podworkers.Workers
	allocation    *allocation.Manager
	// rejected are those that were not admitted; nil: none was.
	rejected map[types.UID]bool
}

// isActive reports whether a pod counts as using the node.
// It mirrors upstream's filterOutInactivePods: a pod whose status is terminal
// still counts while its containers are being stopped.
func (k *knownPods) isActive(pod *v1.Pod) bool {
	if k.workers.IsPodKnownTerminated(pod.UID) || k.rejected[pod.UID] {
		return false
	}
	terminal := kubetypes.IsTerminalPhase(pod.Status.Phase) || kubetypes.IsTerminalPhase(k.statusManager.PodStatus(pod).Phase)
	return !terminal || k.workers.IsPodTerminationRequested(pod.UID)
}

// activePods returns the pods that use the node, in a slice of the caller's with
// room for one more.
func (k *knownPods) activePods() []*v1.Pod {
	out := make([]*v1.Pod, 0, k.pods.Len()+1)
	k.pods.Each(func(pod *v1.Pod) {
		if k.isActive(pod) {
			out = append(out, pod)
		}
	})
	return out
}

// allocatedPods are the active pods with what they were allocated, in a slice
// of the caller's.
func (k *knownPods) allocatedPods() []*v1.Pod { return k.allocation.AllocatedPods(k.activePods()) }

// admittedPods are those that checkpoints have entries of.
func (k *knownPods) admittedPods() []*v1.Pod {
	out := make([]*v1.Pod, 0, k.pods.Len())
	k.pods.Each(func(pod *v1.Pod) {
		if k.workers.Known(pod.UID) && !k.rejected[pod.UID] {
			out = append(out, pod)
		}
	})
	return out
}

// noteRejected has a pod use nothing of the node from now on. Upstream goes by
// the pod's phase and worker, so that an update of a rejected pod, which gives
// it a worker, makes it count for a moment (kubernetes/kubernetes issue 135296).
func (k *knownPods) noteRejected(uid types.UID) {
	if k.rejected == nil {
		k.rejected = map[types.UID]bool{}
	}
	k.rejected[uid] = true
}

// handlePodSync has a pod synced.
func (k *knownPods) handlePodSync(pod *v1.Pod) {
	mirror, _ := k.pods.GetMirrorPodByPod(pod)
	k.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: pod, MirrorPod: mirror, UpdateType: kubetypes.SyncPodSync})
}

// deletionSafety answers the status manager.
type deletionSafety struct{ *knownPods }

// PodCouldHaveRunningContainers is about the API's pod; a mirror stands for its
// static pod.
func (d deletionSafety) PodCouldHaveRunningContainers(pod *v1.Pod) bool {
	return d.workers.CouldHaveRunningContainers(d.pods.TranslatePodUID(pod.UID))
}

// storedPod is the pod manager's object of a pod, or mirror pod; nil: none.
func (k *knownPods) storedPod(uid types.UID) *v1.Pod {
	if pod, ok := k.pods.GetPodByUID(uid); ok {
		return pod
	}
	pod, _ := k.pods.GetMirrorPodByUID(uid)
	return pod
}

// firstSeen is what is kept of the first version of a pod of the API, as long as
// the API has the pod, or a worker.
func (k *knownPods) firstSeen(uid types.UID) *config.FirstSeen {
	if f := k.workers.First(uid); f != nil {
		return f
	}
	if pod := k.storedPod(uid); pod != nil {
		return k.podConfig.FirstSeen(uid, nameOf(pod))
	}
	return nil
}

// annotator makes a pod's annotations as upstream's kubelet has them, with
// kubernetes.io/config.source and config.seen; nil: they are the pod's own.
func (k *knownPods) annotator(uid types.UID) kuberuntime.Annotator {
	if f := k.firstSeen(uid); f != nil {
		return f
	}
	return nil
}

// annotated is a pod with its annotations.
func (k *knownPods) annotated(pod *v1.Pod) *v1.Pod {
	f := k.firstSeen(pod.UID)
	if f == nil {
		return pod
	}
	p := *pod
	p.Annotations = f.Annotations(pod)
	return &p
}

// firstVersion is the resourceVersion that events about a pod refer to; "" if
// the pod's object says it.
func (k *knownPods) firstVersion(uid types.UID) string {
	if f := k.firstSeen(uid); f != nil {
		return f.ResourceVersion
	}
	return ""
}

func podName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
