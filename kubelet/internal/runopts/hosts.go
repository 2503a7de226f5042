package runopts

import (
	"fmt"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// The parts of a hosts file, byte for byte as upstream's.
const (
	hostsHeader            = "# Kubernetes-managed hosts file.\n"
	hostsHeaderHostNetwork = "# Kubernetes-managed hosts file (host network).\n"
	hostsLocal             = "127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n"
)

// writeHosts writes the pod's hosts file and returns its path. Like upstream
// it writes it anew for each container.
// A file that says the same already is left alone: containers that run have it
// mounted.
func (r *request) writeHosts(hostname, domain string) (string, error) {
	file := path.Join(r.g.podDir(r.pod.UID), "etc-hosts")
	var data []byte
	if r.pod.Spec.HostNetwork {
		nodes, err := r.g.o.FS.ReadFile(etcHosts)
		if err != nil {
			nodes = nil // a machine without one
		}
		data = append(append(data, hostsHeaderHostNetwork...), nodes...)
	} else {
		data = podHosts(r.podIPs, hostname, domain)
	}
	data = append(data, aliases(r.pod.Spec.HostAliases)...)
	if old, err := r.g.o.FS.ReadFile(file); err == nil && string(old) == string(data) {
		return file, nil
	}
	if err := r.g.o.FS.WriteFile(file, data, 0o644); err != nil {
		return "", fmt.Errorf("write hosts file: %w", err)
	}
	return file, nil
}

// podHosts is the hosts file of a pod with a network of its own.
// The memory is counted beforehand, for it is made at each start of a
// container.
func podHosts(ips []string, hostname, domain string) []byte {
	n := len(hostsHeader) + len(hostsLocal)
	for _, ip := range ips {
		n += len(ip) + 2*len(hostname) + len(domain) + 4
	}
	b := append(append(make([]byte, 0, n), hostsHeader...), hostsLocal...)
	for _, ip := range ips {
		b = append(append(b, ip...), '\t')
		if domain != "" {
			b = append(append(append(append(b, hostname...), '.'), domain...), '\t')
		}
		b = append(append(b, hostname...), '\n')
	}
	return b
}

// aliases is the part of a hosts file that hostAliases ask for.
// All names of an alias are on one line, in their order.
func aliases(list []v1.HostAlias) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# Entries added by HostAliases.\n")
	for i := range list {
		b.WriteString(list[i].IP + "\t" + strings.Join(list[i].Hostnames, "\t") + "\n")
	}
	return b.String()
}
