package csi

import (
	"context"
	"fmt"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// client is a connection to a driver's node service, for one operation.
type client struct {
	csispec.NodeClient
	close func()
	caps  []*csispec.NodeServiceCapability
	asked bool
}

// client connects to a driver (newCsiDriverClient). The error is a TransientError.
func (h *Handler) client(ctx context.Context, name string) (*client, error) {
	d, ok := h.drivers[name]
	if !ok {
		return nil, &volume.TransientError{Err: fmt.Errorf("driver name %s not found in the list of registered CSI drivers", name)}
	}
	conn, err := h.o.Sockets.Dial(ctx, d.endpoint)
	if err != nil {
		return nil, &volume.TransientError{Err: err}
	}
	return &client{NodeClient: csispec.NewNodeClient(conn), close: func() { _ = conn.Close() }}, nil
}

// can asks whether the driver's node service has a capability.
func (c *client) can(ctx context.Context, t csispec.NodeServiceCapability_RPC_Type) (bool, error) {
	if !c.asked {
		resp, err := c.NodeGetCapabilities(ctx, &csispec.NodeGetCapabilitiesRequest{})
		if err != nil {
			return false, err
		}
		c.caps, c.asked = resp.Capabilities, true
	}
	return slices.ContainsFunc(c.caps, func(k *csispec.NodeServiceCapability) bool { return k.GetRpc().GetType() == t }), nil
}

// within is a call to a driver that takes no longer than calls may.
func within[T any](ctx context.Context, call func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := loop.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}

// progress is the error of a call that changes something: an UncertainError, if it may
// still have its effect (isFinalError).
func progress(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return &volume.UncertainError{Err: err}
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return &volume.UncertainError{Err: err}
	}
	return err
}

// accessMode is a volume's as drivers are told it (asCSIAccessModeV1 and
// asSingleNodeMultiWriterCapableCSIAccessModeV1).
func accessMode(modes []v1.PersistentVolumeAccessMode, multiWriter bool) csispec.VolumeCapability_AccessMode_Mode {
	mode := v1.ReadWriteOnce
	if len(modes) > 0 {
		mode = modes[0]
	}
	switch mode {
	case v1.ReadOnlyMany:
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case v1.ReadWriteMany:
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case v1.ReadWriteOnce:
		if multiWriter {
			return csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
	case v1.ReadWriteOncePod:
		if multiWriter {
			return csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	}
	return csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

// capability is how a volume is to be mounted. group is for drivers that give the files to
// the pod's fsGroup themselves.
func (c *client) capability(ctx context.Context, pv *v1.PersistentVolume, fsType string, group *int64) (*csispec.VolumeCapability, error) {
	multi, err := c.can(ctx, csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	if err != nil {
		return nil, err
	}
	mount := &csispec.VolumeCapability_MountVolume{FsType: fsType}
	out := &csispec.VolumeCapability{AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	if pv != nil {
		mount.MountFlags = pv.Spec.MountOptions
		out.AccessMode.Mode = accessMode(pv.Spec.AccessModes, multi)
	}
	if group != nil {
		mount.VolumeMountGroup = fmt.Sprint(*group)
	}
	out.AccessType = &csispec.VolumeCapability_Mount{Mount: mount}
	if isBlock(pv) {
		out.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	}
	return out, nil
}
