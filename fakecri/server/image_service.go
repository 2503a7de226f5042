//go:build linux

package server

import (
	"context"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

// imageService is runtime.v1.ImageService. Requests have been validated. Its methods differ from
// the runtime's in nothing but their subject.
type imageService struct {
	runtimeapi.UnimplementedImageServiceServer
	s *Server
}

func (i *imageService) ListImages(ctx context.Context, req *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return i.images(ctx, req.Filter)
}

// images is what ListImages and its stream list.
func (i *imageService) images(ctx context.Context, f *runtimeapi.ImageFilter) (*runtimeapi.ListImagesResponse, error) {
	return reading(ctx, i.s, "ListImages", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ListImagesResponse, error) {
		items, err := c.ListImages(ctx, f)
		if err != nil {
			return nil, err
		}
		return i.s.lists.images.of(items, f.GetImage().GetImage() != "", func() *runtimeapi.ListImagesResponse {
			return &runtimeapi.ListImagesResponse{Images: items}
		}), nil
	})
}

// StreamImages sends what ListImages lists, in parts.
func (i *imageService) StreamImages(req *runtimeapi.StreamImagesRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamImagesResponse]) error {
	resp, err := i.images(stream.Context(), req.Filter)
	if err != nil {
		return err
	}
	return sendChunks(stream, resp.Images, func(part []*runtimeapi.Image) *runtimeapi.StreamImagesResponse {
		return &runtimeapi.StreamImagesResponse{Images: part}
	})
}

func (i *imageService) ImageStatus(ctx context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return reading(ctx, i.s, "ImageStatus", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ImageStatusResponse, error) {
		return c.ImageStatus(ctx, req.Image, req.Verbose)
	})
}

// PullImage can take long: it is a task, which ends with the client's call.
func (i *imageService) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	return onLoop(ctx, i.s, "PullImage", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.PullImageResponse, error) {
		ref, err := c.PullImage(ctx, req.Image, req.Auth, req.SandboxConfig)
		return &runtimeapi.PullImageResponse{ImageRef: ref}, err
	})
}

func (i *imageService) RemoveImage(ctx context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	return onLoop(ctx, i.s, "RemoveImage", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.RemoveImageResponse, error) {
		return &runtimeapi.RemoveImageResponse{}, c.RemoveImage(ctx, req.Image)
	})
}

func (i *imageService) ImageFsInfo(ctx context.Context, _ *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	resp, err := reading(ctx, i.s, "ImageFsInfo", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ImageFsInfoResponse, error) {
		return c.ImageFsInfo(ctx)
	})
	return wallTimes(i.s, resp), err
}
