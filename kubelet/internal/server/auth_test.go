//go:build linux

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/real"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// absent is a kubelet that does not answer.
type absent struct{}

func (absent) Run(context.Context, func(context.Context, *kubelet.Kubelet) error) error {
	return real.ErrNoAnswer
}
func (absent) SyncLoopHealthy() error { return nil }

var _ Handle = (*real.Handle)(nil)

func TestSubresources(t *testing.T) {
	for p, want := range map[string]string{
		"/pods": "pods proxy", "/pods/": "pods proxy", "/podsx": "proxy", "/runningpods/": "pods proxy", "/healthz/ping": "healthz proxy",
		"/configz": "configz proxy", "/flagz": "configz", "/statusz": "statusz", "/stats/summary": "stats", "/metrics/cadvisor": "metrics",
		"/metrics": "metrics", "/logs/x": "log", "/checkpoint/a/b/c": "checkpoint", "/exec/a/b/c": "proxy", "/run": "proxy", "/": "proxy",
		"/pods/../exec/a/b/c": "pods proxy",
	} {
		if got := strings.Join(subresources(p), " "); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
}

// webhookConfig asks the API about everything.
func webhookConfig() *kubeletconfig.KubeletConfiguration {
	c := &kubeletconfig.KubeletConfiguration{}
	c.Authentication.Anonymous.Enabled = ptr.To(false)
	c.Authentication.Webhook.Enabled = ptr.To(true)
	c.Authentication.Webhook.CacheTTL = metav1.Duration{Duration: time.Minute}
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	c.Authorization.Webhook.CacheAuthorizedTTL = metav1.Duration{Duration: time.Minute}
	c.Authorization.Webhook.CacheUnauthorizedTTL = metav1.Duration{Duration: time.Minute}
	return c
}

// TestAuth asks with tokens: the API knows ann, who may get nodes/metrics and
// nodes/pods, and bob, who may do nothing. Texts are upstream's; each question is asked
// once.
func TestAuth(t *testing.T) {
	var tokens, reviews atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var answer any
		switch path.Base(req.URL.Path) {
		case "tokenreviews":
			tokens.Add(1)
			r := &authenticationv1.TokenReview{}
			answer = r
			if err := json.NewDecoder(req.Body).Decode(r); err != nil {
				t.Error(err)
			}
			if r.Spec.Token == "ann" || r.Spec.Token == "bob" {
				r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: r.Spec.Token}}
			}
		case "subjectaccessreviews":
			reviews.Add(1)
			r := &authorizationv1.SubjectAccessReview{}
			answer = r
			if err := json.NewDecoder(req.Body).Decode(r); err != nil {
				t.Error(err)
			}
			at := r.Spec.ResourceAttributes
			r.Status.Allowed = r.Spec.User == "ann" && at.Verb == "get" && at.Resource == "nodes" && at.Name == "n" && slices.Contains([]string{"metrics", "pods"}, at.Subresource)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer api.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	a, err := newAuth("n", webhookConfig(), client)
	if err != nil {
		t.Fatal(err)
	}
	h := server.New(server.Options{Host: host{absent{}}, Config: webhookConfig(), Checks: []server.Check{server.Ping()}, Filter: a.filter, Logs: logReader{absent{}}})
	for range 2 {
		for _, tc := range []struct {
			method, path, token string
			code                int
			body                string
		}{
			{"GET", "/metrics", "", 401, "Unauthorized"},
			{"GET", "/metrics", "eve", 401, "Unauthorized"},
			{"GET", "/metrics", "bob", 403, "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[metrics])\n"},
			{"GET", "/pods", "bob", 403, "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"},
			{"POST", "/run/a/b/c?cmd=x", "ann", 403, "Forbidden (user=ann, verb=create, resource=nodes, subresource(s)=[proxy])\n"},
			{"GET", "/healthz", "ann", 403, "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[healthz proxy])\n"},
			{"GET", "/containerLogs/a/b/c", "", 401, "Unauthorized"},
			{"GET", "/pods", "ann", 500, real.ErrNoAnswer.Error()},
			{"GET", "/nope", "", 404, "404 page not found\n"},
		} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(tc.method, tc.path, nil)
			if tc.token != "" {
				r.Header.Set("Authorization", "Bearer "+tc.token)
			}
			h.ServeHTTP(w, r)
			if w.Code != tc.code || w.Body.String() != tc.body {
				t.Errorf("%s %s of %q: %d %q, want %d %q", tc.method, tc.path, tc.token, w.Code, w.Body, tc.code, tc.body)
			}
		}
	}
	if n := tokens.Load(); n != 3 {
		t.Errorf("%d tokens were reviewed, want 3", n)
	}
	// bob: metrics, pods, proxy; ann: create of proxy, healthz, get of proxy, pods.
	if n := reviews.Load(); n != 7 {
		t.Errorf("%d accesses were reviewed, want 7", n)
	}
}

// TestStandalone holds that nobody is asked where there is nobody to ask.
func TestStandalone(t *testing.T) {
	if _, err := newAuth("n", webhookConfig(), nil); err == nil || err.Error() != "no client provided, cannot use webhook authentication" {
		t.Error(err)
	}
	c := webhookConfig()
	c.Authentication.Webhook.Enabled, c.Authentication.Anonymous.Enabled = ptr.To(false), ptr.To(true)
	if _, err := newAuth("n", c, nil); err == nil || err.Error() != "no client provided, cannot use webhook authorization" {
		t.Error(err)
	}
}

// TestListen serves over TLS, with a certificate that is made, to a client with a
// certificate and to ones without, and on the read-only port; idle and slow clients keep nobody
// from being served.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	ca, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	cert, keyPEM, err := certutil.GenerateSelfSignedCertKey("ann", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{ca: cert, key: keyPEM} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &kubeletconfig.KubeletConfiguration{Address: "127.0.0.1", Port: freePort(t), ReadOnlyPort: freePort(t)}
	c.Authentication.Anonymous.Enabled = ptr.To(false)
	c.Authentication.X509.ClientCAFile = ca
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	s, err := New(Options{Config: c, NodeName: "n", Hostname: "host", CertDir: filepath.Join(dir, "pki")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, absent{}, []server.Check{server.Ping()}) }()
	address := fmt.Sprintf("127.0.0.1:%d", c.Port)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	// Half a handshake, and connections on which nothing is said.
	for range 200 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write([]byte{22, 3, 1})
	}
	made, err := os.ReadFile(filepath.Join(dir, "pki", "kubelet.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(made)
	pair, err := tls.X509KeyPair(cert, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	get := func(config *tls.Config, url string) (int, string) {
		t.Helper()
		tr := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: tr, Timeout: 20 * time.Second}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	trust := &tls.Config{RootCAs: roots, ServerName: "host"}
	if code, body := get(trust, "https://"+address+"/healthz"); code != 401 || body != "Unauthorized" {
		t.Errorf("without a certificate: %d %q", code, body)
	}
	withCert := trust.Clone()
	withCert.Certificates = []tls.Certificate{pair}
	if code, body := get(withCert, "https://"+address+"/healthz"); code != 401 || body != "Unauthorized" {
		t.Errorf("with one that is for servers: %d %q", code, body)
	}
	if code, body := get(nil, fmt.Sprintf("http://127.0.0.1:%d/healthz", c.ReadOnlyPort)); code != 200 || body != "ok" {
		t.Errorf("read-only: %d %q", code, body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestServingCertificate holds that a kubelet which is to ask for its certificate makes none by
// itself, and serves nobody before it has one; one that it had is used.
func TestServingCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key, err := certutil.GenerateSelfSignedCertKey("mine", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair := filepath.Join(dir, "pair.pem")
	if err := os.WriteFile(pair, append(cert, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ file, want string }{{"", "tls: internal error"}, {pair, ""}} {
		c := &kubeletconfig.KubeletConfiguration{ServerTLSBootstrap: true, TLSCertFile: tc.file, TLSPrivateKeyFile: tc.file}
		c.Authentication.Anonymous.Enabled, c.Authorization.Mode = ptr.To(true), kubeletconfig.KubeletAuthorizationModeAlwaysAllow
		pki := filepath.Join(t.TempDir(), "pki")
		s, err := New(Options{Config: c, NodeName: "n", Hostname: "host", CertDir: pki})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(pki, "kubelet.crt")); err == nil {
			t.Error("a certificate was made")
		}
		l, err := tls.Listen("tcp", "127.0.0.1:0", s.tls)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_ = conn.(*tls.Conn).HandshakeContext(context.Background())
				_ = conn.Close()
			}
		}()
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		switch {
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("without a certificate: %v", err)
		case tc.want == "" && err != nil:
			t.Errorf("with a certificate: %v", err)
		case err == nil:
			if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; !strings.HasPrefix(got, "mine") {
				t.Errorf("served with %s", got)
			}
			_ = conn.Close()
		}
		_ = l.Close()
		ended := make(chan struct{})
		close(ended)
		s.dyn.Run(1, ended) // which it was made for
	}
}

func freePort(t *testing.T) int32 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return int32(l.Addr().(*net.TCPAddr).Port)
}
