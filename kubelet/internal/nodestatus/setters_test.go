package nodestatus

import (
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStatusChanged: each field of a status counts, also one that the API gets
// some day; heartbeats and other memory with the same content don't.
func TestStatusChanged(t *testing.T) {
	q := resource.MustParse("1")
	list := v1.ResourceList{"cpu": q}
	old := metav1.NewTime(time.Unix(1, 0))
	full := v1.NodeStatus{
		Capacity: list, Allocatable: list, Phase: v1.NodeRunning,
		Conditions:      []v1.NodeCondition{{Type: v1.NodeReady, LastHeartbeatTime: old}},
		Addresses:       []v1.NodeAddress{{Address: "a"}},
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 1}},
		NodeInfo:        v1.NodeSystemInfo{BootID: "b", Swap: &v1.NodeSwapStatus{Capacity: new(int64)}},
		Images:          []v1.ContainerImage{{Names: []string{"i"}}},
		VolumesInUse:    []v1.UniqueVolumeName{"v"}, VolumesAttached: []v1.AttachedVolume{{Name: "v"}},
		Config:          &v1.NodeConfigStatus{Error: "e"},
		RuntimeHandlers: []v1.NodeRuntimeHandler{{Name: "h"}},
		Features:        &v1.NodeFeatures{SupplementalGroupsPolicy: new(bool)}, DeclaredFeatures: []string{"f"},
	}
	same := full.DeepCopy()
	same.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(2, 0))
	if statusChanged(&full, same) || statusChanged(same, &full) {
		t.Error("a copy with another heartbeat has changed")
	}
	typ := reflect.TypeOf(full)
	for i := range typ.NumField() {
		less := full
		field := reflect.ValueOf(&less).Elem().Field(i)
		if field.IsZero() {
			t.Errorf("%s is not set: give it a value here, and have statusChanged compare it", typ.Field(i).Name)
		}
		field.SetZero()
		if !statusChanged(&full, &less) || !statusChanged(&less, &full) {
			t.Errorf("%s does not count", typ.Field(i).Name)
		}
	}
}

// TestAllocatable: extended resources of others count in full, and what says the
// same already stays the same map.
func TestAllocatable(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		out := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	for _, tc := range []struct {
		name                     string
		capacity, own, old, want v1.ResourceList
		kept, shared             bool // the outcome is old, own itself
	}{
		{"new", list("cpu", "4"), list("cpu", "3"), nil, list("cpu", "3"), false, true},
		{"unchanged", list("cpu", "4"), list("cpu", "3"), list("cpu", "3"), list("cpu", "3"), true, false},
		{"other", list("cpu", "4"), list("cpu", "3"), list("cpu", "2"), list("cpu", "3"), false, true},
		{"too much", list("cpu", "4"), list("cpu", "3"), list("cpu", "3", "x/y", "1"), list("cpu", "3"), false, true},
		{"extended", list("cpu", "4", "x/y", "2"), list("cpu", "3"), list("cpu", "3"), list("cpu", "3", "x/y", "2"), false, false},
		{"extended, unchanged", list("cpu", "4", "x/y", "2"), list("cpu", "3"), list("cpu", "3", "x/y", "2"), list("cpu", "3", "x/y", "2"), true, false},
		{"extended, other", list("cpu", "4", "x/y", "2"), list("cpu", "3"), list("cpu", "3", "x/y", "1"), list("cpu", "3", "x/y", "2"), false, false},
	} {
		got := allocatable(tc.capacity, tc.own, tc.old)
		if !sameResources(got, tc.want) {
			t.Errorf("%s: got %v", tc.name, got)
		}
		is := func(m v1.ResourceList) bool { return reflect.ValueOf(got).Pointer() == reflect.ValueOf(m).Pointer() }
		if is(tc.old) != tc.kept || is(tc.own) != tc.shared {
			t.Errorf("%s: kept %v, shared %v", tc.name, is(tc.old), is(tc.own))
		}
	}
}
