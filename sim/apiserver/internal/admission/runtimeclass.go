package admission

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// admitRuntimeClass is the RuntimeClass admission plugin: a pod's class must
// exist, and gives the pod its overhead and where it may run.
func (p *Plugins) admitRuntimeClass(pod *v1.Pod) error {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		if len(pod.Spec.Overhead) > 0 {
			return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
		return nil
	}
	name := *pod.Spec.RuntimeClassName
	rc := p.cluster.RuntimeClass(name)
	if rc == nil {
		return forbidden(pod, fmt.Sprintf("pod rejected: RuntimeClass %q not found", name))
	}
	if rc.Overhead == nil {
		if len(pod.Spec.Overhead) > 0 {
			return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
	} else {
		if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(pod.Spec.Overhead, rc.Overhead.PodFixed) {
			return forbidden(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
		pod.Spec.Overhead = rc.Overhead.PodFixed.DeepCopy()
	}
	if rc.Scheduling == nil {
		return nil
	}
	return schedule(pod, rc)
}

// schedule adds the class's node selector and tolerations to the pod's.
func schedule(pod *v1.Pod, rc *nodev1.RuntimeClass) error {
	selector := make(map[string]string, len(pod.Spec.NodeSelector)+len(rc.Scheduling.NodeSelector))
	maps.Copy(selector, pod.Spec.NodeSelector)
	for _, k := range slices.Sorted(maps.Keys(rc.Scheduling.NodeSelector)) { //drydock:unordered sorted at once
		v := rc.Scheduling.NodeSelector[k]
		if own, ok := selector[k]; ok && own != v {
			return forbidden(pod, fmt.Sprintf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", k, v, k, own))
		}
		selector[k] = v
	}
	if len(selector) > 0 {
		pod.Spec.NodeSelector = selector
	}
	// Clipped, so that the append copies: the list may be a template's.
	own := pod.Spec.Tolerations
	pod.Spec.Tolerations = append(own[:len(own):len(own)], rc.Scheduling.Tolerations...)
	return nil
}
