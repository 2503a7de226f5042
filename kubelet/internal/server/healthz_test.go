package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// klog's own, from the start of the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestHealthz(t *testing.T) {
	bad := errors.New("it is late")
	check := func(name string, err error) Check { return Check{name, func() error { return err }} }
	well := NewHealthz([]Check{Ping(), check("a", nil)}, []Check{check("syncloop", nil)})
	ill := NewHealthz([]Check{Ping(), check("a", bad)}, []Check{check("syncloop", bad)})
	for _, tc := range []struct {
		h    http.Handler
		path string
		code int
		body string
	}{
		{well, "/healthz", 200, "ok"},
		{well, "/healthz?verbose", 200, "[+]ping ok\n[+]a ok\nhealthz check passed\n"},
		{well, "/healthz?verbose=1&exclude=a", 200, "[+]ping ok\n[+]a excluded: ok\nhealthz check passed\n"},
		{well, "/healthz?verbose&exclude=y&exclude=x", 200, "[+]ping ok\n[+]a ok\nwarn: some health checks cannot be excluded: no matches for \"x\",\"y\"\nhealthz check passed\n"},
		{well, "/healthz/ping", 200, "ok"},
		{well, "/healthz/syncloop", 200, "ok"},
		{well, "/healthz/log", 404, "404 page not found\n"},
		{well, "/", 404, "404 page not found\n"},
		{ill, "/healthz", 500, "[+]ping ok\n[-]a failed: reason withheld\nhealthz check failed\n"},
		{ill, "/healthz?exclude=a", 200, "ok"},
		{ill, "/healthz/a", 500, "internal server error: it is late\n"},
		{ill, "/healthz/syncloop", 500, "internal server error: it is late\n"},
	} {
		w := httptest.NewRecorder()
		tc.h.ServeHTTP(w, httptest.NewRequest("GET", tc.path, nil))
		if w.Code != tc.code || w.Body.String() != tc.body {
			t.Errorf("%s: %d %q, want %d %q", tc.path, w.Code, w.Body, tc.code, tc.body)
		}
		if tc.path == "/healthz" && (w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("header %v", w.Header())
		}
	}
}

func TestLogBlocked(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	now := time.Unix(0, 0)
	flushes, release := make(chan struct{}, 8), make(chan struct{})
	clock := make(chan time.Time, 1)
	clock <- now
	c := logCheck(ctx, func() { flushes <- struct{}{}; <-release }, func() time.Time {
		n := <-clock
		clock <- n
		return n
	})
	if len(flushes) != 0 {
		t.Error("flushes before the first check")
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	<-flushes
	<-clock
	clock <- now.Add(2 * time.Minute)
	if err := c.Check(); err == nil || err.Error() != "logging blocked" {
		t.Errorf("blocked: %v", err)
	}
	close(release)
	for end := time.Now().Add(10 * time.Second); c.Check() != nil; {
		if time.Now().After(end) {
			t.Fatal("does not recover")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
}

func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		Serve(ctx, address, NewHealthz([]Check{Ping()}, nil))
		close(done)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var resp *http.Response
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if resp, err = client.Get("http://" + address + "/healthz"); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(body) != "ok" {
		t.Errorf("got %q", body)
	}
	cancel()
	<-done
}

func TestServeWhereSomebodyElseDoes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	Serve(ctx, l.Addr().String(), http.NotFoundHandler()) // logs, waits, ends with ctx
}
