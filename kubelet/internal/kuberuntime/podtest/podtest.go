// Package podtest makes pods, and what runtimes report of them, for the tests
// of kuberuntime and its sub-packages.
package podtest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// Pod returns the pod ns/p with UID u, init containers i0, i1, ... and regular
// ones c0, c1, ...
func Pod(policy v1.RestartPolicy, inits, regular int) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	pod.Spec.RestartPolicy = policy
	for i := range inits {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: fmt.Sprintf("i%d", i), Image: "img"})
	}
	for i := range regular {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Image: "img"})
	}
	return pod
}

// Sidecar makes the i-th init container of a pod a sidecar.
func Sidecar(pod *v1.Pod, i int) *v1.Pod {
	pod.Spec.InitContainers[i].RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return pod
}

// The states of sandboxes.
const (
	Ready    = runtimeapi.PodSandboxState_SANDBOX_READY
	NotReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

// Sandbox returns a sandbox with an address; its ID is "s" and the attempt.
func Sandbox(state runtimeapi.PodSandboxState, attempt uint32) *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: fmt.Sprintf("s%d", attempt), State: state, Metadata: &runtimeapi.PodSandboxMetadata{Attempt: attempt},
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"},
	}
}

// Container returns the status of a container of a Pod; its ID is its name.
func Container(name string, state kubecontainer.State, code int32) *kubecontainer.Status {
	return &kubecontainer.Status{ID: name, Name: name, State: state, ExitCode: code, Hash: kubecontainer.HashContainer(&v1.Container{Name: name, Image: "img"})}
}

// Run is a Container that runs.
func Run(name string) *kubecontainer.Status { return Container(name, kubecontainer.StateRunning, 0) }

// Exit is a Container that has ended.
func Exit(name string, code int32) *kubecontainer.Status {
	return Container(name, kubecontainer.StateExited, code)
}

// Status returns the status of a Pod.
func Status(sandboxes []*runtimeapi.PodSandboxStatus, containers ...*kubecontainer.Status) *kubecontainer.PodStatus {
	return &kubecontainer.PodStatus{ID: "u", Name: "p", Namespace: "ns", SandboxStatuses: sandboxes, ContainerStatuses: containers}
}

// InReady returns the status of a Pod whose first sandbox is ready.
func InReady(containers ...*kubecontainer.Status) *kubecontainer.PodStatus {
	return Status([]*runtimeapi.PodSandboxStatus{Sandbox(Ready, 0)}, containers...)
}

// Resources reads "cpuRequest/cpuLimit memRequest/memLimit"; "-" is none.
func Resources(s string) v1.ResourceRequirements {
	r := v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	for i, part := range strings.Fields(s) {
		name := [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}[i]
		request, limit, _ := strings.Cut(part, "/")
		if request != "-" {
			r.Requests[name] = resource.MustParse(request)
		}
		if limit != "-" {
			r.Limits[name] = resource.MustParse(limit)
		}
	}
	return r
}

// Sized returns a pod with the containers a and b, those that have Resources.
func Sized(resources map[string]string) *v1.Pod {
	p := Pod(v1.RestartPolicyAlways, 0, 0)
	for _, name := range []string{"a", "b"} {
		if r, ok := resources[name]; ok {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name, Image: "i", Resources: Resources(r)})
		}
	}
	return p
}

// Running returns the status of a pod whose regular containers all run.
func Running(p *v1.Pod, h *kubecontainer.Hasher) *kubecontainer.PodStatus {
	st := &kubecontainer.PodStatus{ID: p.UID, SandboxStatuses: []*runtimeapi.PodSandboxStatus{{
		Id: "box", Metadata: &runtimeapi.PodSandboxMetadata{}, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"}}}}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		st.ContainerStatuses = append(st.ContainerStatuses, &kubecontainer.Status{
			ID: "id-" + c.Name, Name: c.Name, State: kubecontainer.StateRunning, Hash: h.Hash(c), PodSandboxID: "box"})
	}
	return st
}
