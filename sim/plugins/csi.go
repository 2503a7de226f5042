package plugins

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// rootDir is the kubelet's, below which drivers listen.
const rootDir = "/var/lib/kubelet"

// CSI describes a driver of CSI: its node service.
type CSI struct {
	Driver string
	// NodeID is the driver's name for the node.
	NodeID string
	// MaxVolumes is how many the node can have; 0: it does not say.
	MaxVolumes int64
	// Topology is where the node is, by keys of labels.
	Topology map[string]string
	// Capabilities of the node service.
	Capabilities []csi.NodeServiceCapability_RPC_Type
	// Stats is what it says of each volume, if not nil. Without, and with the capability
	// GET_VOLUME_STATS, it says what the volume has and what is used.
	Stats *csi.NodeGetVolumeStatsResponse
	// Storage is where volumes are while the node has them not; nil: they are the node's.
	Storage *Storage
	// Latency is how long calls take, by method.
	Latency map[string]Span
}

// csiDriver is a driver's process.
type csiDriver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registerapi.UnimplementedRegistrationServer
	h       *Host
	o       CSI
	sockets []*Server
	drawn   uint64
	// conditions are what was said of volumes' health; the last one that holds counts.
	conditions []VolumeCondition
}

// VolumeCondition is the health of volumes from now on.
type VolumeCondition struct {
	// Matches says of which volumes, by their handles.
	Matches func(handle string) bool
	Healthy bool
	// Message is why they are not.
	Message string
}

func (o CSI) endpoint() string { return rootDir + "/plugins/" + o.Driver + "/csi.sock" }

// DriverName implements Driver.
func (o CSI) DriverName() string { return o.Driver }

// start implements Driver.
func (o CSI) start(h *Host) process {
	d := &csiDriver{h: h, o: o}
	d.sockets = []*Server{
		h.Listen(o.endpoint(), o.Driver, func(s *Server) {
			csi.RegisterIdentityServer(s, d)
			csi.RegisterNodeServer(s, d)
		}),
		h.Listen(rootDir+"/plugins_registry/"+o.Driver+"-reg.sock", o.Driver, func(s *Server) { registerapi.RegisterRegistrationServer(s, d) }),
	}
	return d
}

// stop implements process.
func (d *csiDriver) stop() { closeAll(d.sockets) }

// SetCSI has a driver say another number of volumes that the node can have.
func (h *Host) SetCSI(name string, maxVolumes int64) error {
	d, ok := h.running(name).(*csiDriver)
	if !ok {
		return fmt.Errorf("there is no CSI driver %s", name)
	}
	d.o.MaxVolumes = maxVolumes
	return nil
}

// IsCSI reports whether a driver that runs is one of CSI.
func (h *Host) IsCSI(name string) bool {
	_, ok := h.running(name).(*csiDriver)
	return ok
}

// SetVolumeCondition has a driver say that volumes are healthy, or are not.
func (h *Host) SetVolumeCondition(name string, c VolumeCondition) error {
	d, ok := h.running(name).(*csiDriver)
	if !ok {
		return fmt.Errorf("there is no CSI driver %s", name)
	}
	d.conditions = append(d.conditions, c)
	return nil
}

// condition is what the driver says of a volume.
func (d *csiDriver) condition(handle string) *csi.VolumeCondition {
	for _, c := range slices.Backward(d.conditions) {
		if c.Matches(handle) && !c.Healthy {
			return &csi.VolumeCondition{Abnormal: true, Message: c.Message}
		} else if c.Matches(handle) {
			break
		}
	}
	return &csi.VolumeCondition{Message: "the volume is healthy"}
}

// GetInfo answers the kubelet's plugin manager.
func (d *csiDriver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: d.o.Driver, Endpoint: d.o.endpoint(), SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus answers the kubelet's plugin manager.
func (d *csiDriver) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

// GetPluginInfo implements csi.IdentityServer.
func (d *csiDriver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.o.Driver, VendorVersion: "1.0.0"}, nil
}

// Probe implements csi.IdentityServer.
func (d *csiDriver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// NodeGetInfo implements csi.NodeServer.
func (d *csiDriver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	resp := &csi.NodeGetInfoResponse{NodeId: d.o.NodeID, MaxVolumesPerNode: d.o.MaxVolumes}
	if len(d.o.Topology) > 0 {
		resp.AccessibleTopology = &csi.Topology{Segments: d.o.Topology}
	}
	return resp, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (d *csiDriver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	resp := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range d.o.Capabilities {
		resp.Capabilities = append(resp.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return resp, nil
}
