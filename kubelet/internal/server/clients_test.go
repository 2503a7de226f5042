//go:build linux

package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/server"
)

// served starts a server that anybody may ask, and returns its address. The handshake is left out:
// the listener without TLS has the same limits.
func served(t *testing.T) string {
	t.Helper()
	c := &kubeletconfig.KubeletConfiguration{Address: "127.0.0.1", Port: freePort(t)}
	c.Authentication.Anonymous.Enabled, c.Authorization.Mode = ptr.To(true), kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	s, err := New(Options{Config: c, NodeName: "n", Hostname: "host", CertDir: filepath.Join(t.TempDir(), "pki")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, absent{}, []server.Check{server.Ping()}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", c.Port)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return address
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

var blind = &tls.Config{InsecureSkipVerify: true}

// health asks for /healthz as a client with manners does.
func health(t *testing.T, address string) {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: blind, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Get("https://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "ok" {
		t.Fatalf("%q, %v", b, err)
	}
}

// TestIdleConnections keeps 10,000 connections open on which nothing is said, or as many as this
// process may have.
func TestIdleConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n := min(10000, int(min(limit.Cur, 1<<20))/2-200)
	if testing.Short() {
		n = min(n, 200)
	}
	if n < 100 {
		t.Skipf("%d open files are too few", limit.Cur)
	}
	address := served(t)
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	health(t, address)
	t.Logf("%d idle connections", n)
}

// TestRudeClients sends what no client should: each is answered or cut off, and others are served.
func TestRudeClients(t *testing.T) {
	address := served(t)
	for _, tc := range []struct {
		name, request string
		// more is sent until the server has had enough, at most end bytes.
		more string
		end  int
		want string
	}{
		{name: "a header too large", request: "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ", more: strings.Repeat("a", 1<<16), end: 64 << 20, want: "431 Request Header Fields Too Large"},
		{name: "headers without end", request: "GET /healthz HTTP/1.1\r\nHost: x\r\n", more: strings.Repeat("X: y\r\n", 1<<12), end: 64 << 20, want: "431 Request Header Fields Too Large"},
		{name: "a path too large", request: "GET /", more: strings.Repeat("a", 1<<16), end: 64 << 20, want: "431 Request Header Fields Too Large"},
		{name: "a body without end", request: "POST /run/a/b/c?cmd=x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", more: "10000\r\n" + strings.Repeat("a", 1<<16) + "\r\n", end: 64 << 20, want: "500 Internal Server Error"},
		{name: "two lengths", request: "POST /run/a/b/c?cmd=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", want: "400 Bad Request"},
		{name: "no host", request: "GET /healthz HTTP/1.1\r\n\r\n", want: "400 Bad Request"},
		{name: "a path that goes up", request: "GET /logs/../../etc/shadow HTTP/1.1\r\nHost: x\r\n\r\n", want: "307 Temporary Redirect"},
		{name: "one that is hidden", request: "GET /logs/%2e%2e/%2e%2e/etc/shadow HTTP/1.1\r\nHost: x\r\n\r\n", want: "404 Not Found"},
		{name: "a name that goes up", request: "GET /containerLogs/..%2f..%2fetc/shadow/x HTTP/1.1\r\nHost: x\r\n\r\n", want: "404 Not Found"},
	} {
		conn, err := tls.Dial("tcp", address, blind)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		answer := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(conn).ReadString('\n')
			answer <- strings.TrimSpace(line)
		}()
		_, err = io.WriteString(conn, tc.request)
		sent := 0
		for tc.more != "" && err == nil && sent < tc.end && len(answer) == 0 {
			_, err = io.WriteString(conn, tc.more)
			sent += len(tc.more)
		}
		if tc.more != "" && sent >= tc.end {
			t.Errorf("%s: %d bytes were taken", tc.name, sent)
		}
		// What is cut off while it writes may have lost the answer.
		if got := <-answer; !strings.Contains(got, tc.want) && (got != "" || tc.more == "") {
			t.Errorf("%s: %q, want %s", tc.name, got, tc.want)
		}
		_ = conn.Close()
	}
	health(t, address)
}
