package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/kernel"
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
func (d *csiDriver) mount(ctx context.Context, handle, target string) error {
	files := d.h.fs
	if files == nil {
		return status.Error(codes.FailedPrecondition, "the node has no file system")
	}
	if files.Mounted(target) {
		return nil
	}
	tree, err := d.acquire(ctx, handle)
	if err != nil {
		return err
	}
	if err := tree.Mount(files, target); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	d.h.mounted(volumeKey{d.o.Driver, handle}, target)
	return nil
}

// unmount undoes mount. It may be repeated.
func (d *csiDriver) unmount(handle, target string) error {
	if d.h.fs.Mounted(target) {
		if err := d.h.fs.Unmount(target); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	d.h.unmounted(d.o.Storage, volumeKey{d.o.Driver, handle}, target)
	return nil
}

// takes has a call take its time.
func (d *csiDriver) takes(ctx context.Context, method string) error {
	span, ok := d.o.Latency[method]
	if !ok {
		return nil
	}
	d.drawn++
	if err := d.h.l.Sleep(ctx, d.h.l.Between(span.Min, max(span.Min, span.Max), "csi/"+method, d.h.node, d.drawn)); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// NodeStageVolume implements csi.NodeServer.
func (d *csiDriver) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := d.takes(ctx, "NodeStageVolume"); err != nil {
		return nil, err
	}
	if req.VolumeCapability.GetBlock() != nil {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	if err := d.mount(ctx, req.VolumeId, req.StagingTargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *csiDriver) NodeUnstageVolume(ctx context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := d.takes(ctx, "NodeUnstageVolume"); err != nil {
		return nil, err
	}
	if err := d.unmount(req.VolumeId, req.StagingTargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer. The directory is made by the driver, below
// one that is there.
func (d *csiDriver) NodePublishVolume(ctx context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := d.takes(ctx, "NodePublishVolume"); err != nil {
		return nil, err
	}
	if d.h.fs != nil {
		if _, err := d.h.fs.Stat(path.Dir(req.TargetPath)); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	if req.VolumeCapability.GetBlock() != nil {
		return d.publishBlock(ctx, req.VolumeId, req.TargetPath)
	}
	if err := d.mount(ctx, req.VolumeId, req.TargetPath); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// behind is where the data of a volume that is published as a block device is mounted.
func (d *csiDriver) behind(handle, target string) string {
	return path.Join(blockDir, d.o.Driver, handle, path.Base(target))
}

// blockDir is where drivers mount the data of block devices.
const blockDir = "/run/csi"

// blockData is the file of a volume whose bytes are those of its block device.
const blockData = "data"

// publishBlock makes a device with the volume's data.
func (d *csiDriver) publishBlock(ctx context.Context, handle, target string) (*csi.NodePublishVolumeResponse, error) {
	at := d.behind(handle, target)
	if err := d.mount(ctx, handle, at); err != nil {
		return nil, err
	}
	size := int64(defaultBlock)
	if v := d.h.held[volumeKey{d.o.Driver, handle}]; v != nil && v.tree != nil && v.tree.Size > 0 {
		size = v.tree.Size
	}
	data := path.Join(at, blockData)
	if err := d.h.extend(data, size); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if _, err := d.h.fs.Lstat(target); err == nil {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := d.h.fs.Mknod(target, fs.ModeDevice|0o660, kernel.DiskDriver+data); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// extend has the data of a block device be as large as its volume, at least. What nobody wrote
// takes no room.
func (h *Host) extend(data string, size int64) error {
	info, err := h.fs.Stat(data)
	if errors.Is(err, fs.ErrNotExist) {
		err = h.fs.WriteFile(data, nil, 0o600)
	} else if err == nil && info.Size() >= size {
		return nil
	}
	if err == nil {
		err = h.fs.Truncate(data, size)
	}
	if err != nil {
		return fmt.Errorf("a block device's data: %w", err)
	}
	return nil
}

// defaultBlock is the size of a block device whose volume has none, in bytes.
const defaultBlock = 1 << 30

// NodeUnpublishVolume implements csi.NodeServer.
func (d *csiDriver) NodeUnpublishVolume(ctx context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := d.takes(ctx, "NodeUnpublishVolume"); err != nil {
		return nil, err
	}
	target := req.TargetPath
	if behind := d.behind(req.VolumeId, target); d.h.fs.Mounted(behind) {
		target = behind // a block device
	}
	if err := d.unmount(req.VolumeId, target); err != nil {
		return nil, err
	}
	if err := d.h.fs.RemoveAll(req.TargetPath); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume implements csi.NodeServer.
func (d *csiDriver) NodeExpandVolume(ctx context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := d.takes(ctx, "NodeExpandVolume"); err != nil {
		return nil, err
	}
	key, size := volumeKey{d.o.Driver, req.VolumeId}, req.CapacityRange.GetRequiredBytes()
	if v := d.h.held[key]; v != nil && v.tree != nil && size > v.tree.Size {
		d.h.resize(key, size)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: req.CapacityRange.GetRequiredBytes()}, nil
}

// NodeGetVolumeStats implements csi.NodeServer.
func (d *csiDriver) NodeGetVolumeStats(ctx context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := d.takes(ctx, "NodeGetVolumeStats"); err != nil {
		return nil, err
	}
	v := d.h.held[volumeKey{d.o.Driver, req.VolumeId}]
	switch {
	case d.o.Stats != nil:
		return d.o.Stats, nil
	case v == nil || v.tree == nil:
		return nil, status.Error(codes.Unimplemented, "method NodeGetVolumeStats not implemented")
	}
	used := v.tree.Used()
	return &csi.NodeGetVolumeStatsResponse{VolumeCondition: d.condition(req.VolumeId), Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: v.tree.Size, Used: used.Bytes, Available: max(v.tree.Size-used.Bytes, 0)},
		{Unit: csi.VolumeUsage_INODES, Used: used.Inodes},
	}}, nil
}
