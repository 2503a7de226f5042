package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Which class stands behind a resource that several name, as upstream's cache has it: the younger, or
// the one whose name comes first, whatever the order; the one that comes too late has no name of its own.
func TestClassMapping(t *testing.T) {
	class := func(name, resource string, age time.Duration) *resourcev1.DeviceClass {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
		if resource != "" {
			c.Spec.ExtendedResourceName = &resource
		}
		return c
	}
	const gpu = "example.com/gpu"
	old, young, twin := class("old", gpu, time.Hour), class("young", gpu, 0), class("a-twin", gpu, 0)
	for _, tc := range []struct {
		name     string
		do       func(m classMapping)
		gpu      string
		implicit string
	}{
		{"one", func(m classMapping) { m.set(old, nil) }, "old", "old"},
		{"a younger one", func(m classMapping) { m.set(old, nil); m.set(young, nil) }, "young", "old young"},
		{"an older one", func(m classMapping) { m.set(young, nil); m.set(old, nil) }, "young", "young"},
		{"as old, by name", func(m classMapping) { m.set(young, nil); m.set(twin, nil) }, "a-twin", "a-twin young"},
		{"it takes another name", func(m classMapping) { m.set(old, nil); m.set(class("old", "", time.Hour), old) }, "", "old"},
		{"it goes, and takes the other's name along", func(m classMapping) { m.set(old, nil); m.set(young, nil); m.remove(old) }, "", "young"},
	} {
		m := classMapping{}
		tc.do(m)
		is := ""
		if c := m[gpu]; c != nil {
			is = c.Name
		}
		var implicit []string
		for _, n := range []string{"a-twin", "old", "young"} {
			if m[v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+n)] != nil {
				implicit = append(implicit, n)
			}
		}
		if got := strings.Join(implicit, " "); is != tc.gpu || got != tc.implicit {
			t.Errorf("%s: %q, by themselves %q; want %q, %q", tc.name, is, got, tc.gpu, tc.implicit)
		}
	}
}

// Requests and mappings as kube-scheduler v1.36.3 made them of the same pods.
func TestRequestsFor(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	container := func(name string, n int, sidecar bool) v1.Container {
		c := v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}
		if n > 0 {
			c.Resources.Requests["example.com/gpu"] = *resource.NewQuantity(int64(n), resource.DecimalSI)
		}
		if sidecar {
			c.RestartPolicy = &always
		}
		return c
	}
	for _, tc := range []struct {
		name     string
		init     []v1.Container
		main     []v1.Container
		requests string
		mappings string
	}{
		{"one", nil, []v1.Container{container("m", 2, false)}, "container-0-request-1=2", "m:container-0-request-1"},
		{"none", nil, []v1.Container{container("m", 0, false)}, "", ""},
		{"an init container uses what stays", []v1.Container{container("i", 1, false)}, []v1.Container{container("m", 1, false)},
			"container-1-request-1=1", "m:container-1-request-1 i:container-1-request-1"},
		{"sidecars and two init containers", []v1.Container{container("warm", 2, false), container("side", 1, true), container("warm2", 3, false)},
			[]v1.Container{container("main", 1, false)},
			"container-1-request-1=1 container-2-request-1=2 container-3-request-1=1",
			"side:container-1-request-1 main:container-3-request-1 warm:container-1-request-1 warm:container-3-request-1 " +
				"warm2:container-3-request-1 warm2:container-2-request-1"},
		{"init containers share the most of what they need", []v1.Container{container("a", 2, false), container("b", 3, false)}, []v1.Container{container("m", 0, false)},
			"container-1-request-1=3", "a:container-1-request-1 b:container-1-request-1"},
	} {
		requests, mappings := requestsFor(&v1.Pod{Spec: v1.PodSpec{InitContainers: tc.init, Containers: tc.main}}, "example.com/gpu", "gpu")
		var r, m []string
		for _, x := range requests {
			r = append(r, fmt.Sprintf("%s=%d", x.Name, x.Exactly.Count))
		}
		for _, x := range mappings {
			m = append(m, x.ContainerName+":"+x.RequestName)
		}
		slices.Sort(r)
		if got := strings.Join(r, " "); got != tc.requests {
			t.Errorf("%s: requests %s, want %s", tc.name, got, tc.requests)
		}
		if got := strings.Join(m, " "); got != tc.mappings {
			t.Errorf("%s: mappings %s, want %s", tc.name, got, tc.mappings)
		}
	}
}

// TestLeftClaim: the claim of extended resources that a failed try has left, because its deletion
// failed, too, is deleted at the next try. The one after that finds a node.
func TestLeftClaim(t *testing.T) {
	r := newRig(t)
	r.node("a")
	const gpu = "example.com/gpu"
	for _, o := range []apiserver.Object{
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new(gpu)}},
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a-gpu"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: new("a"), Pool: resourcev1.ResourcePool{Name: "a", ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu-0"}},
		}},
	} {
		if _, err := r.srv.Create(o); err != nil {
			t.Fatal(err)
		}
	}
	heal := r.srv.AddFault(apiserver.Fault{Verb: "update", Resource: "resourceclaims", Refuse: true})
	r.pod("p", requests(gpu, "1"))
	r.run(500 * time.Millisecond)
	heal()
	claims := func() int {
		return len(apiserver.Objects[*resourcev1.ResourceClaim](r.s.store, apiserver.KindResourceClaim))
	}
	if n := claims(); n != 1 {
		t.Fatalf("the first try has left %d claims", n)
	}
	r.run(5 * time.Second)
	if ev := r.event("p", "FailedScheduling"); ev == nil || !strings.HasPrefix(ev.Message, "0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of ResourceClaim completed, ") {
		t.Errorf("event %v", ev)
	}
	if n := claims(); n != 0 {
		t.Errorf("the second try has left %d claims", n)
	}
	r.run(maxInUnschedulable + flushInterval)
	if n := r.nodeOf("p"); n != "a" {
		t.Errorf("on %q", n)
	}
}
