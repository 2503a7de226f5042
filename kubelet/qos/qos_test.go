package qos

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestCompute(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		out := v1.ResourceList{}
		if cpu != "" {
			out[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			out[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return out
	}
	with := func(requests, limits v1.ResourceList) v1.Container {
		return v1.Container{Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	full := with(list("1", "1Gi"), list("1", "1Gi"))
	for _, tc := range []struct {
		name string
		spec v1.PodSpec
		want v1.PodQOSClass
	}{
		{"nothing", v1.PodSpec{Containers: []v1.Container{{}}}, v1.PodQOSBestEffort},
		{"zero counts as nothing", v1.PodSpec{Containers: []v1.Container{with(list("0", ""), nil)}}, v1.PodQOSBestEffort},
		{"requests only", v1.PodSpec{Containers: []v1.Container{with(list("1", ""), nil)}}, v1.PodQOSBurstable},
		{"limits equal requests", v1.PodSpec{Containers: []v1.Container{full, full}}, v1.PodQOSGuaranteed},
		{"one container without", v1.PodSpec{Containers: []v1.Container{full, {}}}, v1.PodQOSBurstable},
		{"an init container without", v1.PodSpec{InitContainers: []v1.Container{{}}, Containers: []v1.Container{full}}, v1.PodQOSBurstable},
		{"no memory", v1.PodSpec{Containers: []v1.Container{with(list("1", ""), list("1", ""))}}, v1.PodQOSBurstable},
		{"request below limit", v1.PodSpec{Containers: []v1.Container{with(list("500m", "1Gi"), list("1", "1Gi"))}}, v1.PodQOSBurstable},
		{"only what is neither cpu nor memory", v1.PodSpec{Containers: []v1.Container{with(nil, v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")})}}, v1.PodQOSBestEffort},
		{"ephemeral containers don't count", v1.PodSpec{Containers: []v1.Container{full}, EphemeralContainers: []v1.EphemeralContainer{{}}}, v1.PodQOSGuaranteed},
		{"the pod's own limits lack memory", v1.PodSpec{Resources: &v1.ResourceRequirements{Requests: list("1", ""), Limits: list("1", "")}, Containers: []v1.Container{full}}, v1.PodQOSBurstable},
		{"the pod's own requests only", v1.PodSpec{Resources: &v1.ResourceRequirements{Requests: list("1", "1Gi")}, Containers: []v1.Container{full}}, v1.PodQOSBurstable},
		{"the pod's own resources decide", v1.PodSpec{Resources: &full.Resources, Containers: []v1.Container{{}}}, v1.PodQOSGuaranteed},
	} {
		if got := Compute(&v1.Pod{Spec: tc.spec}); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	p := &v1.Pod{Status: v1.PodStatus{QOSClass: v1.PodQOSGuaranteed}}
	if Class(p) != v1.PodQOSGuaranteed || Compute(p) != v1.PodQOSBestEffort {
		t.Error("the API's class counts for Class only")
	}
}
