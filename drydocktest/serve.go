package drydocktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/drydock-sim/drydock/sim/facade"
)

// A bubble can't have sockets. So servers stand in it as their handlers, by the name under
// which others know them, and http.DefaultTransport leads there meanwhile.

// servers are what is served in a cluster, by host. Its methods are called from any
// goroutine.
type servers struct {
	c  *Cluster
	mu sync.Mutex           // held for moments
	at map[string][]*server // the last one that runs answers
}

// server is what answers at a host.
type server struct {
	handler http.Handler
	life    *life // of the process that it belongs to; nil: the test itself
	// way leads to the cluster's API, for a client that knows it by a kubeconfig.
	way *transport
}

// Serve has a handler answer requests to a host, such as "shop-webhook.default.svc" for
// webhooks whose configuration names the service shop-webhook, or what stands in a URL,
// with or without a port. Those who ask are the API for its webhooks, the client of
// [Cluster.HTTP], and whoever uses http.DefaultTransport. What a process serves, by
// calling this in the function that Go was given, is refused once the process has ended.
func (c *Cluster) Serve(host string, h http.Handler) {
	c.servers.serve(host, &server{handler: h, life: c.lives.present()})
}

func (s *servers) serve(host string, to *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[host] = append(s.at[host], to)
}

// find returns what answers at a host. known reports whether something did once.
func (s *servers) find(host string) (to *server, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.at[host]
	if name, _, err := net.SplitHostPort(host); err == nil && list == nil {
		list = s.at[name]
	}
	for _, to := range slices.Backward(list) {
		if to.life.runs() {
			return to, true
		}
	}
	return nil, list != nil
}

// HTTP returns a client for what Serve was given, such as the handlers of metrics and
// health of a controller.
func (c *Cluster) HTTP() *http.Client { return &http.Client{Transport: &c.servers} }

// RoundTrip implements http.RoundTripper.
func (s *servers) RoundTrip(req *http.Request) (*http.Response, error) {
	to, known := s.find(req.URL.Host)
	switch {
	case !known:
		return nil, fmt.Errorf("drydocktest: nobody answers at %s. A bubble can't have sockets: say what answers there by Serve", req.URL.Host)
	case to != nil && to.way != nil:
		return to.way.RoundTrip(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		if cerr := req.Body.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
	}
	key := req.Method + " " + req.URL.String() + " " + string(body)
	if err := s.c.hop(req.Context(), key); err != nil {
		return nil, err
	}
	if to, _ = s.find(req.URL.Host); to == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	out := req.Clone(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{})))
	out.Body, out.Host = io.NopCloser(bytes.NewReader(body)), req.URL.Host
	type answer struct {
		resp *http.Response
		err  error
	}
	// A handler may wait for longer than who asks.
	answers := make(chan answer, 1)
	go func() {
		resp, err := (&facade.Transport{Handler: to.handler}).RoundTrip(out)
		answers <- answer{resp, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		if !to.life.runs() {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		return a.resp, s.c.hop(req.Context(), "answer to "+key)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// runs reports whether a process does; what belongs to none always does.
func (l *life) runs() bool {
	if l == nil {
		return true
	}
	select {
	case <-l.done:
		return false
	default:
		return !l.dead.Load()
	}
}

// hop is a message's way through the cluster's network, which nothing goes wrong with: it
// takes a window, and arrives at an instant of its own.
func (c *Cluster) hop(ctx context.Context, key string) error {
	done := make(chan struct{})
	c.pump.put(&crossing{stamp: time.Now().UnixNano(), who: "servers", key: key, take: func() {
		c.door.deliver(time.Duration(c.pump.lookahead), func() { close(done) })
	}})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.pump.stopped:
		return errClosed
	}
}

// Kubeconfig writes a kubeconfig for a client of this name and returns its path, for
// programs that read one. It is what Config is: what reads it must make its transport by
// client-go's defaults, as clientcmd and rest do.
func (c *Cluster) Kubeconfig(name string) string {
	c.t.Helper()
	config := c.Config(name)
	way := config.Transport.(*transport)
	c.mu.Lock()
	c.kubeconfigs++
	host := fmt.Sprintf("%s.%d.drydock", name, c.kubeconfigs)
	c.mu.Unlock()
	c.servers.serve(host, &server{way: way})
	out := api.NewConfig()
	out.Clusters["drydock"] = &api.Cluster{Server: "http://" + host}
	out.AuthInfos[name] = &api.AuthInfo{}
	out.Contexts["drydock"] = &api.Context{Cluster: "drydock", AuthInfo: name}
	out.CurrentContext = "drydock"
	file := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*out, file); err != nil {
		c.t.Fatalf("drydocktest: Kubeconfig: %v", err)
	}
	return file
}

// lead has http.DefaultTransport lead to what is served, for the time of a test. What is
// cloned from it finds no way out: sockets would hold up the bubble.
func (s *servers) lead(t *testing.T) {
	was := http.DefaultTransport
	own := &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, fmt.Errorf("drydocktest: a bubble can't have sockets, so %s isn't reached: use http.DefaultTransport itself, and Serve", address)
	}}
	own.RegisterProtocol("http", s)
	own.RegisterProtocol("https", s)
	http.DefaultTransport = own
	t.Cleanup(func() { http.DefaultTransport = was })
}

// WebhookServer takes the place of a manager's webhook server, which listens at a socket:
// what is registered with it is served at a host of the cluster instead. It is
// controller-runtime's webhook.Server for
//
//	ctrl.Options{WebhookServer: drydocktest.NewWebhookServer[healthz.Checker](c, "shop-webhook.default.svc")}
//
// where the type parameter is controller-runtime's own, on which this module doesn't depend.
type WebhookServer[Checker ~func(*http.Request) error] struct {
	c    *Cluster
	host string
	life *life
	mux  *http.ServeMux

	mu      sync.Mutex // held for moments
	started bool
}

// NewWebhookServer returns a server at a host, as [Cluster.Serve] names it. It ends with
// the process in whose function it is called.
func NewWebhookServer[Checker ~func(*http.Request) error](c *Cluster, host string) *WebhookServer[Checker] {
	return &WebhookServer[Checker]{c: c, host: host, life: c.lives.present(), mux: http.NewServeMux()}
}

// NeedLeaderElection reports that webhooks are answered by replicas that don't lead, too.
func (*WebhookServer[Checker]) NeedLeaderElection() bool { return false }

// Register has a path answered.
func (s *WebhookServer[Checker]) Register(path string, h http.Handler) { s.mux.Handle(path, h) }

// WebhookMux returns what answers.
func (s *WebhookServer[Checker]) WebhookMux() *http.ServeMux { return s.mux }

// Start serves until the context ends.
func (s *WebhookServer[Checker]) Start(ctx context.Context) error {
	own := &server{handler: s.mux, life: s.life}
	s.c.servers.serve(s.host, own)
	s.setStarted(true)
	<-ctx.Done()
	s.setStarted(false)
	s.c.servers.end(s.host, own)
	return nil
}

func (s *WebhookServer[Checker]) setStarted(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = is
}

// StartedChecker returns a check that fails unless the server answers.
func (s *WebhookServer[Checker]) StartedChecker() Checker {
	return func(*http.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.started {
			return fmt.Errorf("the webhook server at %s has not been started", s.host)
		}
		return nil
	}
}

// end has one that answers at a host do so no more.
func (s *servers) end(host string, own *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[host] = slices.DeleteFunc(s.at[host], func(s *server) bool { return s == own })
}
