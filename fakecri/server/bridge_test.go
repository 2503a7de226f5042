//go:build linux

package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/fakecri/server"
)

// podIP is the sandbox's address.
func (r *rig) podIP(t testing.TB, sandbox string) string {
	t.Helper()
	resp, err := r.rt.PodSandboxStatus(testContext(t), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status.Network.Ip
}

// refused reports whether nobody listens at an address, or soon nobody does.
func refused(addr string) bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return true
		}
		_ = c.Close()
	}
	return false
}

func TestBridge(t *testing.T) {
	r := newRig(t, onHost)
	sc := sandboxConfig("web")
	open, shut := freePort(t), freePort(t)
	mapped := fmt.Sprintf("127.0.0.1:%d", open)
	sc.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 80, HostPort: open}, {ContainerPort: 80}, {ContainerPort: 81, HostPort: shut}}
	sandbox, id := r.webPod(t, sc, nginxConfig())
	ip := r.podIP(t, sandbox)
	if !strings.HasPrefix(ip, "127.") {
		t.Fatalf("the pod's IP is %s", ip)
	}
	for _, u := range []string{"http://" + ip + ":80/", "http://" + mapped + "/", "https://" + ip + ":80/"} {
		c := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		for range 3 {
			resp, err := c.Get(u)
			if err != nil {
				t.Fatalf("%s: %v", u, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("%s: %d", u, resp.StatusCode)
			}
		}
		c.CloseIdleConnections()
	}
	if !refused(fmt.Sprintf("127.0.0.1:%d", shut)) {
		t.Error("a host port is open though nobody listens in the pod")
	}
	resp, err := http.Post("http://"+ip+"/", "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("a request with a body: %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	if _, err := r.rt.StopContainer(testContext(t), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{ip + ":80", mapped} {
		if !refused(addr) {
			t.Errorf("%s is open though the container has ended", addr)
		}
	}
}

func TestBridgeInterpreted(t *testing.T) {
	r := newRig(t, onHost)
	sandbox, id := r.shellPod(t, "live", func(c *runtimeapi.ContainerConfig) {
		c.Command = []string{"sh", "-c", "mkdir /www; echo live > /www/index.html; echo $$ > /pid; httpd -f -p 8080 -h /www; sleep 3600"}
	})
	addr := net.JoinHostPort(r.podIP(t, sandbox), "8080")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if code, body, err := get(t, "http://"+addr); err == nil && code == 200 && body == "live\n" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d %q, %v", code, body, err)
		}
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if code, body, err := get(t, "http://"+addr); err != nil || code != 200 || body != "live\n" {
				t.Errorf("%d %q, %v", code, body, err)
			}
		})
	}
	all.Wait()
	if _, err := r.rt.ExecSync(testContext(t), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"killall", "httpd"}}); err != nil {
		t.Fatal(err)
	}
	if !refused(addr) {
		t.Error("the port is open though its server has ended")
	}
}

func TestBridgeBothWays(t *testing.T) {
	r := newRig(t, onHost)
	sandbox, _ := r.shellPod(t, "echo", func(c *runtimeapi.ContainerConfig) {
		c.Command = []string{"sh", "-c", "while true; do nc -l -p 7000 -e cat; done"}
	})
	addr := net.JoinHostPort(r.podIP(t, sandbox), "7000")
	var conn net.Conn
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if conn, err = net.Dial("tcp", addr); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	rd := bufio.NewReader(conn)
	for i := range 5 {
		want := fmt.Sprintf("line %d\n", i)
		if _, err := io.WriteString(conn, want); err != nil {
			t.Fatal(err)
		}
		if got, err := rd.ReadString('\n'); err != nil || got != want {
			t.Fatalf("%q, %v", got, err)
		}
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(rd); err != nil || len(b) != 0 {
		t.Errorf("after the end: %q, %v", b, err)
	}
}

// grpcPod is a stated program with a health service that is unwell at times.
var grpcPod = fakecritest.WithRuntime(func(o *fakecri.Options) {
	o.Images = append(o.Images, fakecri.Image{Name: "app:1", Present: true})
	o.Programs = append(o.Programs, fakecri.Program{Match: fakecri.Match{Image: "app:1"}, Behaviour: fakecri.Behaviour{
		Ports: []fakecri.Port{
			{Port: 5000, GRPC: []fakecri.GRPCAnswer{{Service: "ill", Status: "NOT_SERVING"}, {Service: "?*er"}, {Service: "main"}}},
			{Port: 6000, After: 300 * time.Millisecond},
			{Port: 7000, HTTP: []fakecri.HTTPAnswer{{Path: "/healthz", Status: 503, Body: "sick"}, {}}},
		},
	}})
})

func TestBridgeGRPC(t *testing.T) {
	r := newRig(t, onHost, grpcPod)
	sandbox := r.runSandbox(t, "grpc")
	r.runContainer(t, sandbox, containerConfig("c"))
	ip := r.podIP(t, sandbox)
	for _, creds := range []credentials.TransportCredentials{insecure.NewCredentials(), credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})} {
		conn, err := grpc.NewClient(ip+":5000", grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		c := healthpb.NewHealthClient(conn)
		for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{"main": 1, "ill": 2, "other": 1} {
			resp, err := c.Check(testContext(t), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || resp.Status != want {
				t.Errorf("%s: %v, %v", service, resp, err)
			}
		}
		_, err = c.Check(testContext(t), &healthpb.HealthCheckRequest{Service: "none"})
		wantCode(t, "an unknown service", err, codes.NotFound)
		_ = conn.Close()
	}
	if code, body, err := get(t, "http://"+ip+":7000/healthz"); err != nil || code != 503 || body != "sick" {
		t.Errorf("%d %q, %v", code, body, err)
	}
	if _, _, err := get(t, "http://"+ip+":5000/"); err == nil {
		t.Error("a gRPC port speaks HTTP")
	}
	// HTTP only: no health there.
	conn, err := grpc.NewClient(ip+":7000", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err == nil {
		t.Error("an HTTP port speaks gRPC")
	}
	// A port that opens late.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if code, _, err := get(t, "http://"+ip+":6000"); err == nil && code == 200 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the late port: %d, %v", code, err)
		}
	}
}

func TestBridgeAgnhost(t *testing.T) {
	r := newRig(t, onHost)
	sandbox, id := r.webPod(t, sandboxConfig("agnhost"), &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "agnhost:2"}, Args: []string{"grpc-health-checking"},
	})
	ip := r.podIP(t, sandbox)
	conn, err := grpc.NewClient(ip+":5000", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	resp, err := healthpb.NewHealthClient(conn).Check(testContext(t), &healthpb.HealthCheckRequest{})
	if err != nil || resp.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", resp, err)
	}
	// Commands are run beside the server, whose port they reach.
	out, err := r.rt.ExecSync(testContext(t), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", "nc -z 127.0.0.1 5000 && echo open"}})
	if err != nil || string(out.Stdout) != "open\n" {
		t.Errorf("%v, %v", out, err)
	}
}

func TestBridgeTakenPort(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	var warned buffer
	r := newRig(t, onHost, fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.Warn = func(s string) { _, _ = io.WriteString(&warned, s+"\n") }
	}), fakecritest.WithOptions(warnTo(&warned)))
	sc := sandboxConfig("taken")
	sc.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 80, HostPort: int32(lis.Addr().(*net.TCPAddr).Port)}}
	sandbox, _ := r.webPod(t, sc, nginxConfig())
	if code, _, err := get(t, "http://"+r.podIP(t, sandbox)); err != nil || code != 200 {
		t.Errorf("at the pod's IP: %d, %v", code, err)
	}
	if !strings.Contains(warned.String(), lis.Addr().String()) {
		t.Errorf("warnings are %q", warned.String())
	}
}

// warnTo collects what the server warns of.
func warnTo(b *buffer) func(*server.Options) {
	return func(o *server.Options) { o.Warn = func(s string) { _, _ = io.WriteString(b, s+"\n") } }
}
