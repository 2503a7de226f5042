package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
)

// api takes requests for certificates, and tells who asked.
type api struct {
	*httptest.Server
	t    *testing.T
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	mu   sync.Mutex
	life time.Duration
	// answer says what becomes of requests: "sign", "deny", "wait", or "unknown": of a client that the
	// API doesn't know.
	answer   string
	requests []*certificatesv1.CertificateSigningRequest
	// askers are clients by request: a token or the serial number of a certificate.
	askers []string
	serial int64
}

func newAPI(t *testing.T) *api {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "ca"}, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t: t, ca: ca, key: key, life: time.Hour, answer: "sign"}
	a.Server = httptest.NewUnstartedServer(a)
	a.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} // as kube-apiserver, which judges by itself
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// set changes what becomes of requests.
func (a *api) set(answer string, life time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer, a.life = answer, life
}

// seen returns the requests there were, and who asked for anything.
func (a *api) seen() ([]*certificatesv1.CertificateSigningRequest, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests), slices.Clone(a.askers)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if certs := r.TLS.PeerCertificates; len(certs) > 0 {
		who = fmt.Sprint(certs[0].SerialNumber)
	}
	a.askers = append(a.askers, who)
	w.Header().Set("Content-Type", "application/json")
	reply := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch {
	case r.URL.Path == "/healthz":
		_, _ = io.WriteString(w, "ok")
	case !strings.HasPrefix(r.URL.Path, "/apis/certificates.k8s.io/v1/certificatesigningrequests"):
		http.NotFound(w, r)
	case r.Method == http.MethodPost && a.answer == "unknown":
		w.WriteHeader(http.StatusUnauthorized)
		reply(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonUnauthorized, Code: 401})
	case r.Method == http.MethodPost:
		c := &certificatesv1.CertificateSigningRequest{}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, c)
		}
		if err != nil {
			a.t.Error(err)
			return
		}
		c.TypeMeta = typeMeta
		if c.Name == "" {
			c.Name = fmt.Sprintf("%s%d", c.GenerateName, len(a.requests))
		}
		c.UID, c.ResourceVersion = types.UID(fmt.Sprint(len(a.requests))), "1"
		for _, old := range a.requests {
			if old.Name == c.Name {
				w.WriteHeader(http.StatusConflict)
				reply(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonAlreadyExists, Code: 409})
				return
			}
		}
		a.requests = append(a.requests, c)
		reply(a.answered(c))
	case r.URL.Query().Get("watch") != "":
		// What there is, and then what it becomes.
		send := func(t string, c certificatesv1.CertificateSigningRequest) {
			reply(map[string]any{"type": t, "object": c})
			w.(http.Flusher).Flush()
		}
		for _, c := range a.selected(r) {
			send("ADDED", *c)
		}
		end := certificatesv1.CertificateSigningRequest{TypeMeta: typeMeta, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		send("BOOKMARK", end)
		for r.Context().Err() == nil {
			a.mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			a.mu.Lock()
			for _, c := range a.selected(r) {
				if was := len(c.Status.Conditions); len(a.answered(c).Status.Conditions) > was {
					send("MODIFIED", *c)
				}
			}
		}
	case strings.Contains(r.URL.Path, "certificatesigningrequests/"):
		for _, c := range a.requests {
			if strings.HasSuffix(r.URL.Path, "/"+c.Name) {
				reply(a.answered(c))
				return
			}
		}
		http.NotFound(w, r)
	default:
		list := &certificatesv1.CertificateSigningRequestList{TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, c := range a.selected(r) {
			list.Items = append(list.Items, *a.answered(c))
		}
		reply(list)
	}
}

var typeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}

// selected are the requests that somebody asks for.
func (a *api) selected(r *http.Request) []*certificatesv1.CertificateSigningRequest {
	var out []*certificatesv1.CertificateSigningRequest
	for _, c := range a.requests {
		if strings.Contains(r.URL.Query().Get("fieldSelector"), c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// answered is a request with what becomes of it.
func (a *api) answered(c *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	condition := func(t certificatesv1.RequestConditionType) {
		c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: t, Status: v1.ConditionTrue, Reason: "Test", Message: "by the test"}}
	}
	switch {
	case len(c.Status.Conditions) > 0 || a.answer == "wait":
	case a.answer == "deny":
		condition(certificatesv1.CertificateDenied)
	default:
		block, _ := pem.Decode(c.Spec.Request)
		req, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			a.t.Error(err)
			return c
		}
		a.serial++
		now := time.Now()
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(a.serial), Subject: req.Subject, DNSNames: req.DNSNames, IPAddresses: req.IPAddresses,
			NotBefore: now, NotAfter: now.Add(a.life), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		}, a.ca, req.PublicKey, a.key)
		if err != nil {
			a.t.Error(err)
			return c
		}
		c.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		condition(certificatesv1.CertificateApproved)
	}
	return c
}

// files writes a kubeconfig with a token, and returns a kubelet's files.
func (a *api) files() *Files {
	dir := a.t.TempDir()
	f := &Files{Kubeconfig: filepath.Join(dir, "kubeconfig"), Bootstrap: filepath.Join(dir, "bootstrap"), Dir: filepath.Join(dir, "pki")}
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: a.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: "bootstrap"}}, Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	}, f.Bootstrap)
	if err != nil {
		a.t.Fatal(err)
	}
	return f
}

// until waits for what comes by itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for: " + what)
		}
	}
}

// TestRequest gets a first certificate: the kubeconfig that is written works with it, a second start
// asks for nothing, one with an expired certificate asks again.
func TestRequest(t *testing.T) {
	a := newAPI(t)
	f := a.files()
	a.set("sign", time.Second)
	if err := f.Request(context.Background(), "n"); err != nil {
		t.Fatal(err)
	}
	reqs, who := a.seen()
	if len(reqs) != 1 || who[len(who)-1] != "bootstrap" {
		t.Fatalf("%d requests, asked by %v", len(reqs), who)
	}
	spec := reqs[0].Spec
	if spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName || !slices.Equal(spec.Usages, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}) ||
		!strings.HasPrefix(reqs[0].Name, "node-csr-") {
		t.Errorf("asked for %s: %+v", reqs[0].Name, spec)
	}
	cfg, err := load(f.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/healthz").DoRaw(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, who := a.seen(); who[len(who)-1] != "1" {
		t.Errorf("asked as %s with the kubeconfig", who[len(who)-1])
	}
	cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := cert.Leaf.Subject.String(); got != "CN=system:node:n,O=system:nodes" {
		t.Errorf("subject %s", got)
	}
	if err := f.Request(context.Background(), "n"); err != nil {
		t.Fatal(err)
	}
	if reqs, _ := a.seen(); len(reqs) != 1 {
		t.Errorf("%d requests after a second start", len(reqs))
	}
	time.Sleep(time.Until(cert.Leaf.NotAfter) + time.Millisecond)
	a.mu.Lock()
	a.requests = nil // the key is the same, and so would be the request
	a.mu.Unlock()
	if err := f.Request(context.Background(), "n"); err != nil {
		t.Fatal(err)
	}
	if reqs, _ := a.seen(); len(reqs) != 1 {
		t.Errorf("%d requests when the certificate has expired", len(reqs))
	}
}

// TestRequestWaits is given up while the certificate is waited for, and starts again: it asks for the
// same one. One that is denied is an error.
func TestRequestWaits(t *testing.T) {
	a := newAPI(t)
	f := a.files()
	a.set("wait", time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Request(ctx, "n") }()
	until(t, "a request", func() bool { reqs, _ := a.seen(); return len(reqs) == 1 })
	cancel()
	if err := <-done; err == nil {
		t.Fatal("no error when given up")
	}
	if _, err := os.Stat(f.Kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a kubeconfig without a certificate: %v", err)
	}
	a.set("sign", time.Hour)
	if err := f.Request(context.Background(), "n"); err != nil {
		t.Fatal(err)
	}
	if reqs, _ := a.seen(); len(reqs) != 1 {
		t.Errorf("%d requests", len(reqs))
	}
	if _, err := os.Stat(filepath.Join(f.Dir, pendingKey)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pending key is still there: %v", err)
	}
	f = a.files()
	a.set("deny", time.Hour)
	if err := f.Request(context.Background(), "other"); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("denied: %v", err)
	}
}

// rotating starts the rotation of a client's certificate with quick checks.
func rotating(t *testing.T, f *Files) (*Client, *rest.Config, *Metrics, <-chan error) {
	t.Helper()
	m := NewMetrics()
	c, cfg, err := NewClient(f, "n", "application/json", m)
	if err != nil {
		t.Fatal(err)
	}
	c.first, c.check, c.patience = 5*time.Millisecond, 10*time.Millisecond, 300*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done, ended := make(chan error, 1), make(chan struct{})
	go func() { done <- c.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return c, cfg, m, done
}

// TestRotation bootstraps in the background, with certificates that live for 4 s: the kubelet's
// requests go on, on new connections, with the new certificate, which was asked for with the old.
func TestRotation(t *testing.T) {
	a := newAPI(t)
	a.set("sign", 4*time.Second)
	c, cfg, m, _ := rotating(t, a.files())
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	asker := func() string {
		_, _ = client.Discovery().RESTClient().Get().AbsPath("/healthz").DoRaw(context.Background())
		_, who := a.seen()
		return who[len(who)-1]
	}
	until(t, "the first certificate", func() bool { return asker() == "1" })
	first := c.Current().Leaf
	until(t, "the second certificate", func() bool { return asker() == "2" })
	// A late machine makes it later, never earlier.
	if at := time.Since(first.NotBefore).Seconds() / first.NotAfter.Sub(first.NotBefore).Seconds(); at < 0.7 {
		t.Errorf("rotated after %.2f of its life", at)
	}
	a.mu.Lock()
	who := slices.Clone(a.askers)
	a.mu.Unlock()
	if slices.Index(who, "2") < 0 || !slices.Contains(who, "bootstrap") {
		t.Errorf("asked as %v", who)
	}
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	if got := strings.Join(names, " "); got != "kubelet_certificate_manager_client_expiration_renew_errors kubelet_certificate_manager_client_ttl_seconds" {
		t.Errorf("families: %s", got)
	}
	if left := families[1].Metric[0].Gauge.GetValue(); left < 2 || left > 4 {
		t.Errorf("%v s left of 4", left)
	}
}

// TestSignerAway lets a certificate expire: the kubelet ends, since the API answers and gives none.
func TestSignerAway(t *testing.T) {
	a := newAPI(t)
	a.set("sign", time.Second)
	f := a.files()
	c, _, _, done := rotating(t, f)
	until(t, "the first certificate", func() bool { return c.Current() != nil })
	a.set("unknown", time.Second)
	if err := <-done; !errors.Is(err, errNone) { // one that has expired is none
		t.Errorf("ended with %v", err)
	}
}

// TestNoCertificate is never given one.
func TestNoCertificate(t *testing.T) {
	for _, tc := range []struct {
		healthy bool
		cert    *tls.Certificate
		after   time.Duration
		want    error
	}{
		{true, nil, 4 * time.Minute, nil},
		{true, nil, 6 * time.Minute, errNone},
		{false, nil, 6 * time.Minute, nil},
		{true, &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(1000, 0)}}, 999 * time.Second, nil},
		{true, &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(1000, 0)}}, 1001 * time.Second, errExpired},
		{false, &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(1000, 0)}}, 1001 * time.Second, nil},
	} {
		c := &Client{Manager: still{healthy: tc.healthy}, patience: patience}
		if err := c.judge(tc.cert, time.Unix(0, 0).Add(tc.after), time.Unix(0, 0)); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// still is a manager that does nothing.
type still struct{ healthy bool }

func (still) Start()                    {}
func (still) Stop()                     {}
func (still) Current() *tls.Certificate { return nil }
func (s still) ServerHealthy() bool     { return s.healthy }

// TestServing asks for nothing while no address is known, then for the addresses, and again when they
// change.
func TestServing(t *testing.T) {
	a := newAPI(t)
	f := a.files()
	cfg, err := load(f.Bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var addresses []v1.NodeAddress
	set := func(all ...v1.NodeAddress) {
		mu.Lock()
		defer mu.Unlock()
		addresses = all
	}
	m, err := NewServing(Serving{Client: client, Node: "n", Dir: f.Dir, Metrics: NewMetrics(), Addresses: func() []v1.NodeAddress {
		mu.Lock()
		defer mu.Unlock()
		return addresses
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	defer m.Stop()
	time.Sleep(100 * time.Millisecond)
	if reqs, _ := a.seen(); len(reqs) != 0 || m.Current() != nil {
		t.Fatalf("%d requests without an address", len(reqs))
	}
	host := v1.NodeAddress{Type: v1.NodeHostName, Address: "n"}
	set(v1.NodeAddress{Type: v1.NodeInternalIP, Address: "10.0.0.1"}, host)
	until(t, "a certificate", func() bool { return m.Current() != nil })
	set(v1.NodeAddress{Type: v1.NodeInternalIP, Address: "10.0.0.2"}, host)
	until(t, "a certificate for the new address", func() bool { return m.Current().Leaf.VerifyHostname("10.0.0.2") == nil })
	reqs, _ := a.seen()
	if s := reqs[0].Spec; s.SignerName != certificatesv1.KubeletServingSignerName || !slices.Contains(s.Usages, certificatesv1.UsageServerAuth) {
		t.Errorf("asked for %+v", s)
	}
	if leaf := m.Current().Leaf; leaf.VerifyHostname("n") != nil || leaf.VerifyHostname("10.0.0.1") == nil || leaf.Subject.CommonName != "system:node:n" {
		t.Errorf("got %v %v of %s", leaf.DNSNames, leaf.IPAddresses, leaf.Subject)
	}
}

func TestSplit(t *testing.T) {
	names, ips := split([]v1.NodeAddress{
		{Type: v1.NodeHostName, Address: "10.0.0.9"}, {Type: v1.NodeInternalIP, Address: "10.0.0.9"}, {Type: v1.NodeInternalIP, Address: "fd00::1"},
		{Type: v1.NodeExternalIP, Address: "nonsense"}, {Type: v1.NodeHostName, Address: "b"}, {Type: v1.NodeInternalDNS, Address: "b"}, {Type: v1.NodeExternalDNS, Address: "a"}, {Type: v1.NodeHostName},
	})
	if got := fmt.Sprint(names, ips); got != "[a b] [10.0.0.9 fd00::1]" {
		t.Error(got)
	}
	if template("n", []v1.NodeAddress{{Type: v1.NodeHostName, Address: "b"}}) != nil {
		t.Error("names alone are enough")
	}
}

// TestRequestName holds the name to upstream's, by a digest made with its code.
func TestRequestName(t *testing.T) {
	key := &ecdsa.PublicKey{Curve: elliptic.P256()}
	key.X, key.Y = elliptic.P256().Params().Gx, elliptic.P256().Params().Gy
	name, err := requestName(key, &pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}}, []certificatesv1.KeyUsage{"digital signature", "client auth"})
	if err != nil {
		t.Fatal(err)
	}
	if name != "node-csr-CossMtwTQ5pmIC0qP2lyYqs8HmNWJ4KKejUaKxyYN8I" {
		t.Error(name)
	}
}
