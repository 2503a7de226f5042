package kinds

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
)

// keyOf is the private key of a word.
func keyOf(word string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(word))
	return ed25519.NewKeyFromSeed(seed[:])
}

// certificateOf is a certificate of a word's key, signed by itself.
func certificateOf(t *testing.T, word string, change func(c *x509.Certificate)) string {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: noon, NotAfter: noon.Add(2 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	change(c)
	key := keyOf(word)
	der, err := x509.CreateCertificate(nil, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func unchanged(*x509.Certificate) {}

func TestClusterTrustBundle(t *testing.T) {
	in := New(features.All()).Find(ClusterTrustBundle)
	a, b := certificateOf(t, "a", unchanged), certificateOf(t, "b", unchanged)
	for _, tc := range []struct{ name, signer, trust, want string }{
		{"plain", "", "words between\n" + a + b, ""},
		{"e.com:s:x", "e.com/s", a, ""},
		{"e.com:s:x", "", a, `metadata.name: Invalid value: "e.com:s:x": ClusterTrustBundle without signer name must not have ":" in its name`},
		{"plain", "e.com/s", a, `ClusterTrustBundle for signerName e.com/s must be named with prefix e.com:s:`},
		{"e.com:s:X", "e.com/s", a, "a lowercase RFC 1123 subdomain"},
		{"s:x", "s", a, "must be a fully qualified domain and path"},
		{"plain", "", "", `spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided`},
		{"plain", "", a + b + a, "duplicate trust anchor (indices [0 2])"},
		{"plain", "", strings.ReplaceAll(a, "CERTIFICATE", "KEY"), "entry 0 has bad block type: KEY"},
		{"plain", "", strings.Replace(a, "-----\n", "-----\nh: v\n\n", 1), "entry 0 has PEM block headers"},
		{"plain", "", a + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "entry 1 does not parse as X.509"},
		{"plain", "", certificateOf(t, "c", func(c *x509.Certificate) { c.IsCA = false }), "entry 0 does not have the CA bit set"},
		{"plain", "", strings.Repeat(" ", maxTrustBundle+1), "spec.trustBundle: Too long: may not be more than 1048576 bytes"},
	} {
		obj := &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: tc.name}, Spec: certificatesv1beta1.ClusterTrustBundleSpec{SignerName: tc.signer, TrustBundle: tc.trust}}
		wantError(t, in.WithMeta(obj, in.Validate(obj, false)).ToAggregate(), tc.want)
	}
	old := &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "e.com:s:x"}, Spec: certificatesv1beta1.ClusterTrustBundleSpec{SignerName: "e.com/s", TrustBundle: "no longer good"}}
	wantError(t, in.ValidateUpdate(old.DeepCopy(), old, "").ToAggregate(), "")
	other := old.DeepCopy()
	other.Spec.SignerName, other.Name = "e.com/t", "e.com:t:x"
	wantError(t, in.ValidateUpdate(other, old, "").ToAggregate(), "spec.signerName: Invalid value")
}

// podRequestOf is a request that nothing is wrong with.
func podRequestOf(t *testing.T) *certificatesv1beta1.PodCertificateRequest {
	t.Helper()
	stub, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{}, keyOf("pod"))
	if err != nil {
		t.Fatal(err)
	}
	r := &certificatesv1beta1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r"}, Spec: certificatesv1beta1.PodCertificateRequestSpec{
		SignerName: "e.com/s", PodName: "p", PodUID: "1", ServiceAccountName: "a", ServiceAccountUID: "2", NodeName: "n", NodeUID: "3", StubPKCS10Request: stub,
	}}
	New(features.All()).Find(PodCertificateRequest).SetDefaults(r)
	return r
}

func TestPodCertificateRequest(t *testing.T) {
	in := New(features.All()).Find(PodCertificateRequest)
	type spec = certificatesv1beta1.PodCertificateRequestSpec
	small, err := ecdsa.ParseRawPrivateKey(elliptic.P224(), append(make([]byte, 27), 1))
	if err != nil {
		t.Fatal(err)
	}
	p224, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{}, small)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(keyOf("pod").Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, want string
		change     func(s *spec)
	}{
		{"good", "", func(*spec) {}},
		{"older proof", "", func(s *spec) {
			s.StubPKCS10Request, s.PKIXPublicKey, s.ProofOfPossession = nil, public, ed25519.Sign(keyOf("pod"), []byte("1"))
		}},
		{"older proof of another", "spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature", func(s *spec) {
			s.StubPKCS10Request, s.PKIXPublicKey, s.ProofOfPossession = nil, public, ed25519.Sign(keyOf("x"), []byte("1"))
		}},
		{"both", "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set", func(s *spec) { s.PKIXPublicKey = public }},
		{"garbage", "spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR", func(s *spec) { s.StubPKCS10Request = []byte("x") }},
		{"small curve", `spec.stubPKCS10Request: Invalid value: "curve P-224": elliptic public keys must use curve P256, P384, or P521`, func(s *spec) { s.StubPKCS10Request = p224 }},
		{"bad signature", "spec.stubPKCS10Request: Invalid value: invalid signature", func(s *spec) { s.StubPKCS10Request[len(s.StubPKCS10Request)-1] ^= 1 }},
		{"no uid", `spec.nodeUID: Invalid value: "": must not be empty`, func(s *spec) { s.NodeUID = "" }},
		{"name", `spec.podName: Invalid value: "P"`, func(s *spec) { s.PodName = "P" }},
		{"short", "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]", func(s *spec) { s.MaxExpirationSeconds = new(int32(60)) }},
		{"of Kubernetes", "must be in the range [3600, 86400]", func(s *spec) { s.SignerName, s.MaxExpirationSeconds = "kubernetes.io/s", new(int32(86401)) }},
		{"annotation", "spec.unverifiedUserAnnotations: Invalid value", func(s *spec) { s.UnverifiedUserAnnotations = map[string]string{"a": "b"} }},
	} {
		r := podRequestOf(t)
		tc.change(&r.Spec)
		if err := in.Validate(r, false).ToAggregate(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	r := podRequestOf(t)
	other := r.DeepCopy()
	other.Spec.PodName = "q"
	wantError(t, in.ValidateUpdate(other, r, "").ToAggregate(), "spec: Invalid value")
}

// TestPodCertificateStatus holds how a request may be decided.
func TestPodCertificateStatus(t *testing.T) {
	in := New(features.All()).Find(PodCertificateRequest)
	type status = certificatesv1beta1.PodCertificateRequestStatus
	condition := func(s *status, t string) {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Time{Time: noon}})
	}
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }
	issued := func(change func(c *x509.Certificate), more func(s *status)) func(s *status) {
		return func(s *status) {
			condition(s, "Issued")
			s.CertificateChain = certificateOf(t, "pod", change) + certificateOf(t, "ca", unchanged)
			s.NotBefore, s.NotAfter, s.BeginRefreshAt = at(0), at(2*time.Hour), at(time.Hour)
			more(s)
		}
	}
	for _, tc := range []struct {
		name, want  string
		old, change func(s *status)
	}{
		{"issued", "", nil, issued(unchanged, func(*status) {})},
		{"denied", "", nil, func(s *status) { condition(s, "Denied") }},
		{"failed with times", "non-condition status fields must be empty when denying or failing the PodCertificateRequest", nil, func(s *status) { condition(s, "Failed"); s.NotBefore = at(0) }},
		{"undecided", `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`, nil, func(s *status) { s.NotBefore = at(0) }},
		{"decided twice", "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed", func(s *status) { condition(s, "Denied") }, issued(unchanged, func(*status) {})},
		{"two ways", `status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type "Issued", "Denied", or "Failed"`, nil, func(s *status) { condition(s, "Denied"); condition(s, "Failed") }},
		{"another condition", `status.conditions.[0].type: Unsupported value: "Approved"`, nil, func(s *status) { condition(s, "Approved") }},
		{"not true", `status.conditions.[0].status: Unsupported value: "False"`, nil, func(s *status) { condition(s, "Denied"); s.Conditions[0].Status = "False" }},
		{"no reason", "status.conditions[0].reason: Required value", nil, func(s *status) { condition(s, "Denied"); s.Conditions[0].Reason = "" }},
		{"no chain", "issued certificate chain must contain at least one certificate", nil, issued(unchanged, func(s *status) { s.CertificateChain = "" })},
		{"of another key", "leaf certificate was not issued to the requested public key", nil, issued(unchanged, func(s *status) { s.CertificateChain = certificateOf(t, "x", unchanged) })},
		{"a key in the chain", "issued certificate chain must consist entirely of CERTFICATE PEM blocks", nil, issued(unchanged, func(s *status) { s.CertificateChain += "-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n" })},
		{"odd name", "leaf certificate's DNSName should not contain '..'", nil, issued(func(c *x509.Certificate) { c.DNSNames = []string{"a..b"} }, func(*status) {})},
		{"no refresh", "status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]", nil, issued(unchanged, func(s *status) { s.BeginRefreshAt = nil })},
		{"another end", "must be set to the NotAfter time encoded in the leaf certificate", nil, issued(unchanged, func(s *status) { s.NotAfter = at(3 * time.Hour) })},
		{"refresh at once", "must be at least 10 minutes after status.notBefore", nil, issued(unchanged, func(s *status) { s.BeginRefreshAt = at(time.Minute) })},
		{"refresh at the end", "must be at least 10 minutes before status.notAfter", nil, issued(unchanged, func(s *status) { s.BeginRefreshAt = at(115 * time.Minute) })},
		{"short", "leaf certificate lifetime must be >= 1 hour", nil, issued(func(c *x509.Certificate) { c.NotAfter = noon.Add(30 * time.Minute) }, func(s *status) { s.NotAfter, s.BeginRefreshAt = at(30*time.Minute), at(15*time.Minute) })},
		{"long", "leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)", nil, issued(func(c *x509.Certificate) { c.NotAfter = noon.Add(25 * time.Hour) }, func(s *status) { s.NotAfter = at(25 * time.Hour) })},
	} {
		old := podRequestOf(t)
		if tc.old != nil {
			tc.old(&old.Status)
		}
		r := old.DeepCopy()
		r.Status = status{}
		tc.change(&r.Status)
		if err := in.ValidateUpdate(r, old, "status").ToAggregate(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestGatedKinds: without their gates the kinds are not there.
func TestGatedKinds(t *testing.T) {
	off := New(features.Gates{})
	if off.Find(ClusterTrustBundle) != nil || off.Find(PodCertificateRequest) != nil || len(New(features.All()).All()) != len(off.All())+2 {
		t.Error("the gates don't decide")
	}
}
