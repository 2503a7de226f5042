package allocation

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// resources reads "cpu=1/2 memory=1Gi": requests, and limits after a slash.
func resources(text string) (r v1.ResourceRequirements) {
	r.Requests, r.Limits = v1.ResourceList{}, v1.ResourceList{}
	for f := range strings.FieldsSeq(text) {
		name, amounts, _ := strings.Cut(f, "=")
		request, limit, _ := strings.Cut(amounts, "/")
		r.Requests[v1.ResourceName(name)] = resource.MustParse(request)
		if limit != "" {
			r.Limits[v1.ResourceName(name)] = resource.MustParse(limit)
		}
	}
	return r
}

// TestResizeLimits: which resizes a node's settings make infeasible (upstream
// allocation/handlers.go).
func TestResizeLimits(t *testing.T) {
	const (
		cpus   = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
		memory = `Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`
		swap   = "In-place resize of containers with swap is not supported."
		whole  = "cpu=2/2 memory=1Gi/1Gi"
	)
	all := ResizeLimits{LimitedSwap: true, StaticCPUs: true, StaticMemory: true}
	for _, tc := range []struct {
		name     string
		limits   ResizeLimits
		was, now string
		change   func(p *v1.Pod) // both
		want     string
	}{
		{name: "the same", limits: all, was: whole, now: whole},
		{name: "exclusive cpus", limits: all, was: whole, now: "cpu=3/3 memory=1Gi/1Gi", want: cpus},
		{name: "memory of one node", limits: all, was: whole, now: "cpu=2/2 memory=2Gi/2Gi", want: memory},
		{name: "cpu, where memory is static", limits: ResizeLimits{StaticMemory: true}, was: whole, now: "cpu=3/3 memory=1Gi/1Gi"},
		{name: "memory, where cpus are static", limits: ResizeLimits{StaticCPUs: true}, was: whole, now: "cpu=2/2 memory=2Gi/2Gi"},
		{name: "not static", was: whole, now: "cpu=3/3 memory=2Gi/2Gi"},
		{name: "a burstable pod has no cpus of its own", limits: ResizeLimits{StaticCPUs: true, StaticMemory: true}, was: "cpu=1/2 memory=1Gi", now: "cpu=2/2 memory=2Gi"},
		{name: "an init container's", limits: all, was: whole, now: "cpu=1/1 memory=1Gi/1Gi", want: cpus,
			change: func(p *v1.Pod) { p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil }},
		{name: "with swap", limits: all, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=1/2 memory=1.5Gi/2Gi", want: swap},
		{name: "without a limit", limits: all, was: "cpu=1 memory=1Gi", now: "cpu=1 memory=2Gi", want: swap},
		{name: "with swap, of the limit", limits: all, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=1/2 memory=1Gi/3Gi"},
		{name: "with swap, of cpu", limits: all, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=2/2 memory=1Gi/2Gi"},
		{name: "the request is the limit, so it has no swap", limits: all, was: "cpu=1/2 memory=1Gi/1Gi", now: "cpu=1/2 memory=2Gi/2Gi"},
		{name: "swap only afterwards", limits: all, was: "cpu=1/2", now: "cpu=1/2 memory=2Gi", want: swap},
		{name: "a critical pod has no swap", limits: all, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=1/2 memory=1.5Gi/2Gi",
			change: func(p *v1.Pod) { p.Spec.Priority = ptr.To(int32(2_000_000_000)) }},
		{name: "no swap on the node", limits: ResizeLimits{StaticCPUs: true, StaticMemory: true}, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=1/2 memory=1.5Gi/2Gi"},
		{name: "with swap, restarted for it", limits: all, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=1/2 memory=1.5Gi/2Gi",
			change: func(p *v1.Pod) {
				p.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceCPU}, {ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
			}},
		{name: "with swap, restarted for cpu", limits: all, was: "cpu=1/2 memory=1Gi/2Gi", now: "cpu=1/2 memory=1.5Gi/2Gi", want: swap,
			change: func(p *v1.Pod) {
				p.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceCPU, RestartPolicy: v1.RestartContainer}}
			}},
	} {
		pod := func(text string) *v1.Pod {
			p := &v1.Pod{}
			p.Spec.Containers = []v1.Container{{Name: "app", Resources: resources(text)}}
			if tc.change != nil {
				tc.change(p)
			}
			return p
		}
		r := tc.limits.admit(pod(tc.now), pod(tc.was))
		if r.Message != tc.want || r.Admit != (tc.want == "") || !r.Admit && r.Reason != v1.PodReasonInfeasible {
			t.Errorf("%s: %+v, want %q", tc.name, r, tc.want)
		}
	}
	// A pod whose own resources make it Guaranteed: they may change, its containers' may not.
	pod := func(own, container string) *v1.Pod {
		r := resources(own)
		p := &v1.Pod{}
		p.Spec.Resources, p.Spec.Containers = &r, []v1.Container{{Name: "app", Resources: resources(container)}}
		return p
	}
	for _, tc := range []struct{ own, container, want string }{
		{"cpu=4/4 memory=2Gi/2Gi", "cpu=1/2 memory=1Gi", ""},
		{whole, "cpu=1/1 memory=1Gi", ""},
		{whole, "cpu=2/2 memory=1Gi", cpus},
		{whole, "cpu=1/2 memory=500Mi", memory},
	} {
		if r := all.admit(pod(tc.own, tc.container), pod(whole, "cpu=1/2 memory=1Gi")); r.Message != tc.want {
			t.Errorf("%s with %s: %+v, want %q", tc.own, tc.container, r, tc.want)
		}
	}
}
