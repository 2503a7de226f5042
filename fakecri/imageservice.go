package fakecri

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// ListImages returns the images that are present, or the one that the filter
// names by id, tag or digest.
func (c *Client) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if err := c.by.read(ctx, mListImages, subject{timeout: -1}); err != nil {
		return nil, err
	}
	st := c.r.images
	if name := filter.GetImage().GetImage(); name != "" {
		if im := st.find(name); im != nil {
			return []*runtimeapi.Image{im.entry}, nil
		}
		return nil, nil
	}
	if st.list == nil {
		st.list = make([]*runtimeapi.Image, 0, len(st.images))
		for _, im := range st.images {
			st.list = append(st.list, im.entry)
		}
	}
	return st.list, nil
}

// ImageStatus returns the image of that id, tag or digest; a nil image when it
// is not present.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	name := image.GetImage()
	if err := c.by.read(ctx, mImageStatus, subject{image: name, timeout: -1}); err != nil {
		return nil, err
	}
	im := c.r.images.find(name)
	switch {
	case im == nil:
		return &runtimeapi.ImageStatusResponse{}, nil
	case verbose:
		return &runtimeapi.ImageStatusResponse{Image: im.entry, Info: imageInfo(im)}, nil
	case im.status == nil:
		im.status = &runtimeapi.ImageStatusResponse{Image: im.entry}
	}
	return im.status, nil
}

// PullImage makes an image present and returns its id.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	md := sandbox.GetMetadata()
	sub := subject{namespace: md.GetNamespace(), pod: md.GetName(), attempt: md.GetAttempt(), image: image.GetImage(), timeout: -1}
	var name string
	return checkedChange(ctx, &c.by, mPullImage, &sub, func() (err error) {
		if name, err = c.r.images.canonical(sub.image); err != nil {
			return status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", sub.image, err)
		}
		return nil
	}, func(ctx context.Context) (string, error) { return c.r.life.pullImage(ctx, &sub, name, auth) })
}

func (r *lifecycle) pullImage(ctx context.Context, sub *subject, name string, auth *runtimeapi.AuthConfig) (string, error) {
	if err := r.calls.pause(ctx, mPullImage, sub); err != nil {
		return "", err
	}
	src := r.images.source(name)
	if src == nil {
		return "", status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	n := src.pulls
	src.pulls++
	if f := src.Fail; f != nil && (f.Times == 0 || n < uint64(f.Times)) {
		return "", r.failPull(ctx, f, name, n)
	}
	if !src.Auth.admits(auth) {
		return "", status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to resolve image: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", name)
	}
	took := r.l.Between(src.Pull.Min, src.Pull.Max, "pull", name, n)
	if r.images.byRef[name] != nil {
		took /= repeatShare
	}
	if err := r.l.Sleep(ctx, took); err != nil {
		return "", err
	}
	if err := r.images.imageFits(src, name); err != nil {
		return "", err
	}
	fresh := r.images.byRef[src.id] == nil
	im := r.images.add(src, name)
	r.images.countPull(name, src.Size, fresh)
	return im.id, nil
}

// admits tells whether a pull with those credentials is let in.
func (a *ImageAuth) admits(auth *runtimeapi.AuthConfig) bool {
	if a == nil {
		return true
	}
	if auth.GetAuth() != "" {
		text, err := base64.StdEncoding.DecodeString(auth.Auth)
		return err == nil && strings.TrimRight(string(text), "\x00") == a.Username+":"+a.Password
	}
	return auth.GetUsername() == a.Username && auth.GetPassword() == a.Password
}

func (r *lifecycle) failPull(ctx context.Context, f *PullFailure, name string, n uint64) error {
	after := f.After
	if after == (Range{}) {
		after = Range{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond}
	}
	if err := r.l.Sleep(ctx, r.l.Between(after.Min, after.Max, "pull failure", name, n)); err != nil {
		return err
	}
	code, _ := ParseCode(f.Code)
	msg := f.Message
	if msg == "" {
		msg = fmt.Sprintf("failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	return status.Error(code, msg)
}

// RemoveImage removes an image with all its names. What isn't present is no
// error; containers made of it live on.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	r, sub := c.r, subject{image: image.GetImage(), timeout: -1}
	_, err := change(ctx, &c.by, mRemoveImage, &sub, func(ctx context.Context) (struct{}, error) {
		if im := r.images.find(sub.image); im != nil {
			r.calls.pauseRegardless(mRemoveImage, &sub)
			r.images.remove(im)
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
	if err := c.by.read(ctx, mImageFsInfo, subject{timeout: -1}); err != nil {
		return nil, err
	}
	images, layers, o := c.r.images.disk.Used(), c.r.disks.layers.Used(), &c.r.opts
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
