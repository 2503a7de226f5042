package lifecycle

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodFeatures(t *testing.T) {
	sized := pod(func(p *v1.Pod) {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
	})
	for _, c := range []struct {
		name string
		pod  *v1.Pod
		off  bool
		want string
	}{
		{"without resources of its own", pod(wants(map[v1.ResourceName]string{"cpu": "1"})), true, ""},
		{"with resources of its own", sized, false, ""},
		{"the gate is off", sized, true, "PodLevelResources feature gate is disabled"},
	} {
		r := PodFeatures{NoPodLevelResources: c.off}.Admit(context.Background(), &PodAdmitAttributes{Pod: c.pod})
		if r.Admit != (c.want == "") || r.Message != c.want || !r.Admit && r.Reason != "PodLevelResourcesNotSupported" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestSetDisruptionTarget(t *testing.T) {
	first, second := time.Date(2026, 1, 1, 0, 0, 1, 5, time.UTC), time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	p := pod(func(p *v1.Pod) { p.Generation = 4 })
	s := &v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady}}}
	SetDisruptionTarget(s, p, "one", first)
	SetDisruptionTarget(s, p, "two", second)
	want := v1.PodCondition{Type: "DisruptionTarget", Status: "True", Reason: "TerminationByKubelet", Message: "two", ObservedGeneration: 4,
		LastTransitionTime: metav1.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)}
	if len(s.Conditions) != 2 || s.Conditions[1] != want {
		t.Errorf("true twice: %+v", s.Conditions)
	}
	s.Conditions[1].Status = v1.ConditionFalse
	SetDisruptionTarget(s, p, "two", second)
	want.LastTransitionTime = metav1.NewTime(second)
	if s.Conditions[1] != want {
		t.Errorf("true again: %+v", s.Conditions[1])
	}
}
