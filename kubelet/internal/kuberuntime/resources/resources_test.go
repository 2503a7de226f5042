package resources

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

// TestOOMScoreWithPodLevelRequest: what a pod requests beyond its containers is
// shared out evenly.
func TestOOMScoreWithPodLevelRequest(t *testing.T) {
	n := New(Options{MemoryCapacity: 8 << 30})
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

func list(cpu, memory string) v1.ResourceList {
	out := v1.ResourceList{}
	if cpu != "" {
		out[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

func TestContainerResources(t *testing.T) {
	n := New(Options{MemoryCapacity: 8 << 30})
	for _, tc := range []struct {
		name                 string
		requests, limits     v1.ResourceList
		shares, quota, bytes int64
		oom                  int64
	}{
		{"none", nil, nil, 2, 0, 0, 1000},
		{"guaranteed", list("500m", "128Mi"), list("500m", "128Mi"), 512, 50000, 134217728, -997},
		{"limits only (the API would set the requests)", nil, list("500m", "128Mi"), 512, 50000, 134217728, 999},
		{"burstable", list("100m", "2Gi"), nil, 102, 0, 0, 750},
		{"burstable, tiny request", list("1m", "1Mi"), list("", "1Gi"), 2, 0, 1 << 30, 999},
		{"burstable, nearly all of it", list("", "8Gi"), nil, 2, 0, 0, 3},
		{"tiny limit", list("1m", ""), list("1m", ""), 2, 1000, 0, 999},
	} {
		pod := podtest.Pod(v1.RestartPolicyAlways, 0, 1)
		c := &pod.Spec.Containers[0]
		c.Resources = v1.ResourceRequirements{Requests: tc.requests, Limits: tc.limits}
		got := n.Container(pod, c)
		if got.CpuShares != tc.shares || got.CpuQuota != tc.quota || got.CpuPeriod != 100000 || got.MemoryLimitInBytes != tc.bytes || got.OomScoreAdj != tc.oom {
			t.Errorf("%s: shares %d, quota %d, period %d, memory %d, oom %d", tc.name, got.CpuShares, got.CpuQuota, got.CpuPeriod, got.MemoryLimitInBytes, got.OomScoreAdj)
		}
		if box := n.Pod(pod); box.CpuShares != tc.shares || box.MemoryLimitInBytes != tc.bytes || box.OomScoreAdj != 0 {
			t.Errorf("%s: sandbox shares %d, memory %d", tc.name, box.CpuShares, box.MemoryLimitInBytes)
		}
	}
	critical := podtest.Pod(v1.RestartPolicyAlways, 0, 1)
	critical.Spec.Priority, critical.Spec.PriorityClassName = new(int32(2000001000)), systemNodeCritical
	if got := n.oomScore(critical, &critical.Spec.Containers[0]); got != -997 {
		t.Errorf("node critical: %d", got)
	}
	side := podtest.Sidecar(podtest.Pod(v1.RestartPolicyAlways, 1, 2), 0)
	side.Spec.InitContainers[0].Resources.Requests = list("", "1Gi")
	side.Spec.Containers[0].Resources.Requests = list("", "4Gi")
	side.Spec.Containers[1].Resources.Requests = list("", "2Gi")
	if got := n.oomScore(side, &side.Spec.InitContainers[0]); got != 750 {
		t.Errorf("sidecar: %d", got)
	}
}
