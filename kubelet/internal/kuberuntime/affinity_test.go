package kuberuntime

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/security"
)

type fakeAffinity struct{}

func (fakeAffinity) CPUs(_ *v1.Pod, c *v1.Container) string { return "cpus of " + c.Name }
func (fakeAffinity) Nodes(*v1.Pod, *v1.Container) string    { return "1" }
func (fakeAffinity) NoQuota(_ *v1.Pod, name string) bool    { return name != "shared" }
func (fakeAffinity) Created(*v1.Pod, *v1.Container)         {}

// What an Affinity says is in the configs; a quota is -1 where the limit is not
// enforced, unless there are none at all.
func TestAffinity(t *testing.T) {
	r := v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "own", Resources: r}, {Name: "shared", Resources: r}}}}
	for _, tc := range []struct {
		noCFS                 bool
		container             int
		cpus                  string
		quota, period, forPod int64
	}{
		{false, 0, "cpus of own", -1, 100000, -1},
		{false, 1, "cpus of shared", 200000, 100000, -1},
		{true, 0, "cpus of own", 0, 0, 0},
	} {
		m := &Manager{o: Options{Affinity: fakeAffinity{}}, resources: resources.New(resources.Options{NoCPUQuota: tc.noCFS})}
		out, err := m.linuxContainerConfig(context.Background(), pod, &pod.Spec.Containers[tc.container], security.User{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Resources; got.CpusetCpus != tc.cpus || got.CpusetMems != "1" || got.CpuQuota != tc.quota || got.CpuPeriod != tc.period {
			t.Errorf("%+v: got %v", tc, got)
		}
		if got := m.sandboxResources(pod).CpuQuota; got != tc.forPod {
			t.Errorf("%+v: the pod's quota is %d", tc, got)
		}
	}
}
