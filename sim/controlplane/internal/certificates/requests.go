package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// checkOf returns what a signer asks of a request; nil: the signer is none of ours.
func checkOf(signer string) func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch signer {
	case certificatesv1.KubeletServingSignerName:
		return kubeletServing
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return kubeletClient
	case certificatesv1.KubeAPIServerClientSignerName:
		return func(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error { return clientUsages(usages) }
	case "kubernetes.io/legacy-unknown":
		return func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error { return nil }
	}
	return nil
}

// kubeletServing is ValidateKubeletServingCSR (pkg/apis/certificates/helpers.go).
func kubeletServing(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{"system:nodes"}):
		return errNotNodes
	case len(r.DNSNames) == 0 && len(r.IPAddresses) == 0:
		return errors.New("DNS or IP subjectAltName is required")
	case len(r.EmailAddresses) > 0:
		return errEmail
	case len(r.URIs) > 0:
		return errURI
	}
	if err := exactUsages(usages, certificatesv1.UsageServerAuth); err != nil {
		return err
	}
	if !strings.HasPrefix(r.Subject.CommonName, "system:node:") {
		return errNotNode
	}
	return nil
}

// kubeletClient is ValidateKubeletClientCSR.
func kubeletClient(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{"system:nodes"}):
		return errNotNodes
	case len(r.DNSNames) > 0:
		return errors.New("DNS subjectAltNames are not allowed")
	case len(r.EmailAddresses) > 0:
		return errEmail
	case len(r.IPAddresses) > 0:
		return errors.New("IP subjectAltNames are not allowed")
	case len(r.URIs) > 0:
		return errURI
	case !strings.HasPrefix(r.Subject.CommonName, "system:node:"):
		return errNotNode
	}
	return exactUsages(usages, certificatesv1.UsageClientAuth)
}

var (
	errNotNodes = errors.New("subject organization is not system:nodes")
	errNotNode  = errors.New("subject common name does not begin with system:node:")
	errEmail    = errors.New("Email subjectAltNames are not allowed")
	errURI      = errors.New("URI subjectAltNames are not allowed")
)

// exactUsages requires a signature's usage and auth, and no other but encipherment of
// keys, which only RSA has.
func exactUsages(usages []certificatesv1.KeyUsage, auth certificatesv1.KeyUsage) error {
	want := []certificatesv1.KeyUsage{auth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
	slices.Sort(want)
	other := func(u certificatesv1.KeyUsage) bool { return !slices.Contains(want, u) }
	if slices.ContainsFunc(usages, other) || !slices.Contains(usages, auth) || !slices.Contains(usages, certificatesv1.UsageDigitalSignature) {
		return fmt.Errorf("usages did not match %v", want)
	}
	return nil
}

// clientUsages is validAPIServerClientUsages.
func clientUsages(usages []certificatesv1.KeyUsage) error {
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth:
		default:
			return fmt.Errorf("invalid usage for client certificate: %s", u)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}

// keyUsage and extendedUsage are keyUsagesFromStrings (authority/policies.go): each
// usage is one of the two.
func keyUsage(u certificatesv1.KeyUsage) x509.KeyUsage {
	return map[certificatesv1.KeyUsage]x509.KeyUsage{
		certificatesv1.UsageSigning: x509.KeyUsageDigitalSignature, certificatesv1.UsageDigitalSignature: x509.KeyUsageDigitalSignature,
		certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment, certificatesv1.UsageKeyEncipherment: x509.KeyUsageKeyEncipherment,
		certificatesv1.UsageKeyAgreement: x509.KeyUsageKeyAgreement, certificatesv1.UsageDataEncipherment: x509.KeyUsageDataEncipherment,
		certificatesv1.UsageCertSign: x509.KeyUsageCertSign, certificatesv1.UsageCRLSign: x509.KeyUsageCRLSign,
		certificatesv1.UsageEncipherOnly: x509.KeyUsageEncipherOnly, certificatesv1.UsageDecipherOnly: x509.KeyUsageDecipherOnly,
	}[u]
}

func extendedUsage(u certificatesv1.KeyUsage) (x509.ExtKeyUsage, bool) {
	e, ok := map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
		certificatesv1.UsageAny: x509.ExtKeyUsageAny, certificatesv1.UsageServerAuth: x509.ExtKeyUsageServerAuth, certificatesv1.UsageClientAuth: x509.ExtKeyUsageClientAuth,
		certificatesv1.UsageCodeSigning: x509.ExtKeyUsageCodeSigning, certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
		certificatesv1.UsageSMIME: x509.ExtKeyUsageEmailProtection, certificatesv1.UsageIPsecEndSystem: x509.ExtKeyUsageIPSECEndSystem,
		certificatesv1.UsageIPsecTunnel: x509.ExtKeyUsageIPSECTunnel, certificatesv1.UsageIPsecUser: x509.ExtKeyUsageIPSECUser,
		certificatesv1.UsageTimestamping: x509.ExtKeyUsageTimeStamping, certificatesv1.UsageOCSPSigning: x509.ExtKeyUsageOCSPSigning,
		certificatesv1.UsageMicrosoftSGC: x509.ExtKeyUsageMicrosoftServerGatedCrypto, certificatesv1.UsageNetscapeSGC: x509.ExtKeyUsageNetscapeServerGatedCrypto,
	}[u]
	return e, ok
}
