package container

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// NetworkMode is the network namespace that a pod's sandbox is to have
// (upstream kuberuntime/util.NetworkNamespaceForPod).
func NetworkMode(pod *v1.Pod) runtimeapi.NamespaceMode {
	if pod.Spec.HostNetwork {
		return runtimeapi.NamespaceMode_NODE
	}
	return runtimeapi.NamespaceMode_POD
}

// SandboxChanged decides whether the pod needs a new sandbox: with which
// attempt number, and which sandbox it replaces or keeps. Two ready sandboxes
// are one too many, and nobody could say which one the containers are to
// share. A sandbox in another network is no predecessor: its ID is not returned
// (upstream kuberuntime/util.PodSandboxChanged). The pod condition
// PodReadyToStartContainers follows from it, too.
func SandboxChanged(pod *v1.Pod, status *PodStatus) (changed bool, attempt uint32, id string) {
	if len(status.SandboxStatuses) == 0 {
		return true, 0, ""
	}
	ready := lists.Count(status.SandboxStatuses, func(s *runtimeapi.PodSandboxStatus) bool {
		return s.State == runtimeapi.PodSandboxState_SANDBOX_READY
	})
	newest := status.SandboxStatuses[0]
	last := newest.GetMetadata().GetAttempt()
	if ready > 1 || newest.State != runtimeapi.PodSandboxState_SANDBOX_READY {
		return true, last + 1, newest.Id
	}
	if newest.GetLinux().GetNamespaces().GetOptions().GetNetwork() != NetworkMode(pod) {
		return true, last + 1, ""
	}
	if !pod.Spec.HostNetwork && newest.Network != nil && newest.Network.Ip == "" {
		return true, last + 1, newest.Id
	}
	return false, last, newest.Id
}
