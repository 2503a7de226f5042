package security

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

func TestVerifyNonRoot(t *testing.T) {
	for _, tc := range []struct {
		uid  *int64
		user User
		want string
	}{
		{nil, User{UID: 5}, ""},
		{new(int64(5)), User{}, ""},
		{new(int64(0)), User{}, `container's runAsUser breaks non-root policy (pod: "p_ns(u)", container: c0)`},
		{nil, User{}, `container has runAsNonRoot and image will run as root (pod: "p_ns(u)", container: c0)`},
		{nil, User{Name: "www"}, `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root (pod: "p_ns(u)", container: c0)`},
	} {
		pod := podtest.Pod(v1.RestartPolicyAlways, 0, 1)
		pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{RunAsNonRoot: new(true), RunAsUser: tc.uid}
		err := VerifyNonRoot(pod, &pod.Spec.Containers[0], tc.user)
		if got := errText(err); got != tc.want {
			t.Errorf("%s", got)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
