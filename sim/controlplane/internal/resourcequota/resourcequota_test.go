package resourcequota

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestFrees: which updates have quotas counted anew before the next resync.
func TestFrees(t *testing.T) {
	pod := func(phase v1.PodPhase) apiserver.Object { return &v1.Pod{Status: v1.PodStatus{Phase: phase}} }
	for _, tt := range []struct {
		name    string
		was, is apiserver.Object
		sub     string
		want    bool
	}{
		{"a pod starts", pod(v1.PodPending), pod(v1.PodRunning), "status", false},
		{"one that runs changes", pod(v1.PodRunning), pod(v1.PodRunning), "status", false},
		{"one succeeds", pod(v1.PodRunning), pod(v1.PodSucceeded), "status", true},
		{"one fails", pod(v1.PodPending), pod(v1.PodFailed), "status", true},
		{"one that has ended changes", pod(v1.PodSucceeded), pod(v1.PodSucceeded), "status", false},
		{"one is resized", pod(v1.PodRunning), pod(v1.PodRunning), "resize", true},
		{"a service changes", &v1.Service{}, &v1.Service{}, "", true},
		{"a config map does", &v1.ConfigMap{}, &v1.ConfigMap{}, "", false},
	} {
		if got := frees(apiserver.Change{Old: tt.was, New: tt.is, Subresource: tt.sub}); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
