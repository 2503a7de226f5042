package certificates

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/internal/pki"
)

// request is what a client sends.
func request(t *testing.T, name string, subject pkix.Name, signer string, usages ...certificatesv1.KeyUsage) *csr {
	t.Helper()
	der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: subject}, pki.Key(7, name))
	if err != nil {
		t.Fatal(err)
	}
	return &csr{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: usages, ExpirationSeconds: new(int32(3600))}}
}

// run asks for certificates, approves what nobody else does, and returns the requests as
// they are a minute and a day later.
func run(t *testing.T, requests ...*csr) (soon, later map[string]*csr, ca *pki.CA) {
	t.Helper()
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	defer l.Close()
	srv := apiserver.New(apiserver.Options{Loop: l})
	ca = srv.Authority()
	group := l.NewGroup("manager")
	opts := func() controller.Options {
		return controller.Options{Group: group, API: srv.Component("certificates", -1, 0)}
	}
	faults := &Faults{}
	NewApprover(ApproverOptions{Options: opts(), Faults: faults})
	NewSigner(SignerOptions{Options: opts(), CA: srv.Authority, Faults: faults})
	cleaner := NewCleaner(opts())
	if cleaner.timer.Set() {
		t.Error("the cleaner waits for nothing")
	}
	for _, r := range requests {
		made, err := srv.Create(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName {
			c := made.DeepCopyObject().(*csr)
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue}}
			if _, err := srv.Update(c, "approval"); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := func(after time.Duration) map[string]*csr {
		if err := l.RunUntil(loop.Epoch().Add(after)); err != nil {
			t.Fatal(err)
		}
		out := map[string]*csr{}
		for _, c := range apiserver.Objects[*csr](srv.Store(), apiserver.KindCertificateSigningRequest) {
			out[c.Name] = c
		}
		return out
	}
	soon = state(time.Minute)
	later = state(30 * time.Hour)
	if len(later) == 0 && cleaner.timer.Set() {
		t.Error("the cleaner waits for nothing, afterwards")
	}
	return soon, later, ca
}

func TestSigning(t *testing.T) {
	nodes := pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}
	requests := func() []*csr {
		return []*csr{
			request(t, "user", pkix.Name{CommonName: "u"}, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.UsageClientAuth),
			request(t, "wrong", pkix.Name{CommonName: "u"}, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.UsageServerAuth),
			request(t, "kubelet", nodes, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature),
			request(t, "no-kubelet", pkix.Name{CommonName: "x"}, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature),
			request(t, "others", nodes, "example.com/signer", certificatesv1.UsageClientAuth),
		}
	}
	soon, later, ca := run(t, requests()...)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	for name, common := range map[string]string{"user": "u", "kubelet": "system:node:a"} {
		block, _ := pem.Decode(soon[name].Status.Certificate)
		if block == nil {
			t.Errorf("%s has no certificate: %+v", name, soon[name].Status)
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		at := loop.Epoch().Add(time.Minute)
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := cert.NotAfter.Sub(at); cert.Subject.CommonName != common || left > time.Hour || left < 58*time.Minute {
			t.Errorf("%s: %v until %v", name, cert.Subject, cert.NotAfter)
		}
	}
	if c := soon["wrong"].Status.Conditions; len(c) != 2 || c[1].Type != certificatesv1.CertificateFailed || c[1].Message != "invalid usage for client certificate: server auth" {
		t.Errorf("wrong: %+v", c)
	}
	for _, name := range []string{"no-kubelet", "others"} {
		if len(soon[name].Status.Conditions) > 0 {
			t.Errorf("%s: %+v", name, soon[name].Status)
		}
	}
	if len(later) > 0 {
		t.Errorf("after a day there are %d", len(later))
	}
	again, _, _ := run(t, requests()...)
	if !bytes.Equal(again["user"].Status.Certificate, soon["user"].Status.Certificate) {
		t.Error("another run has another certificate")
	}
}

// TestFaults: a fault denies the requests of one signer and node, another has them wait; what waits
// is signed when that is over. Serving certificates are approved where that is said.
func TestFaults(t *testing.T) {
	for _, serving := range []bool{true, false} {
		testFaults(t, serving)
	}
}

func testFaults(t *testing.T, approve bool) {
	t.Helper()
	const client, serving = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	defer l.Close()
	srv := apiserver.New(apiserver.Options{Loop: l})
	group, faults := l.NewGroup("manager"), &Faults{}
	opts := func() controller.Options {
		return controller.Options{Group: group, API: srv.Component("certificates", -1, 0)}
	}
	NewApprover(ApproverOptions{Options: opts(), Faults: faults, Serving: approve})
	NewSigner(SignerOptions{Options: opts(), CA: srv.Authority, Faults: faults, Duration: time.Hour})
	hits := 0
	faults.Add(Fault{Signer: client, Node: "denied", Deny: true, OnHit: func() { hits++ }})
	remove := faults.Add(Fault{Signer: client, Node: "late", Delay: time.Hour})
	faults.Add(Fault{Signer: client, Node: "later", Delay: 2 * time.Minute})
	faults.Add(Fault{Signer: serving, Node: "fine", Deny: true})
	faults.Add(Fault{Signer: serving, Node: "fine", Delay: time.Hour})
	for _, node := range []string{"denied", "late", "later", "fine", "serving"} {
		signer, usage := client, certificatesv1.UsageClientAuth
		if node == "serving" {
			signer, usage = serving, certificatesv1.UsageServerAuth
		}
		r := request(t, node, pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, signer, usage, certificatesv1.UsageDigitalSignature)
		r.Spec.ExpirationSeconds = nil
		if signer == serving {
			der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:serving", Organization: []string{"system:nodes"}}, DNSNames: []string{"serving"}}, pki.Key(7, node))
			if err != nil {
				t.Fatal(err)
			}
			r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		}
		if _, err := srv.Create(r); err != nil {
			t.Fatal(err)
		}
	}
	check := func(after time.Duration, issued map[string]bool) {
		t.Helper()
		if err := l.RunUntil(loop.Epoch().Add(after)); err != nil {
			t.Fatal(err)
		}
		for _, c := range apiserver.Objects[*csr](srv.Store(), apiserver.KindCertificateSigningRequest) {
			if got := len(c.Status.Certificate) > 0; got != issued[c.Name] {
				t.Errorf("after %v %s is issued: %v", after, c.Name, got)
			}
			if got := has(c, certificatesv1.CertificateDenied); got != (c.Name == "denied") {
				t.Errorf("after %v %s is denied: %v", after, c.Name, got)
			}
			if block, _ := pem.Decode(c.Status.Certificate); block != nil {
				cert, err := x509.ParseCertificate(block.Bytes)
				if err != nil || cert.NotAfter.Sub(cert.NotBefore) != time.Hour+backdate {
					t.Errorf("%s is good from %v to %v, %v", c.Name, cert.NotBefore, cert.NotAfter, err)
				}
			}
		}
	}
	check(time.Minute, map[string]bool{"fine": true, "serving": approve})
	check(3*time.Minute, map[string]bool{"fine": true, "serving": approve, "later": true})
	remove()
	check(4*time.Minute, map[string]bool{"fine": true, "serving": approve, "later": true, "late": true})
	if hits == 0 {
		t.Error("no hit was told of")
	}
}

// TestOver: how long requests stay, by what became of them.
func TestOver(t *testing.T) {
	const approved, denied, failed = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed
	now := loop.Epoch().Add(100 * time.Hour)
	for _, tt := range []struct {
		name   string
		as     []certificatesv1.RequestConditionType
		issued bool
		stays  time.Duration
	}{
		{"open", nil, false, 24 * time.Hour},
		{"approved", []certificatesv1.RequestConditionType{approved}, false, 24 * time.Hour},
		{"approved and issued", []certificatesv1.RequestConditionType{approved}, true, time.Hour},
		{"denied", []certificatesv1.RequestConditionType{denied}, false, time.Hour},
		{"approved, but the signing failed", []certificatesv1.RequestConditionType{approved, failed}, false, time.Hour},
	} {
		for age, want := range map[time.Duration]bool{tt.stays: false, tt.stays + time.Second: true} {
			at := metav1.NewTime(now.Add(-age))
			c := &csr{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}}
			for _, as := range tt.as {
				c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: as, Status: v1.ConditionTrue, LastUpdateTime: at})
			}
			if tt.issued {
				c.Status.Certificate = []byte("no certificate that could expire")
			}
			if got := over(c, now); got != want {
				t.Errorf("%s, after %v: to be deleted: %v", tt.name, age, got)
			}
		}
	}
}
