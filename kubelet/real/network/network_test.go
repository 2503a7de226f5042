//go:build linux

package network

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	grpcprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/grpc"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
	tcpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/tcp"
)

// onLoop runs fn as a task of a real loop.
func onLoop(t *testing.T, fn func(ctx context.Context, n *Network)) {
	t.Helper()
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.Root().Go("test", func(ctx context.Context) {
		defer cancel()
		fn(ctx, New(l))
	})
	if err := l.RunReal(ctx); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, to string) *http.Request {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"User-Agent": {"kube-probe/1.36"}, "X-Probe": {"a", "b"}}, Host: "pod.example"}
}

func handler(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ok":
		if r.Host != "pod.example" || r.UserAgent() != "kube-probe/1.36" || strings.Join(r.Header["X-Probe"], "") != "ab" || r.Header.Get("Accept-Encoding") != "" {
			w.WriteHeader(http.StatusTeapot)
		}
	case "/here":
		http.Redirect(w, r, "/ok", http.StatusFound)
	case "/away":
		http.Redirect(w, r, "http://192.0.2.1/ok", http.StatusFound)
	case "/big":
		_, _ = w.Write(make([]byte, 2*maxBody))
	case "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
		}
	case "/broken":
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func TestHTTP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	plain, secure := httptest.NewServer(http.HandlerFunc(handler)), httptest.NewTLSServer(http.HandlerFunc(handler))
	defer plain.Close()
	defer secure.Close()
	for _, tc := range []struct {
		name, url string
		timeout   time.Duration
		want      probe.Result
		text      string
	}{
		{"headers", plain.URL + "/ok", 5 * time.Second, probe.Success, ""},
		{"a certificate that nobody knows", secure.URL + "/ok", 5 * time.Second, probe.Success, ""},
		{"a failure", plain.URL + "/broken", 5 * time.Second, probe.Failure, "HTTP probe failed with statuscode: 500"},
		{"a redirect to another host", plain.URL + "/away", 5 * time.Second, probe.Warning, "Probe terminated redirects"},
		{"a long body", plain.URL + "/big", 5 * time.Second, probe.Success, ""},
		{"no answer", plain.URL + "/slow", 300 * time.Millisecond, probe.Failure, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"},
		{"nobody", "http://127.0.0.1:1/ok", 5 * time.Second, probe.Failure, `Get "http://127.0.0.1:1/ok": dial tcp 127.0.0.1:1: connect: connection refused`},
		{"HTTP for HTTPS", "https" + strings.TrimPrefix(plain.URL, "http") + "/ok", 5 * time.Second, probe.Failure, "http: server gave HTTP response to HTTPS client"},
	} {
		onLoop(t, func(ctx context.Context, n *Network) {
			got, text := httpprobe.Probe(ctx, n, "", get(t, tc.url), tc.timeout)
			if got != tc.want || !strings.Contains(text, tc.text) {
				t.Errorf("%s: %v, %q", tc.name, got, text)
			}
		})
	}
	onLoop(t, func(ctx context.Context, n *Network) {
		status, header, _, err := n.HTTP(ctx, "", get(t, plain.URL+"/here"))
		if err != nil || status != http.StatusFound || header.Get("Location") != "/ok" {
			t.Errorf("a redirect was followed: %d, %v, %v", status, header, err)
		}
		if _, _, body, err := n.HTTP(ctx, "", get(t, plain.URL+"/big")); err != nil || len(body) != maxBody {
			t.Errorf("%d bytes of a body, %v", len(body), err)
		}
	})
}

func TestTCP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ls.Close() }()
	port := ls.Addr().(*net.TCPAddr).Port
	onLoop(t, func(ctx context.Context, n *Network) {
		if got, text := tcpprobe.Probe(ctx, n, "", "127.0.0.1", port, 5*time.Second); got != probe.Success {
			t.Errorf("open: %v, %q", got, text)
		}
		if got, text := tcpprobe.Probe(ctx, n, "", "127.0.0.1", 1, 5*time.Second); got != probe.Failure || text != "dial tcp 127.0.0.1:1: connect: connection refused" {
			t.Errorf("closed: %v, %q", got, text)
		}
	})
}

func TestGRPC(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	serve := func(s *grpc.Server) int {
		ls, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		go func() { _ = s.Serve(ls) }()
		return ls.Addr().(*net.TCPAddr).Port
	}
	good, hs := grpc.NewServer(), health.NewServer()
	defer good.Stop()
	grpc_health_v1.RegisterHealthServer(good, hs)
	hs.SetServingStatus("sick", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	bare := grpc.NewServer()
	defer bare.Stop()
	goodPort, barePort := serve(good), serve(bare)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	silentPort := silent.Addr().(*net.TCPAddr).Port
	for _, tc := range []struct {
		name, service string
		port          int
		timeout       time.Duration
		want          probe.Result
		text          string
	}{
		{"serves", "", goodPort, 5 * time.Second, probe.Success, "service healthy"},
		{"does not serve", "sick", goodPort, 5 * time.Second, probe.Failure, `service unhealthy (responded with "NOT_SERVING")`},
		{"unknown service", "none", goodPort, 5 * time.Second, probe.Failure, "unknown service"},
		{"no health service", "", barePort, 5 * time.Second, probe.Failure, "this server does not implement the grpc health protocol"},
		{"no HTTP/2", "", silentPort, 300 * time.Millisecond, probe.Failure, `timeout: failed to connect service "127.0.0.1:` + strconv.Itoa(silentPort) + `" within 300ms`},
		{"nobody", "", 1, 300 * time.Millisecond, probe.Failure, `timeout: failed to connect service "127.0.0.1:1" within 300ms: context deadline exceeded`},
	} {
		onLoop(t, func(ctx context.Context, n *Network) {
			got, text := grpcprobe.Probe(ctx, n, "", "127.0.0.1", tc.port, tc.service, tc.timeout)
			if got != tc.want || !strings.Contains(text, tc.text) {
				t.Errorf("%s: %v, %q", tc.name, got, text)
			}
		})
	}
}

func TestAhead(t *testing.T) {
	at := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(context.Background(), at)
	defer cancel()
	sooner, done := ahead(ctx)
	defer done()
	if d, _ := sooner.Deadline(); !d.Equal(at.Add(-early)) {
		t.Errorf("the deadline is %s before the caller's", at.Sub(d))
	}
	none, done := ahead(context.Background())
	if _, ok := none.Deadline(); ok {
		t.Error("a deadline from nowhere")
	}
	done()
	if !errors.Is(none.Err(), context.Canceled) {
		t.Error("not cancelled")
	}
}

// A port of an address is written as Go writes it.
func TestAddress(t *testing.T) {
	for host, want := range map[string]string{"10.1.2.3": "10.1.2.3:80", "::1": "[::1]:80"} {
		if got := address(host, 80); got != want {
			t.Errorf("%s: %s", strconv.Quote(host), got)
		}
	}
}
