// Package qos computes the quality-of-service class of pods. It mirrors
// upstream's pkg/apis/core/v1/helper/qos and pkg/kubelet/qos.
package qos

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Class is the class that the API has given to a pod, or, for a pod that the
// API has not seen, that which its resources make.
func Class(pod *v1.Pod) v1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return Compute(pod)
}

// Compute is the class that a pod's cpu and memory make: those of the pod if it
// has any, else those of its init and regular containers. status.qosClass is
// not looked at.
func Compute(pod *v1.Pod) v1.PodQOSClass {
	q := sums{guaranteed: true}
	if r := pod.Spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		q.add(r)
	} else {
		for _, list := range [...][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range list {
				q.add(&list[i].Resources)
			}
		}
	}
	switch {
	case !q.any:
		return v1.PodQOSBestEffort
	case q.guaranteed && q.equal():
		return v1.PodQOSGuaranteed
	}
	return v1.PodQOSBurstable
}

// sums adds up cpu and memory; what is not above zero doesn't count.
type sums struct {
	requests, limits     [2]resource.Quantity
	hasRequest, hasLimit [2]bool
	any, guaranteed      bool
}

func (q *sums) add(r *v1.ResourceRequirements) {
	for i, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if v, ok := r.Requests[name]; ok && v.Sign() > 0 {
			q.requests[i].Add(v)
			q.hasRequest[i], q.any = true, true
		}
		if v, ok := r.Limits[name]; ok && v.Sign() > 0 {
			q.limits[i].Add(v)
			q.hasLimit[i], q.any = true, true
		} else {
			q.guaranteed = false
		}
	}
}

// equal reports whether requests are the limits.
func (q *sums) equal() bool {
	for i := range q.requests {
		if q.hasRequest[i] != q.hasLimit[i] || q.hasRequest[i] && q.requests[i].Cmp(q.limits[i]) != 0 {
			return false
		}
	}
	return true
}
