//go:build linux

package main

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// The program's gRPC health is understood by grpc-go, which kubelets probe
// with, and the other way round.
func TestGRPC(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "actor")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	port := withPort(t, []step{cmd("PORT")}, "PORT")[0].args[0]
	server := exec.Command(binary, "run", "--grpc="+port, "--grpc-service=known")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := grpc_health_v1.NewHealthClient(conn)
	for range 3 { // one connection, several calls
		for service, want := range map[string]codes.Code{"": codes.OK, "known": codes.OK, "unknown": codes.NotFound} {
			r, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
			if status.Code(err) != want || err == nil && r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
				t.Errorf("service %q: %v, %v", service, r, err)
			}
		}
	}
	w, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = w.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("watch: %v", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, hs := grpc.NewServer(), health.NewServer()
	hs.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	grpc_health_v1.RegisterHealthServer(srv, hs)
	go func() { _ = srv.Serve(l) }()
	defer srv.Stop()
	for service, want := range map[string]string{"": "SERVING\n", "down": "NOT_SERVING\n", "unknown": ""} {
		out, _ := exec.Command(binary, "grpc", l.Addr().String(), "--service="+service).Output()
		if string(out) != want {
			t.Errorf("the program's client, service %q: %q, want %q", service, out, want)
		}
	}
}
