package store

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/loop"
)

func TestRuntimeClassAdmission(t *testing.T) {
	s := New(Options{})
	now := loop.Epoch()
	class := &nodev1.RuntimeClass{
		Handler:    "kata",
		Overhead:   &nodev1.Overhead{PodFixed: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")}},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "yes"}, Tolerations: []v1.Toleration{{Key: "kata"}}},
	}
	class.Name = "kata"
	if _, err := s.Create(now, class); err != nil {
		t.Fatal(err)
	}
	bad := &nodev1.RuntimeClass{Handler: "No Label"}
	bad.Name = "bad"
	if _, err := s.Create(now, bad); err == nil {
		t.Error("a bad handler was taken")
	}
	for _, tc := range []struct {
		name, class string
		change      func(*v1.PodSpec)
		want        string
	}{
		{"taken", "kata", func(*v1.PodSpec) {}, ""},
		{"unknown", "none", func(*v1.PodSpec) {}, `pods "unknown" is forbidden: pod rejected: RuntimeClass "none" not found`},
		{"conflict", "kata", func(p *v1.PodSpec) { p.NodeSelector = map[string]string{"kata": "no"} }, "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no"},
		{"own-overhead", "kata", func(p *v1.PodSpec) { p.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("0.25")} }, ""},
		{"other-overhead", "kata", func(p *v1.PodSpec) { p.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")} },
			"pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"},
		{"overhead", "", func(p *v1.PodSpec) { p.Overhead = class.Overhead.PodFixed }, "Pod Overhead set without corresponding RuntimeClass"},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
		pod.Namespace, pod.Name = "default", tc.name
		if tc.class != "" {
			pod.Spec.RuntimeClassName = &tc.class
		}
		tc.change(&pod.Spec)
		got, err := s.Create(now, pod)
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		spec := &got.(*v1.Pod).Spec
		if cpu := spec.Overhead[v1.ResourceCPU]; cpu.String() != "250m" || spec.NodeSelector["kata"] != "yes" || len(spec.Tolerations) != 3 {
			t.Errorf("%v %v %v", spec.Overhead, spec.NodeSelector, spec.Tolerations)
		}
	}
}
