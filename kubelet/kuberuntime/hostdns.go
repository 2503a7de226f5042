package kuberuntime

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The limits of a resolv.conf.
const (
	maxNameservers  = 3
	maxSearches     = 32
	maxSearchLength = 2048
	maxHostname     = 63
	maxFQDN         = 64
)

// hostname is the name that the kernel shows in the pod.
func (n *NodeConfig) hostname(pod *v1.Pod) (string, error) {
	if o := pod.Spec.HostnameOverride; o != nil {
		return (*o)[:min(len(*o), maxHostname)], nil
	}
	name := pod.Name
	if len(pod.Spec.Hostname) > 0 {
		if errs := validation.IsDNS1123Label(pod.Spec.Hostname); len(errs) != 0 {
			return "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", pod.Spec.Hostname, strings.Join(errs, ";"))
		}
		name = pod.Spec.Hostname
	}
	if len(name) > maxHostname {
		name = strings.TrimRight(name[:maxHostname], "-.")
		if name == "" {
			return "", fmt.Errorf("hostname %q is invalid", pod.Name)
		}
	}
	if fq := pod.Spec.SetHostnameAsFQDN; fq == nil || !*fq || pod.Spec.Subdomain == "" {
		return name, nil
	}
	fqdn := name + "." + pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + n.ClusterDomain
	if len(fqdn) > maxFQDN {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)", fqdn, maxFQDN, len(fqdn))
	}
	return fqdn, nil
}

// dnsConfig is the content of the pod's resolv.conf by its dnsPolicy (upstream
// pkg/kubelet/network/dns). What is beyond the limits is cut.
func (n *NodeConfig) dnsConfig(pod *v1.Pod) *runtimeapi.DNSConfig {
	out := &runtimeapi.DNSConfig{}
	cluster := len(n.ClusterDNS) > 0
	switch pod.Spec.DNSPolicy {
	case v1.DNSNone:
		return n.mergeDNS(out, pod)
	case v1.DNSDefault:
		cluster = false
	case v1.DNSClusterFirst:
		cluster = cluster && !pod.Spec.HostNetwork
	}
	host := n.HostDNS
	if host == nil {
		host = &runtimeapi.DNSConfig{}
	}
	if !cluster {
		out.Servers, out.Searches, out.Options = slices.Clone(host.Servers), slices.Clone(host.Searches), slices.Clone(host.Options)
		return n.mergeDNS(out, pod)
	}
	out.Servers = slices.Clone(n.ClusterDNS)
	if n.ClusterDomain != "" {
		svc := "svc." + n.ClusterDomain
		out.Searches = []string{pod.Namespace + "." + svc, svc, n.ClusterDomain}
	}
	for _, s := range host.Searches {
		if !slices.Contains(out.Searches, s) {
			out.Searches = append(out.Searches, s)
		}
	}
	out.Options = []string{"ndots:5"}
	return n.mergeDNS(out, pod)
}

// mergeDNS adds the pod's own dnsConfig and keeps the limits.
func (n *NodeConfig) mergeDNS(out *runtimeapi.DNSConfig, pod *v1.Pod) *runtimeapi.DNSConfig {
	if c := pod.Spec.DNSConfig; c != nil {
		out.Servers = unique(out.Servers, c.Nameservers)
		out.Searches = unique(out.Searches, c.Searches)
		for _, o := range c.Options {
			out.Options = setOption(out.Options, o)
		}
	}
	out.Servers = out.Servers[:min(len(out.Servers), maxNameservers)]
	total := 0
	for i, s := range out.Searches {
		total += len(s)
		if i >= maxSearches || total+i > maxSearchLength {
			out.Searches = out.Searches[:i]
			break
		}
	}
	return out
}

func unique(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func setOption(list []string, o v1.PodDNSConfigOption) []string {
	text := o.Name
	if o.Value != nil && *o.Value != "" {
		text += ":" + *o.Value
	}
	for i, old := range list {
		if name, _, _ := strings.Cut(old, ":"); name == o.Name {
			list[i] = text
			return list
		}
	}
	return append(list, text)
}
