package sim

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// TestModels: nodes made alike share what follows from that, others nothing.
func TestModels(t *testing.T) {
	c, err := New(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	add := func(o NodeOptions) *Node {
		t.Helper()
		n, err := c.AddNode(o)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := add(NodeOptions{Name: "first", Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: 50}})
	for _, tc := range []struct {
		name string
		o    NodeOptions
		same bool
	}{
		{"alike", NodeOptions{Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: 50}, Labels: map[string]string{"a": "b"}}, true},
		{"pods", NodeOptions{Capacity: v1.ResourceList{v1.ResourcePods: resource.MustParse("50")}}, false},
		{"cpu", NodeOptions{Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: 50}, Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("8")}}, false},
		{"disk", NodeOptions{Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: 50}, Filesystems: Filesystems{Root: &Filesystem{Capacity: 1 << 30}}}, false},
		{"config", NodeOptions{Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: 51}}, false},
		{"taints", NodeOptions{Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: 50}, Taints: []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}}, false},
	} {
		tc.o.Name = tc.name
		n := add(tc.o)
		shared := n.config == first.config && n.settings == first.settings &&
			reflect.ValueOf(n.machine.capacity).Pointer() == reflect.ValueOf(first.machine.capacity).Pointer()
		if n.settings == nil || shared != tc.same || !shared && n.settings == first.settings {
			t.Errorf("%s: shared %v", tc.name, shared)
		}
	}
	for range maxModels {
		add(NodeOptions{Name: "x" + string(rune('a'+len(c.nodes))), Kubelet: &kubeletconfig.KubeletConfiguration{MaxPods: int32(100 + len(c.nodes))}})
	}
	if len(c.models) != maxModels {
		t.Errorf("%d models are remembered", len(c.models))
	}
}
