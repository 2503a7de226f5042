//go:build linux

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// forwarded returns the local address that leads to a sandbox's port.
func (r *rig) forwarded(t testing.TB, sandbox string, port int) string {
	t.Helper()
	resp, err := r.rt.PortForward(testContext(t), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
	if err != nil {
		t.Fatalf("PortForward: %v", err)
	}
	u, err := url.Parse(resp.Url)
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	stop, ready, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	pf, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		_ = pf.ForwardPorts()
	}()
	t.Cleanup(func() { close(stop); <-done })
	select {
	case <-ready:
	case <-done:
		t.Fatal("port-forward ended")
	}
	ports, err := pf.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

// get asks without keeping the connection.
func get(t testing.TB, u string) (int, string, error) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := c.Get(u)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func nginxConfig() *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: &runtimeapi.ImageSpec{Image: "nginx:1"}}
}

func TestPortForward(t *testing.T) {
	r := newRig(t)
	sandbox, _ := r.webPod(t, sandboxConfig("web"), nginxConfig())
	local := r.forwarded(t, sandbox, 80)
	for range 3 {
		if code, _, err := get(t, "http://"+local); err != nil || code != 200 {
			t.Errorf("nginx: %d, %v", code, err)
		}
	}
	if code, _, err := get(t, "http://"+r.forwarded(t, sandbox, 81)); err == nil {
		t.Errorf("a port that nobody listens on answers %d", code)
	}

	sandbox, _ = r.shellPod(t, "httpd", func(c *runtimeapi.ContainerConfig) {
		c.Command = []string{"sh", "-c", "mkdir /www; echo interpreted > /www/index.html; exec httpd -f -p 8080 -h /www"}
	})
	local = r.forwarded(t, sandbox, 8080)
	eventually(t, "httpd listens", func() bool { _, _, err := get(t, "http://"+local); return err == nil })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if code, body, err := get(t, "http://"+local); err != nil || code != 200 || body != "interpreted\n" {
				t.Errorf("httpd: %d %q, %v", code, body, err)
			}
		})
	}
	all.Wait()
}

func TestPortForwardHostNetwork(t *testing.T) {
	r, port := newRig(t, onHost), freePort(t)
	sc := sandboxConfig("host")
	sc.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}
	sandbox, _ := r.webPod(t, sc, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: &runtimeapi.ImageSpec{Image: "busybox:1"},
		Command: []string{"sh", "-c", fmt.Sprintf("mkdir /www; echo host > /www/index.html; exec httpd -f -p %d -h /www", port)},
	})
	at := fmt.Sprintf("http://127.0.0.1:%d/", port)
	eventually(t, "httpd listens", func() bool { _, _, err := get(t, at); return err == nil })
	if code, body, err := get(t, "http://"+r.forwarded(t, sandbox, int(port))); err != nil || code != 200 || body != "host\n" {
		t.Errorf("%d %q, %v", code, body, err)
	}
	if code, body, err := get(t, at); err != nil || code != 200 || body != "host\n" {
		t.Errorf("at 127.0.0.1: %d %q, %v", code, body, err)
	}
}
