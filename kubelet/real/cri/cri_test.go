//go:build linux

package cri

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/ground/loop"
)

// server is a runtime with answers for the tests; the rest is Unimplemented.
type server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	// ended gets the error of a call's context that the server saw end.
	ended chan error
	wait  chan struct{}
	// open keeps streams of events open.
	open atomic.Bool
	// version, if any, is called in each Version.
	version func(ctx context.Context)
}

func (s *server) Version(ctx context.Context, _ *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	if s.version != nil {
		s.version(ctx)
	}
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "test", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

func (s *server) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

func (s *server) ListContainers(_ context.Context, r *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{{Id: r.GetFilter().GetId()}}}, nil
}

func (s *server) StopContainer(ctx context.Context, _ *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	select {
	case <-ctx.Done():
		s.ended <- ctx.Err()
	case <-s.wait:
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (s *server) PullImage(context.Context, *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	return &runtimeapi.PullImageResponse{ImageRef: "sha256:1"}, nil
}

func (s *server) ExecSync(_ context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	switch r.Cmd[0] {
	case "fail":
		return &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3}, nil
	case "late":
		return nil, grpcstatus.Error(codes.DeadlineExceeded, "timeout exceeded")
	}
	return &runtimeapi.ExecSyncResponse{Stdout: []byte("out")}, nil
}

func serve(t *testing.T) (*server, string) {
	t.Helper()
	s := &server{ended: make(chan error, 1), wait: make(chan struct{})}
	sock := filepath.Join(t.TempDir(), "s")
	ls, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(g, s)
	runtimeapi.RegisterImageServiceServer(g, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(ls) }()
	t.Cleanup(func() { close(s.wait); g.Stop(); <-done })
	return s, sock
}

// onLoop runs fn as a task of a group of a real loop.
func onLoop(t *testing.T, sock string, fn func(ctx context.Context, l *loop.Loop, rt internalapi.RuntimeService, im internalapi.ImageManagerService)) {
	t.Helper()
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rt, im, closeAll, err := New(ctx, l, sock, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	l.Root().Go("test", func(ctx context.Context) {
		defer cancel()
		fn(ctx, l, rt, im)
	})
	if err := l.RunReal(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestCalls(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	_, sock := serve(t)
	onLoop(t, sock, func(ctx context.Context, _ *loop.Loop, rt internalapi.RuntimeService, im internalapi.ImageManagerService) {
		if v, err := rt.Version(ctx, ""); err != nil || v.RuntimeName != "test" {
			t.Errorf("version: %v, %v", v, err)
		}
		list, err := rt.ListContainers(ctx, &runtimeapi.ContainerFilter{Id: "x"})
		if err != nil || len(list) != 1 || list[0].Id != "x" {
			t.Errorf("list: %v, %v", list, err)
		}
		if ref, err := im.PullImage(ctx, &runtimeapi.ImageSpec{Image: "i"}, nil, nil); err != nil || ref != "sha256:1" {
			t.Errorf("pull: %q, %v", ref, err)
		}
		// containerd 1.6 has no RuntimeConfig.
		if _, err := rt.RuntimeConfig(ctx); grpcstatus.Code(err) != codes.Unimplemented {
			t.Errorf("runtime config: %v", err)
		}
		if err := rt.GetContainerEvents(ctx, nil, nil); err == nil {
			t.Error("events can be had past the loop")
		}
	})
}

// GetContainerEvents streams two events, and ends well unless it is to go on.
func (s *server) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream runtimeapi.RuntimeService_GetContainerEventsServer) error {
	for _, id := range []string{"a", "b"} {
		if err := stream.Send(&runtimeapi.ContainerEventResponse{ContainerId: id}); err != nil {
			return err
		}
	}
	if s.open.Load() {
		<-stream.Context().Done()
		s.ended <- stream.Context().Err()
	}
	return nil
}

func TestContainerEvents(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	s, sock := serve(t)
	type eventful interface {
		ContainerEvents(ctx context.Context, connected func(), told func(*runtimeapi.ContainerEventResponse)) error
	}
	onLoop(t, sock, func(ctx context.Context, l *loop.Loop, rt internalapi.RuntimeService, _ internalapi.ImageManagerService) {
		var got []string
		connected := func() { got = append(got, "connected") } // without a lock: it is on the loop
		told := func(ev *runtimeapi.ContainerEventResponse) { got = append(got, ev.ContainerId) }
		if err := rt.(eventful).ContainerEvents(ctx, connected, told); !errors.Is(err, io.EOF) {
			t.Errorf("a stream that ended: %v", err)
		}
		if want := []string{"connected", "a", "b"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		// A kubelet that stops leaves no stream behind.
		s.open.Store(true)
		g := l.NewGroup("kubelet")
		here := &loop.Event{}
		g.Go("events", func(ctx context.Context) {
			_ = rt.(eventful).ContainerEvents(ctx, func() {}, func(ev *runtimeapi.ContainerEventResponse) {
				if ev.ContainerId == "b" { // the last that the server sends
					here.Fire()
				}
			})
		})
		if err := here.Wait(ctx); err != nil {
			t.Error(err)
		}
		g.Kill()
		if err, _ := loop.Await(ctx, func(context.Context) (error, error) { return <-s.ended, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("the stream of a kubelet that stopped ended with %v", err)
		}
	})
}

// TestSilence: cri-client logs nothing, of connections, calls and their errors, for the kubelet does.
func TestSilence(t *testing.T) {
	_, sock := serve(t)
	klog.SetLoggerWithOptions(funcr.New(func(_, args string) { t.Errorf("logged: %s", args) }, funcr.Options{Verbosity: 10}), klog.ContextualLogger(true))
	t.Cleanup(klog.ClearLogger)
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	rt, _, closeAll, err := New(ctx, l, sock, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	l.Root().Go("test", func(ctx context.Context) {
		defer cancel()
		if _, err := rt.ListContainers(ctx, nil); err != nil {
			t.Error(err)
		}
		if _, err := rt.RuntimeConfig(ctx); grpcstatus.Code(err) != codes.Unimplemented {
			t.Errorf("runtime config: %v", err)
		}
	})
	if err := errors.Join(l.RunReal(ctx), closeAll()); err != nil {
		t.Error(err)
	}
}

func TestExecSync(t *testing.T) {
	_, sock := serve(t)
	onLoop(t, sock, func(ctx context.Context, _ *loop.Loop, rt internalapi.RuntimeService, _ internalapi.ImageManagerService) {
		if out, _, err := rt.ExecSync(ctx, "c", []string{"ok"}, time.Second); err != nil || string(out) != "out" {
			t.Errorf("%q, %v", out, err)
		}
		out, errOut, err := rt.ExecSync(ctx, "c", []string{"fail"}, time.Second)
		var exit interface{ ExitStatus() int }
		if !errors.As(err, &exit) || exit.ExitStatus() != 3 || string(out) != "out" || string(errOut) != "err" {
			t.Errorf("exit code: %q, %q, %v", out, errOut, err)
		}
		if _, _, err := rt.ExecSync(ctx, "c", []string{"late"}, time.Second); grpcstatus.Code(err) != codes.DeadlineExceeded {
			t.Errorf("too late: %v", err)
		}
	})
}

// ended waits until the server has seen a call end.
func ended(t *testing.T, s *server) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		t.Error("the call goes on at the server")
	}
}

func TestDeadlineAndCancellation(t *testing.T) {
	s, sock := serve(t)
	onLoop(t, sock, func(ctx context.Context, _ *loop.Loop, rt internalapi.RuntimeService, _ internalapi.ImageManagerService) {
		late, cancel := loop.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if err := rt.StopContainer(late, "c", 0); grpcstatus.Code(err) != codes.DeadlineExceeded {
			t.Errorf("deadline: %v", err)
		}
	})
	ended(t, s)
	onLoop(t, sock, func(ctx context.Context, l *loop.Loop, rt internalapi.RuntimeService, _ internalapi.ImageManagerService) {
		gone, cancel := loop.WithCancel(ctx)
		l.Root().After(50*time.Millisecond, cancel)
		if err := rt.StopContainer(gone, "c", 0); grpcstatus.Code(err) != codes.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	})
	ended(t, s)
}

func TestDeathOfTheGroup(t *testing.T) {
	s, sock := serve(t)
	onLoop(t, sock, func(ctx context.Context, l *loop.Loop, rt internalapi.RuntimeService, _ internalapi.ImageManagerService) {
		g := l.NewGroup("kubelet")
		g.Go("call", func(ctx context.Context) {
			_ = rt.StopContainer(ctx, "c", 0)
			t.Error("a killed task went on")
		})
		_ = l.Sleep(ctx, 50*time.Millisecond)
		g.Kill()
		_ = l.Sleep(ctx, 50*time.Millisecond)
	})
	ended(t, s)
}

// TestGivenUpWhileConnecting has the caller give up when the runtime has just
// answered: no connection is left behind.
func TestGivenUpWhileConnecting(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	s, sock := serve(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls atomic.Int32
	s.version = func(ctx context.Context) {
		if calls.Add(1) == 2 { // that of cri-client's constructor
			cancel()
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // the call goes on
			}
		}
	}
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	_, _, closeAll, err := New(ctx, l, sock, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := closeAll(); err != nil {
		t.Error(err)
	}
}

func TestNoRuntime(t *testing.T) {
	l := loop.NewReal(loop.Options{Name: "none"})
	defer l.Close()
	for endpoint, want := range map[string]string{
		"": "endpoint is empty", "unix://" + t.TempDir() + "/none": "no such file or directory",
		"http://127.0.0.1": "protocol",
	} {
		if _, _, _, err := New(context.Background(), l, endpoint, time.Second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("endpoint %q: %v", endpoint, err)
		}
	}
}
