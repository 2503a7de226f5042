package kuberuntime

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/container"
)

func networkMode(pod *v1.Pod) runtimeapi.NamespaceMode {
	if pod.Spec.HostNetwork {
		return runtimeapi.NamespaceMode_NODE
	}
	return runtimeapi.NamespaceMode_POD
}

// createPodSandbox makes the pod's log directory and runs a sandbox.
func (m *Manager) createPodSandbox(ctx context.Context, pod *v1.Pod, attempt uint32) (id, message string, err error) {
	config, err := m.sandboxConfig(pod, attempt)
	if err != nil {
		return "", fmt.Sprintf("Failed to generate sandbox config for pod %q: %v", kubecontainer.PodDesc(pod), err), err
	}
	if m.o.FS != nil {
		if err := m.o.FS.MkdirAll(config.LogDirectory, 0o755); err != nil {
			return "", fmt.Sprintf("Failed to create log directory for pod %q: %v", kubecontainer.PodDesc(pod), err), err
		}
	}
	handler := ""
	if pod.Spec.RuntimeClassName != nil {
		// RuntimeClass objects are not read yet: a class is its handler.
		handler = *pod.Spec.RuntimeClassName
	}
	id, err = m.rt.RunPodSandbox(ctx, config, handler)
	if err != nil {
		return "", fmt.Sprintf("Failed to create sandbox for pod %q: %v", kubecontainer.PodDesc(pod), err), err
	}
	return id, "", nil
}

func (m *Manager) podLogDir(namespace, name, uid string) string {
	return m.o.PodLogsDir + "/" + namespace + "_" + name + "_" + uid
}

// sandboxConfig builds what RunPodSandbox, CreateContainer and PullImage are
// told of the sandbox.
func (m *Manager) sandboxConfig(pod *v1.Pod, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	linux, err := m.linuxSandboxConfig(pod)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt},
		Labels:       podLabels(pod),
		Annotations:  pod.Annotations,
		LogDirectory: m.podLogDir(pod.Namespace, pod.Name, string(pod.UID)),
		DnsConfig:    m.o.Node.dnsConfig(pod),
		PortMappings: portMappings(pod),
		Linux:        linux,
	}
	if !pod.Spec.HostNetwork {
		if config.Hostname, err = m.o.Node.hostname(pod); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// portMappings are those of the regular containers. A repeated name, or a
// repeated unnamed port, counts once in its container.
func portMappings(pod *v1.Pod) []*runtimeapi.PortMapping {
	var out []*runtimeapi.PortMapping
	for i := range pod.Spec.Containers {
		ports := pod.Spec.Containers[i].Ports
		for j := range ports {
			p := &ports[j]
			if portRepeats(ports[:j], p) {
				continue
			}
			out = append(out, &runtimeapi.PortMapping{
				HostIp: p.HostIP, HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: protocol(p.Protocol),
			})
		}
	}
	return out
}

func portRepeats(earlier []v1.ContainerPort, p *v1.ContainerPort) bool {
	for i := range earlier {
		e := &earlier[i]
		if e.Name != p.Name {
			continue
		}
		if p.Name != "" || e.Protocol == p.Protocol && e.HostIP == p.HostIP && e.ContainerPort == p.ContainerPort && e.HostPort == p.HostPort {
			return true
		}
	}
	return false
}

func protocol(p v1.Protocol) runtimeapi.Protocol {
	switch p {
	case v1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case v1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	}
	return runtimeapi.Protocol_TCP
}

func (m *Manager) linuxSandboxConfig(pod *v1.Pod) (*runtimeapi.LinuxPodSandboxConfig, error) {
	sc := pod.Spec.SecurityContext
	sec := &runtimeapi.LinuxSandboxSecurityContext{
		Privileged: anyPrivileged(pod),
		Seccomp:    &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	out := &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent:    m.o.Node.cgroupParent(pod),
		Sysctls:         map[string]string{},
		SecurityContext: sec,
		Resources:       m.o.Node.podResources(pod),
		Overhead:        m.o.Node.overhead(pod),
	}
	if sc == nil {
		return out, nil
	}
	for _, s := range sc.Sysctls {
		out.Sysctls[strings.ReplaceAll(s.Name, "/", ".")] = s.Value
	}
	sec.NamespaceOptions = namespaceOptions(pod)
	sec.RunAsUser, sec.RunAsGroup = int64Value(sc.RunAsUser), int64Value(sc.RunAsGroup)
	sec.SelinuxOptions = selinux(sc.SELinuxOptions)
	sec.SupplementalGroups = supplementalGroups(sc)
	var err error
	sec.SupplementalGroupsPolicy, err = groupsPolicy(sc)
	return out, err
}
