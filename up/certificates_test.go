package up

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestClientCertificates has a user ask for a certificate and come in by it, until it has
// ended by the cluster's time.
func TestClientCertificates(t *testing.T) {
	c := start(t, Options{Speed: 100})
	admin := kubernetes.NewForConfigOrDie(c.Config())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(name string, groups ...string) (*certificatesv1.CertificateSigningRequest, error) {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return admin.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
				ExpirationSeconds: new(int32(3600)),
			},
		}, metav1.CreateOptions{})
	}
	if _, err := ask("root", "system:masters"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "with system:masters group is not allowed") {
		t.Errorf("a certificate for administrators: %v", err)
	}
	request, err := ask("jane", "dev", "ops")
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue, Reason: "Test"}}
	if _, err = admin.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), "jane", request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var signed []byte
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		r, err := admin.CertificatesV1().CertificateSigningRequests().Get(ctx, "jane", metav1.GetOptions{})
		if err == nil {
			signed = r.Status.Certificate
		}
		return len(signed) > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	if config, err := admin.CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{}); err != nil || config.Data["ca.crt"] != string(c.Config().CAData) {
		t.Errorf("pods don't know the API by what clients do: %v, %v", config, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	who := func(certificate []byte) (*authenticationv1.SelfSubjectReview, error) {
		jane := kubernetes.NewForConfigOrDie(&rest.Config{Host: c.URL(), TLSClientConfig: rest.TLSClientConfig{
			CAData: c.Config().CAData, CertData: certificate, KeyData: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})}})
		return jane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	}
	if r, err := who(signed); err != nil || r.Status.UserInfo.Username != "jane" || !slices.Equal(r.Status.UserInfo.Groups, []string{"dev", "ops", "system:authenticated"}) {
		t.Errorf("who comes by the certificate: %+v, %v", r, err)
	}
	if r, err := who(selfSigned(t, key)); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate that nobody signed: %+v, %v", r, err)
	}
	if err := c.Step(t.Context(), 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	if r, err := who(signed); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate that has ended: %+v, %v", r, err)
	}
}

// selfSigned is a certificate that says the same and is signed by its own key.
func selfSigned(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	own := &x509.Certificate{
		Subject: pkix.Name{CommonName: "jane"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
