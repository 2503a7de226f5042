package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOSClass is the QoS class that the API has given to a pod, or, for a static
// pod, that which its resources make (upstream pkg/apis/core/v1/helper/qos).
func QOSClass(pod *v1.Pod) v1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	q := qosSum{guaranteed: true}
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
	case !q.anyRequest() && !q.anyLimit():
		return v1.PodQOSBestEffort
	case q.guaranteed && q.equal():
		return v1.PodQOSGuaranteed
	}
	return v1.PodQOSBurstable
}

// qosSum adds up cpu and memory; what is not above zero doesn't count.
type qosSum struct {
	requests, limits   [2]resource.Quantity
	hasRequest, hasLim [2]bool
	guaranteed         bool
}

func (q *qosSum) add(r *v1.ResourceRequirements) {
	for i, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if v, ok := r.Requests[name]; ok && v.Sign() > 0 {
			q.requests[i].Add(v)
			q.hasRequest[i] = true
		}
		if v, ok := r.Limits[name]; ok && v.Sign() > 0 {
			q.limits[i].Add(v)
			q.hasLim[i] = true
		} else {
			q.guaranteed = false
		}
	}
}

func (q *qosSum) anyRequest() bool { return q.hasRequest[0] || q.hasRequest[1] }
func (q *qosSum) anyLimit() bool   { return q.hasLim[0] || q.hasLim[1] }

// equal tells whether requests are the limits.
func (q *qosSum) equal() bool {
	for i := range q.requests {
		if q.hasRequest[i] != q.hasLim[i] || q.hasRequest[i] && q.requests[i].Cmp(q.limits[i]) != 0 {
			return false
		}
	}
	return true
}
