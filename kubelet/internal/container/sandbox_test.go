package container

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	ready    = runtimeapi.PodSandboxState_SANDBOX_READY
	notReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

func sandbox(state runtimeapi.PodSandboxState, attempt uint32) *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: fmt.Sprintf("s%d", attempt), State: state, Metadata: &runtimeapi.PodSandboxMetadata{Attempt: attempt},
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"},
	}
}

func TestSandboxChanged(t *testing.T) {
	pod := &v1.Pod{}
	host := &v1.Pod{}
	host.Spec.HostNetwork = true
	onHost := sandbox(ready, 2)
	onHost.Network = nil
	onHost.Linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
	noIP := sandbox(ready, 3)
	noIP.Network.Ip = ""
	noNetwork := sandbox(ready, 3)
	noNetwork.Network = nil
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		list    []*runtimeapi.PodSandboxStatus
		changed bool
		attempt uint32
		id      string
	}{
		{"none", pod, nil, true, 0, ""},
		{"two ready", pod, []*runtimeapi.PodSandboxStatus{sandbox(ready, 4), sandbox(ready, 3)}, true, 5, "s4"},
		{"newest not ready", pod, []*runtimeapi.PodSandboxStatus{sandbox(notReady, 4), sandbox(ready, 3)}, true, 5, "s4"},
		{"another network", pod, []*runtimeapi.PodSandboxStatus{onHost}, true, 3, ""},
		{"another network for the host", host, []*runtimeapi.PodSandboxStatus{sandbox(ready, 1)}, true, 2, ""},
		{"no IP", pod, []*runtimeapi.PodSandboxStatus{noIP}, true, 4, "s3"},
		{"no network told", pod, []*runtimeapi.PodSandboxStatus{noNetwork}, false, 3, "s3"},
		{"host network", host, []*runtimeapi.PodSandboxStatus{onHost}, false, 2, "s2"},
		{"good", pod, []*runtimeapi.PodSandboxStatus{sandbox(ready, 4), sandbox(notReady, 3)}, false, 4, "s4"},
	} {
		changed, attempt, id := SandboxChanged(tc.pod, &PodStatus{SandboxStatuses: tc.list})
		if changed != tc.changed || attempt != tc.attempt || id != tc.id {
			t.Errorf("%s: %v %d %q", tc.name, changed, attempt, id)
		}
	}
}
