package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drydock-sim/drydock/kubelet/server"
)

func TestMain(m *testing.M) {
	// klog's own, from the start of the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
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
		Serve(ctx, address, server.NewHealthz([]server.Check{server.Ping()}, nil))
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
