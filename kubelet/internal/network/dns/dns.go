// Package dns makes what a pod's resolv.conf says, and its host's name. It mirrors upstream's
// pkg/kubelet/network/dns, and the functions of pkg/kubelet/kubelet_pods.go that name a pod's
// host.
//
// dns.go merges three sources, the cluster's settings, the node's own resolv.conf and the pod's
// dnsConfig, by the pod's dnsPolicy; resolvconf.go reads the node's file; hostname.go has the
// names. Nothing here reads a file or records an event: both come and go as values, so that a
// simulated node and a real one share the code.
package dns

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The limits of a resolv.conf (upstream pkg/apis/core/validation).
const (
	// Three nameservers are also what glibc's resolver takes (resolv.conf(5)).
	maxNameservers  = 3
	maxSearches     = 32
	maxSearchLength = 2048 // characters of the search line
	maxSearch       = 253  // characters of one domain
)

// Configurer makes the DNS settings of a node's pods. It is not changed after it was made.
type Configurer struct {
	// ClusterDNS and ClusterDomain are the kubelet's settings of that name.
	ClusterDNS    []string
	ClusterDomain string
	// NoResolvConf is resolvConf set to "": pods with the node's settings look
	// no names up.
	NoResolvConf bool
	// NodeIPs are the node's addresses, as far as it was given any.
	NodeIPs []string
}

// Warning is an event that goes with a pod's settings; OnNode tells that it is
// one of the node too, and that the pod's names the pod before the message. The reasons are those
// of kubelet events.
type Warning struct {
	Reason, Message string
	OnNode          bool
}

// GetPodDNS returns the pod's settings by its dnsPolicy and dnsConfig; host is
// what the node's own resolv.conf says. What is beyond the limits is cut, which
// the warnings tell. The result is new each time and goes into the sandbox's CRI config.
func (c *Configurer) GetPodDNS(pod *v1.Pod, host *runtimeapi.DNSConfig) (*runtimeapi.DNSConfig, []Warning) {
	out := &runtimeapi.DNSConfig{}
	if host == nil {
		host = &runtimeapi.DNSConfig{}
	}
	var warnings []Warning
	cluster := true
	switch pod.Spec.DNSPolicy {
	// The pod's own settings are all there is; API validation wants at least one nameserver.
	case v1.DNSNone:
		return c.limit(merge(out, pod.Spec.DNSConfig), warnings)
	case v1.DNSDefault:
		cluster = false
	case v1.DNSClusterFirst:
		// A pod of the host's network looks names up as the host does unless it asks for
		// ClusterFirstWithHostNet.
		cluster = !pod.Spec.HostNetwork
	}
	if cluster && len(c.ClusterDNS) == 0 {
		warnings = append(warnings, Warning{Reason: "MissingClusterDNS", OnNode: true, Message: missingClusterDNS})
		cluster = false
	}
	switch {
	case cluster:
		out.Servers = slices.Clone(c.ClusterDNS)
		out.Searches = c.clusterSearches(pod.Namespace, host.Searches)
		// Names with fewer than five dots are searched before they are asked for as they are:
		// "svc.ns.svc.cluster.local" has four.
		out.Options = []string{"ndots:5"}
	// A search path of "." keeps the runtime from filling in the host's.
	case c.NoResolvConf:
		out.Servers, out.Searches = c.nowhere(), []string{"."}
	default:
		out.Servers, out.Searches, out.Options = slices.Clone(host.Servers), slices.Clone(host.Searches), slices.Clone(host.Options)
	}
	return c.limit(merge(out, pod.Spec.DNSConfig), warnings)
}

// missingClusterDNS is upstream's text.
var missingClusterDNS = fmt.Sprintf("kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
	v1.DNSClusterFirst, v1.DNSDefault)

// clusterSearches are the domains that a pod searches: those of the cluster,
// then the host's. The pod's own namespace comes first, so that a service's bare name finds the
// one beside it.
func (c *Configurer) clusterSearches(namespace string, host []string) []string {
	if c.ClusterDomain == "" {
		return slices.Clone(host)
	}
	svc := "svc." + c.ClusterDomain
	return unique([]string{namespace + "." + svc, svc, c.ClusterDomain}, host)
}

// nowhere are the node's own addresses as nameservers, one for each of its IPs. No server answers
// there: lookups fail at once rather than after a timeout.
func (c *Configurer) nowhere() []string {
	var out []string
	for _, ip := range c.NodeIPs {
		if strings.Contains(ip, ":") {
			out = append(out, "::1")
		} else {
			out = append(out, "127.0.0.1")
		}
	}
	if out == nil {
		out = []string{"127.0.0.1"}
	}
	return out
}

// merge adds the pod's own dnsConfig. Nothing is taken away: the pod adds to what its policy
// gives, and overrides options by name.
func merge(out *runtimeapi.DNSConfig, own *v1.PodDNSConfig) *runtimeapi.DNSConfig {
	if own == nil {
		return out
	}
	out.Servers = unique(out.Servers, own.Nameservers)
	out.Searches = unique(out.Searches, own.Searches)
	for _, o := range own.Options {
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		out.Options = setOption(out.Options, text)
	}
	return out
}

// unique appends what a list doesn't have yet. Doubles within the first list stay.
func unique(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// setOption adds an option, or replaces the one of its name. An option is its name, or its name
// and a value after a colon.
func setOption(list []string, text string) []string {
	name, _, _ := strings.Cut(text, ":")
	for i, old := range list {
		if n, _, _ := strings.Cut(old, ":"); n == name {
			list[i] = text
			return list
		}
	}
	return append(list, text)
}

// limit cuts what a resolv.conf can't hold. The pod starts all the same, with what fits; the
// event says what that is.
func (c *Configurer) limit(out *runtimeapi.DNSConfig, warnings []Warning) (*runtimeapi.DNSConfig, []Warning) {
	forming := func(format, line string) {
		warnings = append(warnings, Warning{Reason: "DNSConfigForming", Message: fmt.Sprintf(format, line)})
	}
	if len(out.Servers) > maxNameservers {
		out.Servers = out.Servers[:maxNameservers]
		forming("Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: %s", strings.Join(out.Servers, " "))
	}
	if fits := fitSearches(out.Searches); len(fits) != len(out.Searches) {
		out.Searches = fits
		forming("Search Line limits were exceeded, some search paths have been omitted, the applied search line is: %s", strings.Join(fits, " "))
	}
	return out, warnings
}

// fitSearches returns the search paths that fit: the first 32, of these none
// that is too long by itself, and as many as the line takes. Lengths count the spaces between the
// domains.
func fitSearches(list []string) []string {
	var out []string
	length := 0
	for _, s := range list[:min(len(list), maxSearches)] {
		if len(s) > maxSearch {
			continue
		}
		if length += len(s); length+len(out) > maxSearchLength {
			break
		}
		out = append(out, s)
	}
	return out
}
