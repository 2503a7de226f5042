package fieldpath

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestExtractFieldPathAsString(t *testing.T) {
	pod := &v1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "p", "ns", "u"
	pod.Labels = map[string]string{"b": "two\nlines", "a": `q"`}
	for path, want := range map[string]string{
		"metadata.name": "p", "metadata.namespace": "ns", "metadata.uid": "u", "metadata.annotations": "",
		"metadata.labels": "a=\"q\\\"\"\nb=\"two\\nlines\"", "metadata.labels['a']": `q"`, "metadata.labels['none']": "",
		"metadata.name['a']": `error: fieldPath "metadata.name['a']" does not support subscript`, "spec.nodeName": "error: unsupported fieldPath: spec.nodeName",
	} {
		got, err := ExtractFieldPathAsString(pod, path)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("metadata.labels['a']")
	f.Fuzz(func(t *testing.T, text string) {
		path, key, ok := SplitMaybeSubscriptedPath(text)
		if ok && path+"['"+key+"']" != text || !ok && path != text {
			t.Errorf("%q: %q %q %t", text, path, key, ok)
		}
	})
}

func TestResourceValue(t *testing.T) {
	q := resource.MustParse
	limits := func(cpu, memory string) v1.ResourceRequirements {
		return v1.ResourceRequirements{
			Limits:   v1.ResourceList{v1.ResourceCPU: q(cpu), v1.ResourceMemory: q(memory), "hugepages-2Mi": q("4Mi")},
			Requests: v1.ResourceList{v1.ResourceEphemeralStorage: q("1500")},
		}
	}
	pod := &v1.Pod{Spec: v1.PodSpec{
		Containers:     []v1.Container{{Name: "c", Resources: limits("1100m", "65Mi")}, {Name: "none"}},
		InitContainers: []v1.Container{{Name: "init", Resources: limits("3", "0")}},
	}}
	allocatable := v1.ResourceList{v1.ResourceCPU: q("1930m"), v1.ResourceMemory: q("1Gi")}
	podLimits := &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: q("512Mi")}}
	for _, tc := range []struct {
		resource, container, divisor string
		pod                          *v1.ResourceRequirements
		want                         string
	}{
		{"limits.cpu", "c", "0", nil, "2"}, {"limits.cpu", "c", "1m", nil, "1100"}, {"limits.memory", "c", "1Mi", nil, "65"}, {"limits.memory", "c", "10Mi", nil, "7"},
		{"limits.cpu", "none", "1m", nil, "1930"}, {"limits.memory", "none", "1Mi", nil, "1024"}, {"limits.memory", "none", "1Mi", podLimits, "512"},
		{"limits.memory", "init", "1Mi", nil, "1024"}, {"limits.cpu", "init", "0", nil, "3"}, {"requests.cpu", "c", "0", nil, "0"},
		{"requests.ephemeral-storage", "c", "1k", nil, "2"}, {"limits.hugepages-2Mi", "c", "1Mi", nil, "4"}, {"limits.hugepages-2Mi", "none", "1Mi", nil, "0"},
		{"limits.cpu", "gone", "0", nil, "error: container gone not found"}, {"cpu", "c", "0", nil, "error: unsupported container resource : cpu"},
	} {
		p := *pod
		p.Spec.Resources = tc.pod
		got, err := ResourceValue(&v1.ResourceFieldSelector{Resource: tc.resource, ContainerName: tc.container, Divisor: q(tc.divisor)}, &p, &p.Spec.Containers[0], allocatable)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tc.want {
			t.Errorf("%s of %s by %s: %s, want %s", tc.resource, tc.container, tc.divisor, got, tc.want)
		}
	}
}
