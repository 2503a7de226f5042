package plugins

import (
	"context"
	"strings"

	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// DRADriver describes a DRA driver.
type DRADriver struct {
	Name string
	// Devices is what a claim gets when it is prepared; nil: nothing.
	Devices func(claim *drapb.Claim) []*drapb.Device
}

// draDriver is a driver's process.
type draDriver struct {
	drapb.UnimplementedDRAPluginServer
	registerapi.UnimplementedRegistrationServer
	h       *Host
	o       DRADriver
	sockets []*Server
}

// DriverName implements Driver.
func (o DRADriver) DriverName() string { return o.Name }

func (o DRADriver) endpoint() string { return rootDir + "/plugins/" + o.Name + "/dra.sock" }

// start implements Driver.
func (o DRADriver) start(h *Host) process {
	d := &draDriver{h: h, o: o}
	d.sockets = []*Server{
		h.Listen(o.endpoint(), o.Name, func(s *Server) { drapb.RegisterDRAPluginServer(s, d) }),
		h.Listen(rootDir+"/plugins_registry/"+o.Name+"-reg.sock", o.Name, func(s *Server) { registerapi.RegisterRegistrationServer(s, d) }),
	}
	return d
}

// stop implements process.
func (d *draDriver) stop() { closeAll(d.sockets) }

// GetInfo answers the kubelet's plugin manager.
func (d *draDriver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.DRAPlugin, Name: d.o.Name, Endpoint: d.o.endpoint(), SupportedVersions: []string{drapb.DRAPluginService}}, nil
}

// NotifyRegistrationStatus answers the kubelet's plugin manager.
func (d *draDriver) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

// NodePrepareResources implements drapb.DRAPluginServer.
func (d *draDriver) NodePrepareResources(_ context.Context, req *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	resp := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, c := range req.Claims {
		r := &drapb.NodePrepareResourceResponse{Error: d.h.broken}
		if r.Error == "" && d.o.Devices != nil {
			r.Devices = d.o.Devices(c)
		}
		resp.Claims[c.Uid] = r
	}
	return resp, nil
}

// NodeUnprepareResources implements drapb.DRAPluginServer.
func (d *draDriver) NodeUnprepareResources(_ context.Context, req *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	resp := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
	for _, c := range req.Claims {
		resp.Claims[c.Uid] = &drapb.NodeUnprepareResourceResponse{Error: d.h.broken}
	}
	return resp, nil
}

// AnyDRA is a machine on which every DRA driver is registered and prepares any claim at
// once. Containers get nothing with it.
type AnyDRA struct{}

// DRAPlugin implements cm.DRAPlugins.
func (AnyDRA) DRAPlugin(string) cm.DRAPlugin { return obligingDriver{} }

type obligingDriver struct{}

// NodePrepareResources implements cm.DRAPlugin.
func (obligingDriver) NodePrepareResources(_ context.Context, req *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	resp := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, c := range req.Claims {
		resp.Claims[c.Uid] = &drapb.NodePrepareResourceResponse{}
	}
	return resp, nil
}

// NodeUnprepareResources implements cm.DRAPlugin.
func (obligingDriver) NodeUnprepareResources(_ context.Context, req *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	resp := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
	for _, c := range req.Claims {
		resp.Claims[c.Uid] = &drapb.NodeUnprepareResourceResponse{}
	}
	return resp, nil
}

// ByName answers a claim with the devices of the first of some prefixes that its name has.
func ByName(prefixes []string, devices map[string][]*drapb.Device) func(*drapb.Claim) []*drapb.Device {
	return func(c *drapb.Claim) []*drapb.Device {
		for _, p := range prefixes {
			if strings.HasPrefix(c.Name, p) {
				return devices[p]
			}
		}
		return nil
	}
}
