package kuberuntime

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
)

// resolvConf is what the node's resolv.conf said when it was last read.
type resolvConf struct {
	text   string
	config *runtimeapi.DNSConfig
}

// hostDNS is what the node's resolv.conf says; nil if there is none.
func (m *Manager) hostDNS() *runtimeapi.DNSConfig {
	if m.o.FS == nil || m.o.Node.ResolvConf == "" {
		return nil
	}
	data, err := m.o.FS.ReadFile(m.o.Node.ResolvConf)
	if err != nil {
		return nil
	}
	c := &m.shared.resolvConf
	if c.config == nil || c.text != string(data) {
		c.text = string(data)
		c.config = dns.ParseResolvConf(c.text)
	}
	return c.config
}

// podDNS is the pod's DNS settings, and what is to be told of them.
func (m *Manager) podDNS(pod *v1.Pod) podDNS {
	k := dnsKey{pod.Spec.DNSPolicy, pod.Spec.HostNetwork, pod.Namespace, pod.Spec.DNSConfig, m.hostDNS()}
	out, ok := m.shared.dns.get(k)
	if !ok {
		out.config, out.warnings = m.o.Node.DNS.GetPodDNS(pod, k.host)
		m.shared.dns.put(k, out)
	}
	return out
}

// dnsConfig is the pod's DNS settings; what was cut is told as events.
func (m *Manager) dnsConfig(pod *v1.Pod) *runtimeapi.DNSConfig {
	d := m.podDNS(pod)
	for _, w := range d.warnings {
		message := w.Message
		if w.OnNode {
			if m.o.NodeRef != nil {
				m.event(m.o.NodeRef, v1.EventTypeWarning, w.Reason, message)
			}
			message = fmt.Sprintf("pod: %q. %s", kubecontainer.PodDesc(pod), message)
		}
		m.event(kubecontainer.PodRef(pod), v1.EventTypeWarning, w.Reason, message)
	}
	return d.config
}
