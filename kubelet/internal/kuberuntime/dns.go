package kuberuntime

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
)

// podDNSSettings makes pods' DNS settings, of which most pods of a node have one
// of a few.
type podDNSSettings struct {
	fs         FileSystem // nil: the node has no resolv.conf
	resolvConf string     // its path; "": none
	configurer *dns.Configurer

	text string // of resolvConf when it was last read, and what it says
	host *runtimeapi.DNSConfig
	made memo[dnsKey, podDNS]
}

// dnsKey is what a pod's DNS settings follow from.
type dnsKey struct {
	policy      v1.DNSPolicy
	hostNetwork bool
	namespace   string
	own         *v1.PodDNSConfig
	host        *runtimeapi.DNSConfig
}

// podDNS is what a dnsKey decides.
type podDNS struct {
	config   *runtimeapi.DNSConfig
	warnings []dns.Warning
}

// readHost is what the node's resolv.conf says; nil if there is none. It is read
// each time, since it may change, but parsed only if it has.
func (d *podDNSSettings) readHost() *runtimeapi.DNSConfig {
	if d.fs == nil || d.resolvConf == "" {
		return nil
	}
	data, err := d.fs.ReadFile(d.resolvConf)
	if err != nil {
		return nil
	}
	if d.host == nil || d.text != string(data) {
		d.text = string(data)
		d.host = dns.ParseResolvConf(d.text)
	}
	return d.host
}

// of is the pod's DNS settings, and what is to be told of them.
func (d *podDNSSettings) of(pod *v1.Pod) podDNS {
	k := dnsKey{pod.Spec.DNSPolicy, pod.Spec.HostNetwork, pod.Namespace, pod.Spec.DNSConfig, d.readHost()}
	out, ok := d.made.get(k)
	if !ok {
		out.config, out.warnings = d.configurer.GetPodDNS(pod, k.host)
		d.made.put(k, out)
	}
	return out
}

// dnsConfig is the pod's DNS settings; what was cut is told as events.
func (m *Manager) dnsConfig(pod *v1.Pod) *runtimeapi.DNSConfig {
	d := m.dns.of(pod)
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
