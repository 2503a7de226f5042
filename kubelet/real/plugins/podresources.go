//go:build linux

package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	server "github.com/drydock-sim/drydock/kubelet/apis/podresources"
)

// Names and limits of upstream's pkg/kubelet/apis/podresources/constants.go.
const (
	podResourcesDir    = "pod-resources"
	podResourcesSocket = "kubelet.sock"
	podResourcesQPS    = 100
	podResourcesBurst  = 10
)

// PodResources serves the API podresources/v1 on its socket below the kubelet's root
// directory.
type PodResources struct{ s *grpc.Server }

// ServePodResources begins to serve what of returns, on the loop of g; nil: the kubelet
// isn't there yet. The older v1alpha1 is not served.
func ServePodResources(g *loop.Group, rootDir string, of func() *server.Server, log func(format string, args ...any)) (*PodResources, error) {
	path := filepath.Join(rootDir, podResourcesDir, podResourcesSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // an earlier kubelet's
		return nil, fmt.Errorf("serve pod resources: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve pod resources: %w", err)
	}
	limiter := rate.NewLimiter(podResourcesQPS, podResourcesBurst)
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if !limiter.Allow() {
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
		}
		return handle(ctx, req)
	}))
	podresources.RegisterPodResourcesListerServer(s, &lister{g: g, of: of})
	go func() {
		if err := s.Serve(l); err != nil {
			log("Failed to serve pod resources: %v", err)
		}
	}()
	return &PodResources{s}, nil
}

// Close ends the server.
func (p *PodResources) Close() { p.s.Stop() }

// lister implements podresources.PodResourcesListerServer: each request is a task of the
// kubelet's.
type lister struct {
	podresources.UnimplementedPodResourcesListerServer
	g  *loop.Group
	of func() *server.Server
}

// asked has a request answered on the loop.
func asked[T any](ctx context.Context, l *lister, answer func(s *server.Server) (T, error)) (T, error) {
	return run(ctx, l.g, "pod-resources", func(context.Context) (T, error) {
		s := l.of()
		if s == nil {
			var none T
			return none, status.Error(codes.Unavailable, "the kubelet is starting")
		}
		return answer(s)
	})
}

// List implements podresources.PodResourcesListerServer.
func (l *lister) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return asked(ctx, l, func(s *server.Server) (*podresources.ListPodResourcesResponse, error) { return s.List(), nil })
}

// GetAllocatableResources implements podresources.PodResourcesListerServer.
func (l *lister) GetAllocatableResources(ctx context.Context, _ *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return asked(ctx, l, func(s *server.Server) (*podresources.AllocatableResourcesResponse, error) {
		return s.GetAllocatableResources(), nil
	})
}

// Get implements podresources.PodResourcesListerServer.
func (l *lister) Get(ctx context.Context, req *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	return asked(ctx, l, func(s *server.Server) (*podresources.GetPodResourcesResponse, error) {
		return s.Get(req.PodNamespace, req.PodName)
	})
}
