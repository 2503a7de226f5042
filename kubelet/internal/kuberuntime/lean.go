package kuberuntime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// LeanRuntime is what a runtime in process can do beside the CRI: keep what
// replicas have in common once, and make a pod's own message of it only when
// somebody looks. The calls are those of the CRI in all else.
type LeanRuntime interface {
	RunPodSandboxOf(ctx context.Context, config leanSandbox, runtimeHandler string) (string, error)
	// CreateContainerOf adds the four labels of containerLabels.
	CreateContainerOf(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig) (string, error)
	// LeanPodSandboxStatus and LeanContainerStatus leave out labels, the
	// annotations of sandboxes, and the log paths of containers that have not
	// exited.
	LeanPodSandboxStatus(ctx context.Context, podSandboxID string) (*runtimeapi.PodSandboxStatus, error)
	LeanContainerStatus(ctx context.Context, containerID string) (*runtimeapi.ContainerStatus, error)
}

// leanSandbox is how such a runtime sees a sandboxConfig.
type leanSandbox = interface {
	Shared() *runtimeapi.PodSandboxConfig
	Metadata() *runtimeapi.PodSandboxMetadata
	LogDirectory() string
	Hostname() string
	Label(name string) (string, bool)
	Config() *runtimeapi.PodSandboxConfig
}

// sandboxConfig is what a runtime is told of a sandbox. A runtime in process
// keeps it for as long as the sandbox, beyond the life of this manager.
type sandboxConfig struct {
	*sandboxTemplate
	metadata            runtimeapi.PodSandboxMetadata
	labels, annotations map[string]string // the pod's
	annotator           Annotator         // nil: those are all
	hostname            string
}

// sandboxTemplate is what replicas have in common.
type sandboxTemplate struct {
	shared  *runtimeapi.PodSandboxConfig
	logsDir string
	cgroups podCgroups
}

// templateKey decides a sandboxTemplate, but of pods with overhead or sysctls.
type templateKey struct {
	containers *v1.Container // the first: replicas share their spec
	dns        *runtimeapi.DNSConfig
	security   *runtimeapi.LinuxSandboxSecurityContext
	resources  *runtimeapi.LinuxContainerResources
	class      v1.PodQOSClass
}

// Shared lacks what is the pod's own: metadata, labels, annotations, log
// directory, hostname and cgroup parent.
func (t *sandboxTemplate) Shared() *runtimeapi.PodSandboxConfig { return t.shared }

func (s *sandboxConfig) Metadata() *runtimeapi.PodSandboxMetadata { return &s.metadata }

func (s *sandboxConfig) LogDirectory() string {
	return podLogDir(s.logsDir, s.metadata.Namespace, s.metadata.Name, s.metadata.Uid)
}

// Hostname is "" in the host's network.
func (s *sandboxConfig) Hostname() string { return s.hostname }

func (s *sandboxConfig) Annotations() map[string]string {
	if s.annotator != nil {
		return s.annotator.Annotate(s.annotations)
	}
	return s.annotations
}

// Label is one of podLabels.
func (s *sandboxConfig) Label(name string) (string, bool) {
	switch name {
	case labelPodName:
		return s.metadata.Name, true
	case labelPodNamespace:
		return s.metadata.Namespace, true
	case labelPodUID:
		return s.metadata.Uid, true
	}
	v, ok := s.labels[name]
	return v, ok
}

// Config is the message of the CRI.
func (s *sandboxConfig) Config() *runtimeapi.PodSandboxConfig {
	o := s.shared
	linux := &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent: s.cgroups.parent(uid(s.metadata.Uid)),
		Sysctls:      o.Linux.Sysctls, SecurityContext: o.Linux.SecurityContext, Resources: o.Linux.Resources, Overhead: o.Linux.Overhead,
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata: &s.metadata, Hostname: s.hostname, LogDirectory: s.LogDirectory(), DnsConfig: o.DnsConfig, PortMappings: o.PortMappings,
		Labels: podLabels(s.labels, &s.metadata), Annotations: s.Annotations(), Linux: linux,
	}
}

// containerKey decides the ContainerConfig that a lean runtime gets for a
// container without mounts.
type containerKey struct {
	c        *v1.Container
	image    *runtimeapi.ImageSpec
	linux    *runtimeapi.LinuxContainerConfig
	env      *runtimeapi.KeyValue // the first: environments are shared whole
	envs     int
	restarts int
	grace    *int64
}
