//go:build linux

package server

import (
	"bufio"
	"bytes"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/real/streamproxy"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// oneConn is a listener with one connection.
type oneConn struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// FuzzConnection sends bytes to the kubelet's whole server, as it stands behind TLS:
// nothing that a client says makes it panic, and each connection ends.
func FuzzConnection(f *testing.F) {
	c := webhookConfig()
	c.Authentication.Webhook.Enabled, c.Authentication.Anonymous.Enabled = ptr.To(false), ptr.To(true)
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	a, err := newAuth("n", c, nil)
	if err != nil {
		f.Fatal(err)
	}
	h := server.New(server.Options{
		Host: host{absent{}}, Config: c, Checks: []server.Check{server.Ping()}, Filter: a.filter, Logs: logReader{absent{}}, Streams: streamproxy.Streams{},
		SystemLogs: http.StripPrefix("/logs/", http.FileServer(http.Dir(f.TempDir()))),
	})
	const upgrade = "Host: n\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
	for _, seed := range []string{
		"GET /healthz HTTP/1.1\r\nHost: n\r\n\r\n", "POST /run/a/b/c?cmd=x HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\nhello", "GET //pods/../exec/a/b/c HTTP/1.0\r\n\r\n",
		"GET /exec/a/b/c?command=x&output=1 HTTP/1.1\r\n" + upgrade, "GET /portForward/a/b HTTP/1.1\r\n" + strings.ReplaceAll(upgrade, "v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"),
		"GET /logs/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: n\r\n\r\n", "GET /logs/?query=kubelet&tailLines=x HTTP/1.1\r\nHost: n\r\n\r\n", "PUT /pods HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
		"GET /metrics/../../x HTTP/1.1\r\nHost: n\r\nAuthorization: Bearer \x00\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: n\r\n\r\n", "CONNECT n:1 HTTP/1.1\r\nHost: n\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var said bytes.Buffer
		l := &oneConn{conns: make(chan net.Conn, 1), done: make(chan struct{})}
		s := &http.Server{Handler: h, ReadHeaderTimeout: time.Second, MaxHeaderBytes: maxHeaderBytes, ErrorLog: log.New(&said, "", 0)}
		client, conn := net.Pipe()
		l.conns <- conn
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(l)
		}()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r := bufio.NewReader(client)
			_, _ = r.WriteTo(discard{})
		}()
		_ = client.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = client.Write(data)
		_ = client.Close()
		<-answered
		_ = s.Close()
		<-served
		if strings.Contains(said.String(), "panic") {
			t.Errorf("%q: %s", data, &said)
		}
	})
}

// discard takes everything.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
