//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodeServer is the driver's node service.
type nodeServer struct {
	csi.UnimplementedNodeServer
	volumes *volumes
	name    string
}

func (n *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

func (n *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	out := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out.Capabilities = append(out.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}}})
	}
	return out, nil
}

// NodeStageVolume mounts a volume's file system for the node; a block volume gets its loop
// device. The file system is made with the volume's first use.
func (n *nodeServer) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	err := n.volumes.change(req.VolumeId, func(v *volume) error {
		if v.Node != "" && v.Node != n.name { // without an attacher nobody says so
			return status.Errorf(codes.FailedPrecondition, "volume %s is on node %q", req.VolumeId, v.Node)
		}
		data := n.volumes.data(req.VolumeId, v)
		v.Staged = true
		switch {
		case v.Dir:
			return bind(data, req.StagingTargetPath, false)
		case req.VolumeCapability.GetBlock() != nil:
			_, err := attachLoop(data)
			return err
		}
		m := req.VolumeCapability.GetMount()
		return mountImage(data, req.StagingTargetPath, m.GetFsType(), m.GetMountFlags())
	})
	if err != nil {
		return nil, status.Errorf(status.Code(err), "stage %s: %v", req.VolumeId, err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

func (n *nodeServer) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if _, err := n.volumes.load(req.VolumeId); status.Code(err) == codes.NotFound {
		return &csi.NodeUnstageVolumeResponse{}, unmount(req.StagingTargetPath)
	}
	err := n.volumes.change(req.VolumeId, func(v *volume) error {
		if err := unmount(req.StagingTargetPath); err != nil {
			return err
		}
		v.Staged = false
		return detachLoop(n.volumes.data(req.VolumeId, v))
	})
	if err != nil {
		return nil, status.Errorf(status.Code(err), "unstage %s: %v", req.VolumeId, err)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume binds what is staged to a pod's path.
func (n *nodeServer) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	v, err := n.volumes.load(req.VolumeId)
	if err != nil {
		return nil, err
	}
	if !v.Staged {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not staged", req.VolumeId)
	}
	if req.VolumeCapability.GetBlock() != nil {
		err = n.publishBlock(req, v)
	} else if err = os.MkdirAll(req.TargetPath, 0o750); err == nil {
		err = bind(req.StagingTargetPath, req.TargetPath, req.Readonly)
	}
	if err != nil {
		return nil, internal("publish", req.VolumeId, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *nodeServer) publishBlock(req *csi.NodePublishVolumeRequest, v *volume) error {
	device, err := attachLoop(n.volumes.data(req.VolumeId, v))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(req.TargetPath), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(req.TargetPath, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), bind(device, req.TargetPath, req.Readonly))
}

func (n *nodeServer) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unmount(req.TargetPath); err != nil {
		return nil, internal("unpublish", req.VolumeId, err)
	}
	// Only what is empty: data that is still mounted here must not go.
	if err := os.Remove(req.TargetPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, internal("unpublish", req.VolumeId, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *nodeServer) NodeExpandVolume(_ context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	v, err := n.volumes.load(req.VolumeId)
	if err == nil && !v.Dir {
		mounted := req.VolumePath
		if req.VolumeCapability.GetBlock() != nil {
			mounted = ""
		}
		err = growLoop(n.volumes.data(req.VolumeId, v), mounted)
	}
	if err != nil {
		return nil, internal("expand", req.VolumeId, err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}

func (n *nodeServer) NodeGetVolumeStats(_ context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(req.VolumePath, &st); err != nil {
		return nil, status.Errorf(codes.NotFound, "statistics of %s: %v", req.VolumePath, err)
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(st.Blocks) * st.Bsize, Available: int64(st.Bavail) * st.Bsize, Used: int64(st.Blocks-st.Bfree) * st.Bsize},
		{Unit: csi.VolumeUsage_INODES, Total: int64(st.Files), Available: int64(st.Ffree), Used: int64(st.Files - st.Ffree)},
	}}, nil
}
