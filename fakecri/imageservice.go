package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// ListImages returns the images that are present, or the one that the filter
// names by id, tag or digest.
func (c *Client) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if err := c.by.Read(ctx, calls.ListImages, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	st := c.r.images
	if name := filter.GetImage().GetImage(); name != "" {
		if im := st.Find(name); im != nil {
			return []*runtimeapi.Image{im.Entry}, nil
		}
		return nil, nil
	}
	if st.List == nil {
		st.List = make([]*runtimeapi.Image, 0, len(st.Images))
		for _, im := range st.Images {
			st.List = append(st.List, im.Entry)
		}
	}
	return st.List, nil
}

// ImageStatus returns the image of that id, tag or digest; a nil image when it
// is not present.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	name := image.GetImage()
	if err := c.by.Read(ctx, calls.ImageStatus, calls.Subject{Image: name, Timeout: -1}); err != nil {
		return nil, err
	}
	im := c.r.images.Find(name)
	switch {
	case im == nil:
		return &runtimeapi.ImageStatusResponse{}, nil
	case verbose:
		return &runtimeapi.ImageStatusResponse{Image: im.Entry, Info: imageInfo(im)}, nil
	case im.Status == nil:
		im.Status = &runtimeapi.ImageStatusResponse{Image: im.Entry}
	}
	return im.Status, nil
}

// PullImage makes an image present and returns its id.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	md := sandbox.GetMetadata()
	sub := calls.Subject{Namespace: md.GetNamespace(), Pod: md.GetName(), Attempt: md.GetAttempt(), Image: image.GetImage(), Timeout: -1}
	var name string
	return calls.CheckedChange(ctx, &c.by, calls.PullImage, &sub, func() (err error) {
		if name, err = c.r.images.Canonical(sub.Image); err != nil {
			return status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", sub.Image, err)
		}
		return nil
	}, func(ctx context.Context) (string, error) {
		return c.r.life.PullImage(ctx, &sub, name, auth)
	})
}

// RemoveImage removes an image with all its names. What isn't present is no
// error; containers made of it live on.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	r, sub := c.r, calls.Subject{Image: image.GetImage(), Timeout: -1}
	_, err := calls.Change(ctx, &c.by, calls.RemoveImage, &sub, func(ctx context.Context) (struct{}, error) {
		if im := r.images.Find(sub.Image); im != nil {
			r.calls.PauseRegardless(calls.RemoveImage, &sub)
			r.images.Remove(im)
		}
		return struct{}{}, nil
	})
	return err
}

// DefaultImageFilesystem is where containerd keeps images and writable layers.
const DefaultImageFilesystem = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"

// ImageFsInfo returns what images take and what containers' writable layers do.
// On one file system its entry counts both, as containerd's does.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	if err := c.by.Read(ctx, calls.ImageFsInfo, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	images, layers, o := c.r.images.Disk.Used(), c.r.disks.Share.Used(), &c.r.opts
	if o.ContainerFilesystem == o.ImageFilesystem {
		images.Bytes += layers.Bytes
		images.Inodes += layers.Inodes
	}
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems:     []*runtimeapi.FilesystemUsage{c.r.view.filesystem(o.ImageFilesystem, images)},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{c.r.view.filesystem(o.ContainerFilesystem, layers)},
	}, nil
}

// filesystem is what images or writable layers use of a disk.
func (r *viewer) filesystem(mountpoint string, used memfs.Space) *runtimeapi.FilesystemUsage {
	return &runtimeapi.FilesystemUsage{
		Timestamp:  r.l.UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: mountpoint},
		UsedBytes:  uint64Value(used.Bytes),
		InodesUsed: uint64Value(used.Inodes),
	}
}
