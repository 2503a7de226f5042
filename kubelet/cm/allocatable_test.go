package cm

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

func TestAllocatable(t *testing.T) {
	for _, tc := range []struct {
		name     string
		capacity map[v1.ResourceName]string
		cfg      kubeletconfig.KubeletConfiguration
		want     map[v1.ResourceName]string
	}{
		{"reservations and default thresholds",
			map[v1.ResourceName]string{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"},
			kubeletconfig.KubeletConfiguration{
				KubeReserved: map[string]string{"cpu": "100m", "memory": "500Mi"}, SystemReserved: map[string]string{"memory": "300Mi"},
				EvictionHard: map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"},
			},
			map[v1.ResourceName]string{"cpu": "3900m", "memory": "7292Mi", "ephemeral-storage": "96636764000", "pods": "110"}},
		{"a percentage is a 32-bit fraction", // as recorded
			map[v1.ResourceName]string{"memory": "24684084Ki", "ephemeral-storage": "264212084Ki"},
			kubeletconfig.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "100Mi", "nodefs.available": "1%"}},
			map[v1.ResourceName]string{"memory": "24581684Ki", "ephemeral-storage": "267847642337"}},
		{"huge pages come off memory; never below 0",
			map[v1.ResourceName]string{"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "256Mi"},
			kubeletconfig.KubeletConfiguration{SystemReserved: map[string]string{"cpu": "2"}},
			map[v1.ResourceName]string{"cpu": "0", "memory": "768Mi", "hugepages-2Mi": "256Mi"}},
		{"reserved CPUs replace the reservations",
			map[v1.ResourceName]string{"cpu": "8"},
			kubeletconfig.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "1"}, ReservedSystemCPUs: "0-1,7"},
			map[v1.ResourceName]string{"cpu": "5"}},
	} {
		r, err := NewReservations(&tc.cfg)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		got := r.Allocatable(list(tc.capacity))
		for name, want := range list(tc.want) {
			if q := got[name]; q.Cmp(want) != 0 {
				t.Errorf("%s: %s is %v, want %v", tc.name, name, &q, &want)
			}
		}
	}
}

func list(m map[v1.ResourceName]string) v1.ResourceList {
	out := v1.ResourceList{}
	for k, v := range m {
		out[k] = resource.MustParse(v)
	}
	return out
}

func TestCheck(t *testing.T) {
	r, err := NewReservations(&kubeletconfig.KubeletConfiguration{SystemReserved: map[string]string{"cpu": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `invalid Node Allocatable configuration. Resource "cpu" has a reservation of 5 but capacity of 4. Expected capacity >= reservation.`
	if err := r.Check(list(map[v1.ResourceName]string{"cpu": "4"})); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
