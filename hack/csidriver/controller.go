//go:build linux

package main

import (
	"cmp"
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultSize is a volume's that nobody asked a size for, in bytes.
const defaultSize = 16 << 20

// controller is the driver's controller service.
type controller struct {
	csi.UnimplementedControllerServer
	volumes *volumes
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	out := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out.Capabilities = append(out.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return out, nil
}

// CreateVolume makes a volume of a name, or returns that which is there.
func (c *controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := checkID(req.Name); err != nil {
		return nil, err
	}
	size := max(cmp.Or(req.CapacityRange.GetRequiredBytes(), defaultSize), 1<<20)
	if limit := req.CapacityRange.GetLimitBytes(); limit > 0 && size > limit {
		return nil, status.Errorf(codes.OutOfRange, "%d bytes are more than the limit of %d", size, limit)
	}
	v := &volume{Size: size, Dir: req.Parameters["kind"] == "dir"}
	switch was, err := c.volumes.load(req.Name); {
	case err == nil && was.Size < size:
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is there with %d bytes", req.Name, was.Size)
	case err == nil:
		v = was
	default:
		if err := c.volumes.create(req.Name, v); err != nil {
			return nil, internal("create volume", req.Name, err)
		}
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: req.Name, CapacityBytes: v.Size}}, nil
}

func (c *controller) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := checkID(req.VolumeId); err != nil {
		return nil, err
	}
	if v, err := c.volumes.load(req.VolumeId); err == nil && v.Node != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is on node %s", req.VolumeId, v.Node)
	}
	if err := c.volumes.remove(req.VolumeId); err != nil {
		return nil, internal("delete volume", req.VolumeId, err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerPublishVolume notes the node that has a volume: only one can.
func (c *controller) ControllerPublishVolume(_ context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	err := c.volumes.change(req.VolumeId, func(v *volume) error {
		if v.Node != "" && v.Node != req.NodeId {
			return status.Errorf(codes.FailedPrecondition, "volume %s is on node %s", req.VolumeId, v.Node)
		}
		v.Node = req.NodeId
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// ControllerUnpublishVolume takes a volume from its node: one that is still mounted there
// is a mistake of who asks, and never done.
func (c *controller) ControllerUnpublishVolume(_ context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if _, err := c.volumes.load(req.VolumeId); err != nil {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	err := c.volumes.change(req.VolumeId, func(v *volume) error {
		if v.Staged {
			return status.Errorf(codes.FailedPrecondition, "volume %s is still staged", req.VolumeId)
		}
		v.Node = ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (c *controller) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, err := c.volumes.load(req.VolumeId); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: req.VolumeCapabilities}}, nil
}

// ControllerExpandVolume makes a volume's file greater; its file system is the node's.
func (c *controller) ControllerExpandVolume(_ context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	out := &csi.ControllerExpandVolumeResponse{}
	err := c.volumes.change(req.VolumeId, func(v *volume) error {
		v.Size = max(v.Size, req.CapacityRange.GetRequiredBytes())
		out.CapacityBytes, out.NodeExpansionRequired = v.Size, !v.Dir
		return c.volumes.resize(req.VolumeId, v)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
