package certificate

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
	netutils "k8s.io/utils/net"
)

// Serving are what a serving certificate is asked for with.
type Serving struct {
	// Client asks for it; nil: only what is in the files is served with.
	Client kubernetes.Interface
	// Node is the node's name, Dir --cert-dir. CertFile and KeyFile count while Dir has none.
	Node, Dir, CertFile, KeyFile string
	// Addresses are the node's, as it told the API last. It is called from any goroutine. A
	// certificate is asked for anew when they change.
	Addresses func() []v1.NodeAddress
	Metrics   *Metrics
}

// NewServing returns the rotation of a serving certificate (upstream
// NewKubeletServerCertificateManager). Nothing is asked for before its Start.
func NewServing(s Serving) (certificate.Manager, error) {
	store, err := certificate.NewFileStore("kubelet-server", s.Dir, s.Dir, s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("failed to initialize server certificate store: %w", err)
	}
	c := &certificate.Config{
		GetTemplate: func() *x509.CertificateRequest { return template(s.Node, s.Addresses()) },
		SignerName:  certificatesv1.KubeletServingSignerName, GetUsages: certificate.DefaultKubeletServingGetUsages,
		CertificateStore: store, CertificateRotation: s.Metrics.serverRotation, CertificateRenewFailure: s.Metrics.serverErrors,
	}
	if s.Client != nil {
		c.ClientsetFn = func(*tls.Certificate) (kubernetes.Interface, error) { return s.Client, nil }
	}
	m, err := certificate.NewManager(c)
	if err != nil {
		return nil, fmt.Errorf("failed to initialize server certificate manager: %w", err)
	}
	s.Metrics.server.Store(&current{m})
	return m, nil
}

// template is what is asked for; nil: no address is known yet, so nothing. Names alone are not
// enough (AllowDNSOnlyNodeCSR is off by default).
func template(node string, addresses []v1.NodeAddress) *x509.CertificateRequest {
	names, ips := split(addresses)
	if len(ips) == 0 {
		return nil
	}
	return &x509.CertificateRequest{Subject: subjectOf(node), DNSNames: names, IPAddresses: ips}
}

// split tells names from addresses, each once and in order.
func split(addresses []v1.NodeAddress) (names []string, ips []net.IP) {
	byText := map[string]net.IP{}
	for _, a := range addresses {
		if a.Address == "" {
			continue
		}
		ip := netutils.ParseIPSloppy(a.Address)
		switch a.Type {
		case v1.NodeInternalIP, v1.NodeExternalIP:
			if ip != nil {
				byText[ip.String()] = ip
			}
		case v1.NodeHostName:
			if ip != nil {
				byText[ip.String()] = ip
				continue
			}
			names = append(names, a.Address)
		case v1.NodeInternalDNS, v1.NodeExternalDNS:
			names = append(names, a.Address)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), slices.SortedFunc(maps.Values(byText), func(a, b net.IP) int { return cmp.Compare(a.String(), b.String()) })
}
