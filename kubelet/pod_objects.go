package kubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/config"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// The kubelet's object of a pod of the API is the API's own, of which there is
// another after each change. So that no old one stays in memory, whoever keeps
// one is given the next when only the status has changed, which is when nobody
// else would tell them. What upstream's kubelet adds to its copy of a pod, or
// keeps of its first version, is added where it is seen: in the annotations that
// the runtime and containers see, and in the references of events.

// firstSeen is what is kept of the first version of a pod of the API, as long as
// the API has the pod, or a worker.
func (kl *Kubelet) firstSeen(uid types.UID) *config.FirstSeen {
	if s := kl.workers.records.get(uid); s != nil && s.first != nil {
		return s.first
	}
	if pod := kl.storedPod(uid); pod != nil {
		return kl.podConfig.FirstSeen(uid, nameOf(pod))
	}
	return nil
}

// annotator makes a pod's annotations as upstream's kubelet has them, with
// kubernetes.io/config.source and config.seen; nil: they are the pod's own.
func (kl *Kubelet) annotator(uid types.UID) kuberuntime.Annotator {
	if f := kl.firstSeen(uid); f != nil {
		return f
	}
	return nil
}

// annotated is a pod with its annotations.
func (kl *Kubelet) annotated(pod *v1.Pod) *v1.Pod {
	f := kl.firstSeen(pod.UID)
	if f == nil {
		return pod
	}
	p := *pod
	p.Annotations = f.Annotations(pod)
	return &p
}

// firstVersion is the resourceVersion that events about a pod refer to; "" if
// the pod's object says it.
func (kl *Kubelet) firstVersion(uid types.UID) string {
	if f := kl.firstSeen(uid); f != nil {
		return f.ResourceVersion
	}
	return ""
}

// storedPod is the pod manager's object of a pod, or mirror pod; nil: none.
func (kl *Kubelet) storedPod(uid types.UID) *v1.Pod {
	if pod, ok := kl.pods.GetPodByUID(uid); ok {
		return pod
	}
	pod, _ := kl.pods.GetMirrorPodByUID(uid)
	return pod
}

// replacePod gives those who keep a pod's object, or its mirror's, the next
// version, which differs in its status alone. It is called after setPod.
func (kl *Kubelet) replacePod(old, pod *v1.Pod) {
	if old == nil || old == pod {
		return
	}
	kl.workers.replacePod(kl.pods.TranslatePodUID(pod.UID), old, pod)
	kl.probes.ReplacePod(old, pod)
	kl.volumes.ReplacePod(old, pod)
	if kl.client != nil {
		kl.secrets.ReplacePod(old, pod)
		kl.configMaps.ReplacePod(old, pod)
	}
}

// replacePod puts the next version of an object in the place of the old one,
// where the record of the UID has it.
func (w *podWorkers) replacePod(uid types.UID, old, pod *v1.Pod) {
	if s := w.records.get(uid); s != nil {
		s.replacePod(old, pod)
	}
}

// replaceStatus is replacePod for the pod's cached status.
func (w *podWorkers) replaceStatus(uid types.UID, old, status *v1.PodStatus) {
	if s := w.records.get(uid); s != nil {
		s.replaceStatus(old, status)
	}
}
