package dns

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Lengths in characters.
const (
	// 63 is a DNS label's (RFC 1035), 64 is the kernel's HOST_NAME_MAX.
	maxHostname = 63
	maxFQDN     = 64
)

// HostnameAndDomain returns the name of the pod's host and its domain, which is
// "" without a subdomain (upstream GeneratePodHostNameAndDomain). An error keeps the pod from
// starting. hostnameOverride is KEP-4762.
func HostnameAndDomain(pod *v1.Pod, clusterDomain string) (hostname, domain string, err error) {
	if o := pod.Spec.HostnameOverride; o != nil {
		if errs := validation.IsDNS1123Subdomain(*o); len(errs) != 0 {
			return "", "", fmt.Errorf("pod HostnameOverride %q is not a valid DNS subdomain: %s", *o, strings.Join(errs, ";"))
		}
		return (*o)[:min(len(*o), maxHostname)], "", nil
	}
	hostname = pod.Name
	if pod.Spec.Hostname != "" {
		if errs := validation.IsDNS1123Label(pod.Spec.Hostname); len(errs) != 0 {
			return "", "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", pod.Spec.Hostname, strings.Join(errs, ";"))
		}
		hostname = pod.Spec.Hostname
	}
	if len(hostname) > maxHostname {
		// A name that is cut must not end in what no label may end in.
		if hostname = strings.TrimRight(hostname[:maxHostname], "-."); hostname == "" {
			return "", "", fmt.Errorf("hostname %q is invalid", pod.Name)
		}
	}
	if pod.Spec.Subdomain == "" {
		return hostname, "", nil
	}
	if errs := validation.IsDNS1123Label(pod.Spec.Subdomain); len(errs) != 0 {
		return "", "", fmt.Errorf("pod Subdomain %q is not a valid DNS label: %s", pod.Spec.Subdomain, strings.Join(errs, ";"))
	}
	return hostname, pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + clusterDomain, nil
}

// KernelHostname is the name that the kernel shows in the pod: with
// setHostnameAsFQDN and a domain the whole name, which must not be longer than
// 64 characters. It is what goes into the sandbox's config; without the setting only /etc/hosts
// has the whole name.
func KernelHostname(pod *v1.Pod, clusterDomain string) (string, error) {
	hostname, domain, err := HostnameAndDomain(pod, clusterDomain)
	if err != nil {
		return "", err
	}
	if fq := pod.Spec.SetHostnameAsFQDN; fq == nil || !*fq || domain == "" {
		return hostname, nil
	}
	fqdn := hostname + "." + domain
	if len(fqdn) > maxFQDN {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)", fqdn, maxFQDN, len(fqdn))
	}
	return fqdn, nil
}
