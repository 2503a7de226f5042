package apiserver

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
)

// WatchRuntimeClasses lists the runtime classes by name and watches them until
// stop is called or g dies; otherwise as WatchConfigMap.
func (c *Client) WatchRuntimeClasses(g *loop.Group, listed func([]*nodev1.RuntimeClass), event func(watch.EventType, *nodev1.RuntimeClass)) (stop func()) {
	return c.watchObject(g, KindRuntimeClass, "", "", func(list []Object) {
		classes := make([]*nodev1.RuntimeClass, len(list))
		for i, o := range list {
			classes[i] = o.(*nodev1.RuntimeClass)
		}
		listed(classes)
	}, func(t watch.EventType, o Object) { event(t, o.(*nodev1.RuntimeClass)) })
}

// admitRuntimeClass is the RuntimeClass admission plugin: a pod's class must
// exist, and gives the pod its overhead and where it may run.
func (s *Store) admitRuntimeClass(pod *v1.Pod) error {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		if len(pod.Spec.Overhead) > 0 {
			return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
		return nil
	}
	name := *pod.Spec.RuntimeClassName
	obj := s.Lookup(KindRuntimeClass, "", name)
	if obj == nil {
		return forbidden(pod, fmt.Sprintf("pod rejected: RuntimeClass %q not found", name))
	}
	rc := obj.(*nodev1.RuntimeClass)
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
	for k, v := range pod.Spec.NodeSelector { //drydock:unordered copies a map
		selector[k] = v
	}
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
	own := pod.Spec.Tolerations
	pod.Spec.Tolerations = append(own[:len(own):len(own)], rc.Scheduling.Tolerations...)
	return nil
}

func forbidden(pod *v1.Pod, text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, admissionName(pod), fmt.Errorf("%s", text))
}
