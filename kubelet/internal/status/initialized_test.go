package status

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestHasBeenInitialized: which statuses of the API's say that a pod's init containers are done
// (hasPodInitialized of upstream's status_manager.go).
func TestHasBeenInitialized(t *testing.T) {
	// statuses reads "a:waiting b:running": names and states, of which "0" and "1" are exit codes,
	// "was0" is one that waits and had that exit code, "started" one that runs and has started.
	statuses := func(text string) (out []v1.ContainerStatus) {
		for f := range strings.FieldsSeq(text) {
			name, state, _ := strings.Cut(f, ":")
			s := v1.ContainerStatus{Name: name}
			ended := func(code int32) *v1.ContainerStateTerminated { return &v1.ContainerStateTerminated{ExitCode: code} }
			switch state {
			case "waiting":
				s.State.Waiting = &v1.ContainerStateWaiting{}
			case "running":
				s.State.Running, s.Started = &v1.ContainerStateRunning{}, ptr.To(false)
			case "started":
				s.State.Running, s.Started = &v1.ContainerStateRunning{}, ptr.To(true)
			case "0", "1":
				s.State.Terminated = ended(int32(state[0] - '0'))
			case "was0", "was1":
				s.State.Waiting, s.LastTerminationState.Terminated = &v1.ContainerStateWaiting{}, ended(int32(state[3]-'0'))
			}
			out = append(out, s)
		}
		return out
	}
	for _, tc := range []struct {
		spec       string // init containers; sidecars end in +
		init, main string
		want       bool
	}{
		{"", "", "app:waiting", true},
		{"a", "", "app:waiting", false},
		{"a", "a:waiting", "app:waiting", false},
		{"a", "a:running", "app:waiting", false},
		{"a", "a:1", "app:waiting", false},
		{"a", "a:was1", "app:waiting", false},
		{"a", "a:0", "app:waiting", true},
		{"a", "a:was0", "app:waiting", true},
		{"a", "a:waiting", "app:running", true}, // it was reached once
		{"a", "a:waiting", "app:was1", true},
		{"a", "a:waiting", "app:0", true},
		{"a b", "a:0 b:waiting", "app:waiting", false},
		{"a b", "a:1 b:0", "app:waiting", true}, // the last one decides
		{"a+", "a:running", "app:waiting", false},
		{"a+", "a:started", "app:waiting", true},
		{"a+", "a:0", "app:waiting", false}, // a sidecar's end is none
		{"a+", "a:was0", "app:waiting", false},
		{"a b+", "a:0 b:started", "app:waiting", true},
		{"a+ b", "a:started b:running", "app:waiting", false},
		{"a+ b", "a:started b:0", "app:waiting", true},
		{"a", "b:0", "app:waiting", false}, // a status of something else
		{"a", "a:0 b:0", "app:waiting", false},
	} {
		pod := &v1.Pod{}
		for name := range strings.FieldsSeq(tc.spec) {
			c := v1.Container{Name: strings.TrimSuffix(name, "+")}
			if c.Name != name {
				c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = statuses(tc.init), statuses(tc.main)
		if got := hasBeenInitialized(pod); got != tc.want {
			t.Errorf("%q with %q and %q: %v", tc.spec, tc.init, tc.main, got)
		}
	}
}
