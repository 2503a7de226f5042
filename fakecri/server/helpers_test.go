//go:build linux

package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/fakecri/server"
)

func TestMain(m *testing.M) {
	// The streaming library logs each client that goes away as an error.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	// client-go's websocket client leaves its heartbeat until that is due.
	// The streaming library waits half a minute for the streams of a client
	// that has vanished.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("k8s.io/cri-streaming/pkg/streaming/remotecommand.(*v4ProtocolHandler).waitForStreams"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"),
		// Cancelled at the wrong moment, client-go's leaves more behind.
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/portforward.(*PortForwarder).handleConnection.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*wsStreamExecutor).StreamWithContext.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.watchErrorStream.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*streamProtocolV2).copyStdin.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*streamProtocolV2).copyStdin.func2"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*streamProtocolV2).copyStdout.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*streamProtocolV2).copyStderr.func1"))
}

// rig is a server with a client of each service.
type rig struct {
	*fakecritest.Server
	rt  runtimeapi.RuntimeServiceClient
	img runtimeapi.ImageServiceClient
}

// newRig has a server that leaves this machine's files and ports alone, unless
// onHost is among the options.
func newRig(t testing.TB, opts ...fakecritest.Option) *rig {
	t.Helper()
	s := fakecritest.NewServer(t, append([]fakecritest.Option{fakecritest.Isolated()}, opts...)...)
	conn := s.Dial()
	return &rig{s, runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)}
}

// onHost lets containers at this machine's files and ports.
var onHost = fakecritest.WithOptions(func(o *server.Options) { o.Isolated = false })

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func sandboxConfig(name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name, Attempt: 2},
		Labels:   map[string]string{"io.kubernetes.pod.uid": "uid-" + name, "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "default"},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}
}

func containerConfig(name string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: name},
		Image:       &runtimeapi.ImageSpec{Image: "app:1"},
		Labels:      map[string]string{"io.kubernetes.container.name": name},
		Annotations: map[string]string{"io.kubernetes.container.hash": "1"},
	}
}

// sleeper is a program that runs until it is stopped.
var sleeper = fakecritest.WithRuntime(func(o *fakecri.Options) {
	o.Images = append(o.Images, fakecri.Image{Name: "app:1", Present: true})
	o.Programs = append(o.Programs, fakecri.Program{Match: fakecri.Match{Image: "app:1"}})
})

func (r *rig) runSandbox(t testing.TB, name string) string {
	t.Helper()
	resp, err := r.rt.RunPodSandbox(testContext(t), &runtimeapi.RunPodSandboxRequest{Config: sandboxConfig(name)})
	if err != nil {
		t.Fatalf("RunPodSandbox %s: %v", name, err)
	}
	return resp.PodSandboxId
}

func (r *rig) runContainer(t testing.TB, sandbox string, config *runtimeapi.ContainerConfig) string {
	t.Helper()
	ctx := testContext(t)
	resp, err := r.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config})
	if err != nil {
		t.Fatalf("CreateContainer: %v", err)
	}
	if _, err := r.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: resp.ContainerId}); err != nil {
		t.Fatalf("StartContainer: %v", err)
	}
	return resp.ContainerId
}

// fill runs containers, ten to a sandbox.
func (r *rig) fill(t testing.TB, containers int) (ids []string) {
	t.Helper()
	sandbox := ""
	for i := range containers {
		if i%10 == 0 {
			sandbox = r.runSandbox(t, fmt.Sprintf("pod-%d", i))
		}
		ids = append(ids, r.runContainer(t, sandbox, containerConfig(fmt.Sprintf("c-%d", i))))
	}
	return ids
}

func wantCode(t testing.TB, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: code %s (%v), want %s", what, got, err, want)
	}
}
