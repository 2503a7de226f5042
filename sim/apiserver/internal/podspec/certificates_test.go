package podspec

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
)

// TestCertificateSources states what is refused of sources clusterTrustBundle and
// podCertificate, with the texts of upstream's validateProjectionSources.
func TestCertificateSources(t *testing.T) {
	const (
		at   = "spec.volumes[0].projected.sources[0]."
		good = "signerName: e.com/s, keyType: ED25519, "
	)
	for _, tc := range []struct{ source, want string }{
		{"clusterTrustBundle: {name: a, path: f}", ""},
		{"clusterTrustBundle: {name: 'e.com:s:a', path: f}", ""},
		{"clusterTrustBundle: {signerName: e.com/s, labelSelector: {}, path: f}", ""},
		{"clusterTrustBundle: {path: f}", at + "clusterTrustBundle: Required value: either name or signerName must be specified"},
		{"clusterTrustBundle: {name: a, signerName: e.com/s, path: f}", "only one of name and signerName may be used"},
		{"clusterTrustBundle: {name: a, labelSelector: {}, path: f}", "labelSelector must be unset if name is specified"},
		{"clusterTrustBundle: {name: A, path: f}", at + `clusterTrustBundle.name: Invalid value: "A": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain`},
		{"clusterTrustBundle: {name: 'e.com:s:A', path: f}", "not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain"},
		{"clusterTrustBundle: {name: a}", at + "clusterTrustBundle.path: Required value"},
		{"clusterTrustBundle: {name: a, path: ../f}", at + `clusterTrustBundle.path: Invalid value: "../f": must not contain '..'`},
		{"clusterTrustBundle: {signerName: s, path: f}", "must be a fully qualified domain and path of the form 'example.com/signer-name'"},
		{"clusterTrustBundle: {signerName: e.com/s, labelSelector: {matchLabels: {a: ' '}}, path: f}", "labelSelector.matchLabels"},
		{"podCertificate: {" + good + "keyPath: k, certificateChainPath: c, userAnnotations: {e.com/a: b}}", ""},
		{"podCertificate: {" + good + "credentialBundlePath: b, maxExpirationSeconds: 7862400}", ""},
		{"podCertificate: {" + good + "}", at + "podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath"},
		{"podCertificate: {signerName: e.com/s, keyType: RSA2048, keyPath: k}", at + `podCertificate.keyType: Unsupported value: "RSA2048": supported values: "RSA3072"`},
		{"podCertificate: {keyType: ED25519, keyPath: k}", at + "podCertificate.signerName: Required value"},
		{"podCertificate: {" + good + "keyPath: k, maxExpirationSeconds: 3599}", "if provided, maxExpirationSeconds must be >= 3600"},
		{"podCertificate: {" + good + "keyPath: k, maxExpirationSeconds: 7862401}", "if provided, maxExpirationSeconds must be <= 7862400"},
		{"podCertificate: {signerName: a.kubernetes.io/s, keyType: ED25519, keyPath: k, maxExpirationSeconds: 86401}", "if provided, maxExpirationSeconds must be <= 86400"},
		{"podCertificate: {" + good + "keyPath: k, userAnnotations: {a: b}}", at + "podCertificate.userAnnotations: Invalid value"},
		{"podCertificate: {" + good + "keyPath: /k}", at + `podCertificate.keyPath: Invalid value: "/k": must be a relative path`},
		{"podCertificate: {" + good + "keyPath: k, certificateChainPath: k}", `spec.volumes[0].projected: Invalid value: "k": conflicting duplicate paths`},
		{"podCertificate: {" + good + "keyPath: k}, clusterTrustBundle: {name: a, path: f}", "may not specify more than 1 volume type per source"},
	} {
		err := Validate(podOf(t, "{volumes: [{name: v, projected: {sources: [{"+tc.source+"}]}}], "+c+"}]}")).ToAggregate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", tc.source, err)
		}
	}
}

// TestSourcesAndGates: a source stays with its own gate only.
func TestSourcesAndGates(t *testing.T) {
	for _, tc := range []struct {
		on                  features.Gates
		bundle, certificate bool
	}{
		{features.Gates{}, false, false},
		{features.Gates{ClusterTrustBundle: true}, false, false},
		{features.Gates{ClusterTrustBundle: true, ClusterTrustBundleProjection: true}, true, false},
		{features.Gates{PodCertificateRequest: true}, false, true},
		{features.All(), true, true},
	} {
		s := &v1.PodSpec{Volumes: []v1.Volume{{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{}}, {PodCertificate: &v1.PodCertificateProjection{}}}}}}}}
		DropDisabled(s, tc.on)
		left := s.Volumes[0].Projected.Sources
		if got := left[0].ClusterTrustBundle != nil; got != tc.bundle {
			t.Errorf("%+v: the bundle stays: %t", tc.on, got)
		}
		if got := left[1].PodCertificate != nil; got != tc.certificate {
			t.Errorf("%+v: the certificate stays: %t", tc.on, got)
		}
	}
}
