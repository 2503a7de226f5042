//go:build linux

package real

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// spans takes what a kubelet exports.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu   sync.Mutex
	list []*otlp.Span
	of   map[string]string // the resource
}

func (s *spans) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range req.ResourceSpans {
		s.of = map[string]string{}
		for _, a := range r.Resource.Attributes {
			s.of[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range r.ScopeSpans {
			s.list = append(s.list, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestTracing holds that a pod's sync and the calls of the runtime that it makes are one trace, with
// upstream's names, and that what ends with the kubelet is still sent.
func TestTracing(t *testing.T) {
	got := &spans{}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	go func() { _ = server.Serve(lis) }()
	defer server.Stop()

	srv := fakecritest.NewServer(t)
	c := config(t)
	c.ContainerRuntimeEndpoint = srv.Endpoint()
	c.Tracing = &tracingapi.TracingConfiguration{Endpoint: new(lis.Addr().String()), SamplingRatePerMillion: new(int32(1000000))}
	if err := os.WriteFile(filepath.Join(c.StaticPodPath, "app.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: c, NodeName: "node", RootDir: t.TempDir(), ContainerLogsDir: t.TempDir(), Defaulter: apiserver.SetPodDefaults,
		Validator: func(pod *v1.Pod) error { return apiserver.ValidatePod(pod).ToAggregate() },
	}
	t.Cleanup(func() { _ = unix.Unmount(o.RootDir, 0) })
	k := start(t, o)
	k.container()
	k.end()

	got.mu.Lock()
	defer got.mu.Unlock()
	if got.of["service.name"] != "kubelet" || got.of["host.name"] != "node" {
		t.Errorf("the spans are of %v", got.of)
	}
	syncs := map[string]bool{}
	for _, s := range got.list {
		if s.Name != "syncPod" {
			continue
		}
		syncs[string(s.SpanId)] = true
		of := map[string]string{}
		for _, a := range s.Attributes {
			of[a.Key] = a.Value.GetStringValue()
		}
		if of["k8s.pod"] != "default/app-node" || of["k8s.pod.name"] != "app-node" || of["k8s.namespace.name"] != "default" || of["k8s.pod.uid"] == "" || of["k8s.pod.update_type"] == "" {
			t.Errorf("syncPod has %v", of)
		}
	}
	if len(syncs) == 0 {
		t.Fatalf("no sync among %d spans", len(got.list))
	}
	for _, call := range []string{"runtime.v1.RuntimeService/RunPodSandbox", "runtime.v1.RuntimeService/CreateContainer", "runtime.v1.RuntimeService/StartContainer"} {
		found := false
		for _, s := range got.list {
			found = found || s.Name == call && syncs[string(s.ParentSpanId)]
		}
		if !found {
			t.Errorf("%s is no child of a sync", call)
		}
	}
}
