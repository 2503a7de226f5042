package eviction

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAdmit(t *testing.T) {
	burstable := func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	}
	tolerant := func(p *v1.Pod) {
		p.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}
	}
	high := int32(2000000000)
	critical := func(p *v1.Pod) { p.Spec.Priority = &high }
	memory, disk := v1.NodeMemoryPressure, v1.NodeDiskPressure
	for _, tc := range []struct {
		name       string
		pod        *v1.Pod
		conditions []v1.NodeConditionType
		want       string
	}{
		{"no pressure", pod("a"), nil, ""},
		{"best effort and memory", pod("a"), []v1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		{"burstable and memory", pod("a", burstable), []v1.NodeConditionType{memory}, ""},
		{"tolerant and memory", pod("a", tolerant), []v1.NodeConditionType{memory}, ""},
		{"burstable and disk", pod("a", burstable), []v1.NodeConditionType{disk}, "The node had condition: [DiskPressure]. "},
		{"burstable and both", pod("a", burstable), []v1.NodeConditionType{memory, disk}, "The node had condition: [MemoryPressure DiskPressure]. "},
		{"critical", pod("a", critical), []v1.NodeConditionType{memory, disk}, ""},
	} {
		r := admit(tc.pod, tc.conditions)
		if r.Admit != (tc.want == "") || r.Message != tc.want || !r.Admit && r.Reason != "Evicted" {
			t.Errorf("%s: %+v", tc.name, r)
		}
	}
}
