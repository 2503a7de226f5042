package plugins

import (
	"context"
	"io/fs"
	"path"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// volumeKey is a driver's volume.
type volumeKey struct{ driver, handle string }

// newTree is the files of a new volume, which everybody may read and root may write.
func newTree() *memfs.Tree { return memfs.NewTree(0o755) }

// tree is what is on a volume. It is there as long as the node's machine is.
func (h *Host) tree(driver, handle string) *memfs.Tree {
	k := volumeKey{driver, handle}
	if h.trees == nil {
		h.trees = map[volumeKey]*memfs.Tree{}
	}
	if h.trees[k] == nil {
		h.trees[k] = newTree()
	}
	return h.trees[k]
}

// mount has a directory show a volume. It may be repeated.
func (d *csiDriver) mount(handle, target string) error {
	files := d.h.fs
	if files == nil {
		return status.Error(codes.FailedPrecondition, "the node has no file system")
	}
	if files.Mounted(target) {
		return nil
	}
	if err := d.h.tree(d.o.Driver, handle).Mount(files, target); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// unmount undoes mount. It may be repeated.
func (d *csiDriver) unmount(target string) error {
	if !d.h.fs.Mounted(target) {
		return nil
	}
	if err := d.h.fs.Unmount(target); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// NodeStageVolume implements csi.NodeServer.
func (d *csiDriver) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if req.VolumeCapability.GetBlock() != nil {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	if err := d.mount(req.VolumeId, req.StagingTargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *csiDriver) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := d.unmount(req.StagingTargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer. The directory is made by the driver, below
// one that is there.
func (d *csiDriver) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if d.h.fs != nil {
		if _, err := d.h.fs.Stat(path.Dir(req.TargetPath)); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	if req.VolumeCapability.GetBlock() != nil {
		return d.publishBlock(req.TargetPath)
	}
	if err := d.mount(req.VolumeId, req.TargetPath); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// publishBlock makes a device, to which nothing can be written.
func (d *csiDriver) publishBlock(target string) (*csi.NodePublishVolumeResponse, error) {
	if d.h.fs == nil {
		return nil, status.Error(codes.FailedPrecondition, "the node has no file system")
	}
	if _, err := d.h.fs.Lstat(target); err == nil {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := d.h.fs.Mknod(target, fs.ModeDevice|0o660, "loop"); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *csiDriver) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := d.unmount(req.TargetPath); err != nil {
		return nil, err
	}
	if err := d.h.fs.RemoveAll(req.TargetPath); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume implements csi.NodeServer.
func (d *csiDriver) NodeExpandVolume(_ context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	return &csi.NodeExpandVolumeResponse{CapacityBytes: req.CapacityRange.GetRequiredBytes()}, nil
}

// NodeGetVolumeStats implements csi.NodeServer.
func (d *csiDriver) NodeGetVolumeStats(context.Context, *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if d.o.Stats == nil {
		return nil, status.Error(codes.Unimplemented, "method NodeGetVolumeStats not implemented")
	}
	return d.o.Stats, nil
}
