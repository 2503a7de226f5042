package sim_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim"
)

// TestSampling: who is evicted first is decided by what was in the pods' cgroups
// when they were looked at last. b uses more than a, and was made 11 s before the
// pass; a kubelet that starts looks at once, and again later.
func TestSampling(t *testing.T) {
	second := fakecri.Range{Min: 12 * time.Second, Max: 12 * time.Second}
	for _, tc := range []struct {
		name     string
		sampling sim.Sampling
		restart  bool
		growth   time.Duration // until which a uses next to nothing
		want     string
	}{
		{"counted when asked", sim.Sampling{}, false, 0, "b"},
		{"not looked at again yet", sim.Sampling{First: second, Then: second}, false, 0, "a"},
		{"looked at by a new kubelet only", sim.Sampling{First: second, Then: second}, true, 20 * time.Second, "b"},
		{"looked at before it grew", sim.Sampling{First: fakecri.Range{Min: 8 * time.Second, Max: 8 * time.Second}, Then: second}, false, 12 * time.Second, "b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := sim.New(sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			big := usage.Constant(300 * mib)
			if tc.growth > 0 { // to the most of all, unseen
				if big, err = usage.Steps([]usage.Point{{At: 0, Value: mib}, {At: tc.growth, Value: 700 * mib}}); err != nil {
					t.Fatal(err)
				}
			}
			machine, err := usage.Steps([]usage.Point{{At: 0, Value: 0}, {At: 14 * time.Second, Value: 600 * mib}})
			if err != nil {
				t.Fatal(err)
			}
			n, err := c.AddNode(sim.NodeOptions{
				Name: "w", Capacity: v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi")}, Usage: sim.MachineUsage{Memory: machine}, Sampling: tc.sampling,
				Kubelet: &kubeletconfig.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "700Mi"}},
				Runtime: fakecri.Options{Programs: programs(map[string]*usage.Curve{"a": big, "b": usage.Constant(500 * mib)})},
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, at := range map[string]time.Duration{"a": time.Second, "b": 9 * time.Second} {
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{NodeName: "w", Containers: []v1.Container{{Name: "app", Image: "app:1", Command: []string{"/bin/server"}}}}}
				// A BestEffort pod would be refused by a kubelet that starts under pressure.
				pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}
				c.At(at, func() {
					if _, err := c.API().Create(pod); err != nil {
						panic(err)
					}
				})
			}
			if tc.restart {
				n.At(16*time.Second, func() { n.StopKubelet(); n.StartKubelet() })
			}
			if err := c.RunUntil(30 * time.Second); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range c.API().Events() {
				if e.Reason == "Evicted" {
					got += e.InvolvedObject.Name
				}
			}
			if got != tc.want {
				t.Errorf("evicted %q, want %q", got, tc.want)
			}
		})
	}
}
