package store

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

func TestGraceDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given *int64
		want  int64
	}{{nil, 30}, {ptr(int64(0)), 0}, {ptr(int64(7)), 7}, {ptr(int64(-1)), 1}} {
		pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: c.given}}
		podspec.SetDefaults(pod)
		if got := *pod.Spec.TerminationGracePeriodSeconds; got != c.want {
			t.Errorf("%v becomes %d, want %d", c.given, got, c.want)
		}
	}
}
