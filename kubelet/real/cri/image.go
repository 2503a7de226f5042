//go:build linux

package cri

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// imageService is an image service whose calls are for tasks of one loop. Its
// methods are cri-client's. One method is one call.
type imageService struct {
	l *loop.Loop
	c internalapi.ImageManagerService
}

var _ internalapi.ImageManagerService = (*imageService)(nil)

// Close drops the connection. It does not wait, and may be called anywhere.
func (s *imageService) Close(ctx context.Context) error { return s.c.Close(withoutLogs(ctx)) }

func (s *imageService) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.Image, error) {
		return s.c.ListImages(ctx, filter)
	})
}

func (s *imageService) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.ImageStatusResponse, error) {
		return s.c.ImageStatus(ctx, image, verbose)
	})
}

func (s *imageService) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, podSandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	return call(ctx, s.l, func(ctx context.Context) (string, error) {
		return s.c.PullImage(ctx, image, auth, podSandboxConfig)
	})
}

func (s *imageService) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.RemoveImage(ctx, image) })
}

func (s *imageService) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
		return s.c.ImageFsInfo(ctx)
	})
}
