package kuberuntime

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

// TestOOMScoreWithPodLevelRequest: what a pod requests beyond its containers is
// shared out evenly.
func TestOOMScoreWithPodLevelRequest(t *testing.T) {
	n := &NodeConfig{MemoryCapacity: 8 << 30}
	pod := podtest.Sized(map[string]string{"a": "-/- 1Gi/-", "b": "-/- -/-"})
	for _, tc := range []struct {
		request string
		a, b    int64
	}{
		{"", 875, 999},
		{"4Gi", 688, 813},
		{"1Gi", 875, 999},
	} {
		pod.Spec.Resources = nil
		if tc.request != "" {
			r := podtest.Resources("-/- " + tc.request + "/-")
			pod.Spec.Resources = &r
		}
		pod.Status.QOSClass = v1.PodQOSBurstable
		if a, b := n.oomScore(pod, &pod.Spec.Containers[0]), n.oomScore(pod, &pod.Spec.Containers[1]); a != tc.a || b != tc.b {
			t.Errorf("%q: %d, %d", tc.request, a, b)
		}
	}
}
