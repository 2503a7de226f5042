package apiserver

import v1 "k8s.io/api/core/v1"

// PodQOS computes a pod's quality-of-service class from its cpu and memory
// (pkg/apis/core/v1/helper/qos). status.qosClass is not looked at.
func PodQOS(pod *v1.Pod) v1.PodQOSClass {
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	guaranteed := true
	if r := pod.Spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		addQOS(requests, r.Requests)
		if n := addQOS(limits, r.Limits); n < 2 {
			guaranteed = false
		}
	} else {
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				addQOS(requests, list[i].Resources.Requests)
				if n := addQOS(limits, list[i].Resources.Limits); n < 2 {
					guaranteed = false
				}
			}
		}
	}
	if len(requests) == 0 && len(limits) == 0 {
		return v1.PodQOSBestEffort
	}
	if guaranteed && len(requests) == len(limits) {
		same := true
		for name, req := range requests { //drydock:unordered all must hold
			lim, ok := limits[name]
			same = same && ok && lim.Cmp(req) == 0
		}
		if same {
			return v1.PodQOSGuaranteed
		}
	}
	return v1.PodQOSBurstable
}

// addQOS adds the positive cpu and memory of list to sum and returns how many
// of the two it had.
func addQOS(sum, list v1.ResourceList) int {
	n := 0
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		q, ok := list[name]
		if !ok || q.Sign() <= 0 {
			continue
		}
		n++
		if have, ok := sum[name]; ok {
			have.Add(q)
			sum[name] = have
		} else {
			sum[name] = q.DeepCopy()
		}
	}
	return n
}
