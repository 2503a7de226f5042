package podautoscaler

import (
	"testing"

	"github.com/drydock-sim/drydock/sim/apiserver"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

func TestScaleOf(t *testing.T) {
	tests := []struct{ apiVersion, kind, want, err string }{
		{"apps/v1", "Deployment", "deployments/scale", ""},
		{"apps/v1beta2", "StatefulSet", "statefulsets/scale", ""}, // the group decides
		{"apps/v1", "ReplicaSet", "replicasets/scale", ""},
		{"extensions/v1beta1", "Deployment", "", `no matches for kind "Deployment" in group "extensions"`},
		{"", "Deployment", "", `no matches for kind "Deployment" in group ""`},
		{"apps/v1", "Widget", "", `no matches for kind "Widget" in group "apps"`},
		{"apps/v1", "DaemonSet", "", "the server could not find the requested resource"},
		{"v1", "Pod", "", "the server could not find the requested resource"},
		{"a/b/c", "Deployment", "", "unexpected GroupVersion string: a/b/c"},
	}
	for _, tt := range tests {
		got, err := scaleOf(apiserver.NewKinds(), autoscalingv2.CrossVersionObjectReference{APIVersion: tt.apiVersion, Kind: tt.kind, Name: "x"})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != tt.want || said != tt.err {
			t.Errorf("%s %s: %q, %q; want %q, %q", tt.apiVersion, tt.kind, got, said, tt.want, tt.err)
		}
	}
}
