package kuberuntime

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// noOptions is shared and never written to.
var noOptions = &kubecontainer.RunContainerOptions{}

// runOptions are what the helper adds to a container.
func (m *Manager) runOptions(ctx context.Context, s *start) (*kubecontainer.RunContainerOptions, error) {
	if m.o.Helper == nil {
		return noOptions, nil
	}
	return m.o.Helper.GenerateRunContainerOptions(ctx, s.pod, s.c, s.podIPs, m.usesFiles(s))
}

// filesKey decides what usesFiles says of a container.
type filesKey struct {
	c        *v1.Container
	image    *runtimeapi.ImageSpec
	restarts int
}

// usesFiles reports whether the container needs the files that are made for it.
// The answer is the runtime's, who knows what runs in the container; the
// message that it is asked with is shared by replicas.
func (m *Manager) usesFiles(s *start) bool {
	if m.o.UsesFiles == nil {
		return true
	}
	k := filesKey{s.c, m.shared.imageSpec(s.imageRef, s.c.Image), s.restartCount}
	config, ok := m.shared.files.get(k)
	if !ok {
		config = &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: s.c.Name, Attempt: uint32(s.restartCount)},
			Image:    k.image, Command: s.c.Command, Args: s.c.Args,
		}
		m.shared.files.put(k, config)
	}
	return m.o.UsesFiles(s.sandboxID, config)
}

// runtimeHandler is the handler of the pod's RuntimeClass.
func (m *Manager) runtimeHandler(ctx context.Context, pod *v1.Pod) (string, error) {
	if m.o.RuntimeClasses == nil {
		return "", nil
	}
	return m.o.RuntimeClasses.LookupRuntimeHandler(ctx, pod.Spec.RuntimeClassName)
}

// userNamespace is the user namespace of a pod that does not have its host's.
func (m *Manager) userNamespace(ctx context.Context, pod *v1.Pod) (*runtimeapi.UserNamespace, error) {
	if pod.Spec.HostUsers == nil || *pod.Spec.HostUsers {
		return nil, nil
	}
	handler, err := m.runtimeHandler(ctx, pod)
	if err != nil {
		return nil, err
	}
	if m.o.Helper == nil {
		return nil, fmt.Errorf("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	}
	return m.o.Helper.GetOrCreateUserNamespaceMappings(pod, handler)
}
