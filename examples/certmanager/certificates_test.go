package certmanager

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiutil "github.com/cert-manager/cert-manager/pkg/api/util"
	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/drydock-sim/drydock/drydocktest"
)

// newScheme returns a scheme with cert-manager's kinds and what is built in.
func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, cmv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// definitions are cert-manager's own, as its module has them.
func definitions(t *testing.T) []string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds")}
}

// run runs a test beside cert-manager, with an issuer "ca" in the namespace default whose own
// certificate is self-signed.
func run(t *testing.T, o drydocktest.Options, body func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client)) {
	scheme := newScheme(t)
	o.CRDs = definitions(t)
	drydocktest.Run(t, o, func(t *testing.T, c *drydocktest.Cluster) {
		start(c)
		body(t, c, withIssuer(t, c, scheme))
	})
}

func start(c *drydocktest.Cluster) {
	c.Go("cert-manager", func(ctx context.Context) error { return Run(ctx, c.Kubeconfig("cert-manager")) })
}

func withIssuer(t *testing.T, c *drydocktest.Cluster, scheme *runtime.Scheme) *drydocktest.Client {
	user := c.Client("user", scheme)
	root := certificate("root", "self-signed")
	root.Spec.IsCA, root.Spec.Duration = true, &metav1.Duration{Duration: 10 * 365 * 24 * time.Hour}
	for _, obj := range []drydocktest.Object{
		&cmv1.Issuer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "self-signed"},
			Spec:       cmv1.IssuerSpec{IssuerConfig: cmv1.IssuerConfig{SelfSigned: &cmv1.SelfSignedIssuer{}}},
		},
		root,
		&cmv1.Issuer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ca"},
			Spec:       cmv1.IssuerSpec{IssuerConfig: cmv1.IssuerConfig{CA: &cmv1.CAIssuer{SecretName: "root"}}},
		},
	} {
		if err := user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return user
}

func certificate(name, issuer string) *cmv1.Certificate {
	return &cmv1.Certificate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: cmv1.CertificateSpec{
			SecretName: name, CommonName: name, DNSNames: []string{name + ".example.com"},
			PrivateKey: &cmv1.CertificatePrivateKey{Algorithm: cmv1.ECDSAKeyAlgorithm, Size: 256},
			IssuerRef:  cmmeta.IssuerReference{Name: issuer, Kind: "Issuer"},
		},
	}
}

// get reads a certificate.
func get(t *testing.T, user *drydocktest.Client, name string) *cmv1.Certificate {
	out := &cmv1.Certificate{}
	if err := user.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// isReady reports whether a certificate is issued and up to date.
func isReady(c *cmv1.Certificate) bool {
	return apiutil.CertificateHasCondition(c, cmv1.CertificateCondition{Type: cmv1.CertificateConditionReady, Status: cmmeta.ConditionTrue})
}

// secret is what a certificate is kept in.
func secret(t *testing.T, user *drydocktest.Client, name string) *v1.Secret {
	out := &v1.Secret{}
	if err := user.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// leaf is the certificate of a secret.
func leaf(t *testing.T, s *v1.Secret) *x509.Certificate {
	block, _ := pem.Decode(s.Data[v1.TLSCertKey])
	if block == nil {
		t.Fatalf("%s has no certificate", s.Name)
	}
	out, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestIssuesThroughCrashes: a certificate is issued, and its chain is good, though
// cert-manager is killed again and again while it is at it.
func TestIssuesThroughCrashes(t *testing.T) {
	run(t, drydocktest.Options{}, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		if err := user.Create(t.Context(), certificate("web", "ca")); err != nil {
			t.Fatal(err)
		}
		crashes := 0
		for ; !isReady(get(t, user, "web")) && crashes < 12; crashes++ {
			time.Sleep(time.Duration(crashes) * 15 * time.Millisecond)
			c.Crash("cert-manager")
		}
		if crashes < 5 {
			t.Errorf("it was issued after %d crashes: they come too late", crashes)
		}
		c.Eventually(t, 10*time.Minute, func() bool { return isReady(get(t, user, "web")) })
		time.Sleep(time.Minute)
		roots := x509.NewCertPool()
		roots.AddCert(leaf(t, secret(t, user, "root")))
		if _, err := leaf(t, secret(t, user, "web")).Verify(x509.VerifyOptions{Roots: roots, DNSName: "web.example.com", CurrentTime: time.Now()}); err != nil {
			t.Error(err)
		}
		requests := &cmv1.CertificateRequestList{}
		if err := user.List(t.Context(), requests, "default", metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d crashes, %d requests for 2 certificates, %d of clients", crashes, len(requests.Items), c.Requests())
	})
}

// TestRenewsThroughAPartition: a certificate of a day is renewed after 16 hours, though
// cert-manager doesn't reach the API from an hour before that to two hours after.
func TestRenewsThroughAPartition(t *testing.T) {
	run(t, drydocktest.Options{}, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		web := certificate("web", "ca")
		web.Spec.Duration = &metav1.Duration{Duration: 24 * time.Hour}
		if err := user.Create(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		c.Eventually(t, 10*time.Minute, func() bool { return isReady(get(t, user, "web")) })
		first := leaf(t, secret(t, user, "web"))
		due := get(t, user, "web").Status.RenewalTime.Time
		time.Sleep(time.Until(due) - time.Hour)
		if now := leaf(t, secret(t, user, "web")); !now.Equal(first) {
			t.Errorf("renewed before %v", due)
		}
		c.API().Partition("cert-manager", 3*time.Hour)
		time.Sleep(2*time.Hour + 30*time.Minute)
		if now := leaf(t, secret(t, user, "web")); !now.Equal(first) {
			t.Error("renewed in a partition")
		}
		time.Sleep(90 * time.Minute)
		if now := leaf(t, secret(t, user, "web")); now.Equal(first) || !now.NotAfter.After(first.NotAfter) {
			t.Errorf("not renewed by %v, due %v", time.Now(), due)
		}
		t.Logf("%d requests of clients in %v", c.Requests(), time.Since(first.NotBefore))
	})
}

// TestIssuesThroughLostAnswers: while half of the answers to writes are lost and its
// caches are stale, no more than one request is made for a revision, and all is well in the
// end.
func TestIssuesThroughLostAnswers(t *testing.T) {
	run(t, drydocktest.Options{}, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		c.Eventually(t, 10*time.Minute, func() bool { return isReady(get(t, user, "root")) })
		for _, verb := range []string{"create", "update", "patch"} {
			c.API().Fault(drydocktest.Fault{Client: "cert-manager", Verb: verb, LoseAnswer: true, Probability: 0.5, For: 2 * time.Minute})
		}
		c.API().Fault(drydocktest.Fault{Client: "cert-manager", Verb: "watch", Latency: 3 * time.Second, For: 2 * time.Minute})
		for _, name := range []string{"a", "b", "c"} {
			if err := user.Create(t.Context(), certificate(name, "ca")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Minute)
		requests := &cmv1.CertificateRequestList{}
		if err := user.List(t.Context(), requests, "default", metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		per := map[string]int{}
		for i := range requests.Items {
			per[requests.Items[i].Annotations[cmv1.CertificateNameKey]]++
		}
		for _, name := range []string{"a", "b", "c"} {
			if cert := get(t, user, name); !isReady(cert) {
				t.Errorf("%s is not ready: %+v", name, cert.Status)
			}
		}
		t.Logf("requests by certificate: %v", per)
	})
}
