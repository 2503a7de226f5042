package kuberuntime

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/security"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// createPodSandbox makes the pod's log directory and runs a sandbox. It returns
// the sandbox's ID and what the runtime was told of it, or an error with the
// message of the sync's result.
// The log directory comes first: runtimes write to it from the start on.
func (m *Manager) createPodSandbox(ctx context.Context, pod *v1.Pod, attempt uint32) (id string, config *sandboxConfig, message string, err error) {
	config, err = m.sandboxConfig(ctx, pod, attempt)
	if err != nil {
		return "", nil, fmt.Sprintf("Failed to generate sandbox config for pod %q: %v", kubecontainer.PodDesc(pod), err), err
	}
	if m.o.FS != nil {
		if err := m.o.FS.MkdirAll(config.LogDirectory(), 0o755); err != nil {
			return "", nil, fmt.Sprintf("Failed to create log directory for pod %q: %v", kubecontainer.PodDesc(pod), err), err
		}
	}
	handler, err := m.runtimeHandler(ctx, pod)
	if err != nil {
		return "", nil, fmt.Sprintf("Failed to create sandbox for pod %q: %v", kubecontainer.PodDesc(pod), err), err
	}
	begun := m.o.Loop.UnixNano()
	id, err = m.rt.RunPodSandbox(ctx, config, handler)
	m.o.Metrics.Sandbox(handler, m.o.Loop.UnixNano()-begun, pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers, err)
	if err != nil {
		return "", nil, fmt.Sprintf("Failed to create sandbox for pod %q: %v", kubecontainer.PodDesc(pod), err), err
	}
	return id, config, "", nil
}

// sandboxConfig builds what RunPodSandbox, CreateContainer and PullImage are
// told of the sandbox.
// The hostname is that of the pod; in the host's network the runtime takes the
// machine's.
func (m *Manager) sandboxConfig(ctx context.Context, pod *v1.Pod, attempt uint32) (*sandboxConfig, error) {
	template, err := m.sandboxTemplate(ctx, pod)
	if err != nil {
		return nil, err
	}
	config := &sandboxConfig{
		sandboxTemplate: template,
		metadata:        runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt},
		labels:          pod.Labels,
		annotations:     pod.Annotations,
	}
	if m.o.Annotator != nil {
		config.annotator = m.o.Annotator(pod.UID)
	}
	if !pod.Spec.HostNetwork {
		if config.hostname, err = dns.KernelHostname(pod, m.o.Node.DNS.ClusterDomain); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// sandboxTemplate makes what replicas share of a sandbox's config, or returns
// the one made before. Overhead and sysctls are rare, so they are no part of
// the key but make a template of the pod's own.
func (m *Manager) sandboxTemplate(ctx context.Context, pod *v1.Pod) (*sandboxTemplate, error) {
	secctx, err := m.sandboxSecurity(ctx, pod)
	if err != nil {
		return nil, err
	}
	amounts := m.sandboxResources(pod)
	k := templateKey{&pod.Spec.Containers[0], m.dnsConfig(pod), secctx, amounts, qos.Class(pod)}
	own := len(pod.Spec.Overhead) > 0 || pod.Spec.SecurityContext != nil && len(pod.Spec.SecurityContext.Sysctls) > 0
	if out, ok := m.shared.templates.get(k); ok && !own {
		return out, nil
	}
	out := &sandboxTemplate{
		shared: &runtimeapi.PodSandboxConfig{
			DnsConfig:    k.dns,
			PortMappings: portMappings(pod),
			Linux:        m.linuxSandboxConfig(pod, secctx, amounts),
		},
		logsDir: m.o.PodLogsDir,
		cgroups: m.o.Node.podCgroups(k.class),
	}
	if !own {
		m.shared.templates.put(k, out)
	}
	return out, nil
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

// portRepeats reports whether an earlier port of the container stands for p,
// too.
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

// protocol is TCP unless the port says otherwise, as the API's default is.
func protocol(p v1.Protocol) runtimeapi.Protocol {
	switch p {
	case v1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case v1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	}
	return runtimeapi.Protocol_TCP
}

// linuxSandboxConfig is without the cgroup parent.
// Sysctls may be written with slashes; the CRI has dots.
func (m *Manager) linuxSandboxConfig(pod *v1.Pod, secctx *runtimeapi.LinuxSandboxSecurityContext, amounts *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxPodSandboxConfig {
	out := &runtimeapi.LinuxPodSandboxConfig{
		Sysctls:         noSysctls,
		SecurityContext: secctx,
		Resources:       amounts,
		Overhead:        noOverhead,
	}
	if len(pod.Spec.Overhead) > 0 {
		out.Overhead = m.resources.Of(pod.Spec.Overhead, pod.Spec.Overhead) // request and limit
	}
	if sc := pod.Spec.SecurityContext; sc != nil && len(sc.Sysctls) > 0 {
		out.Sysctls = make(map[string]string, len(sc.Sysctls))
		for _, s := range sc.Sysctls {
			out.Sysctls[strings.ReplaceAll(s.Name, "/", ".")] = s.Value
		}
	}
	return out
}

// sandboxResources are those of the pod's cgroup, for runtimes that size a
// virtual machine by them.
func (m *Manager) sandboxResources(pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	if !resources.Any(pod) {
		return m.shared.noResources
	}
	if m.o.Affinity != nil && m.o.Affinity.NoQuota(pod, "") {
		out := m.resources.Pod(pod)
		out.CpuQuota = noQuota(out)
		return out
	}
	k := podKeyOf(pod)
	out, ok := m.shared.pods.get(k)
	if !ok {
		out = m.resources.Pod(pod)
		m.shared.pods.put(k, out)
	}
	return out
}

// sandboxSecurity is the sandbox's security context; one of a user namespace of
// its own is never shared, since the mapping is the pod's.
func (m *Manager) sandboxSecurity(ctx context.Context, pod *v1.Pod) (*runtimeapi.LinuxSandboxSecurityContext, error) {
	users, err := m.userNamespace(ctx, pod)
	if err != nil {
		return nil, err
	}
	sc := psc(pod)
	k := boxKey{sc, namespacesOf(pod), security.AnyPrivileged(pod)}
	if out, ok := m.shared.boxes.get(k); ok && users == nil {
		return out, nil
	}
	out, err := security.Sandbox(pod, sc, k.privileged, users)
	if err == nil && users == nil {
		m.shared.boxes.put(k, out)
	}
	return out, err
}

// podCgroups names the cgroups of the pods of a class.
type podCgroups struct {
	names cm.Names
	class v1.PodQOSClass
	none  bool // pods have no cgroups of their own
}

// podCgroups returns the names for pods of a class.
func (n *NodeConfig) podCgroups(class v1.PodQOSClass) podCgroups {
	return podCgroups{cm.Names{Root: n.CgroupRoot, Systemd: n.SystemdCgroups}, class, !n.CgroupsPerQOS}
}

// parent is the cgroup in which a runtime puts the pod's; "" leaves that to the
// runtime.
func (p *podCgroups) parent(uid types.UID) string {
	if p.none {
		return ""
	}
	return p.names.Pod(p.class, uid)
}
