package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// DRADriver describes a DRA driver.
type DRADriver struct {
	Name string
	// Devices is what a claim gets when it is prepared; nil: what it was allocated of Pool,
	// or nothing without one.
	Devices func(claim *drapb.Claim) []*drapb.Device
	// Pool is what the driver offers on the node; nil: it publishes nothing.
	Pool *Pool
	// Health is what it says of its devices' health, beside what it says of Pool. A driver
	// with neither has no such service.
	Health []*drahealth.DeviceHealth
}

// draDriver is a driver's process.
type draDriver struct {
	drapb.UnimplementedDRAPluginServer
	drahealth.UnimplementedDRAResourceHealthServer
	registerapi.UnimplementedRegistrationServer
	h         *Host
	g         *loop.Group
	o         DRADriver
	sockets   []*Server
	watchers  []*loop.Queue[[]*drahealth.DeviceHealth]
	publisher *publisher // nil: it has no pool
}

// DriverName implements Driver.
func (o DRADriver) DriverName() string { return o.Name }

func (o DRADriver) endpoint() string { return rootDir + "/plugins/" + o.Name + "/dra.sock" }

// start implements Driver.
func (o DRADriver) start(h *Host) process {
	d := &draDriver{h: h, g: h.l.NewGroup("driver " + o.Name), o: o}
	if o.Pool != nil {
		d.publisher = newPublisher(d)
	}
	d.sockets = []*Server{
		h.Listen(o.endpoint(), o.Name, func(s *Server) {
			drapb.RegisterDRAPluginServer(s, d)
			if d.tellsHealth() {
				drahealth.RegisterDRAResourceHealthServer(s, d)
			}
		}),
		h.Listen(rootDir+"/plugins_registry/"+o.Name+"-reg.sock", o.Name, func(s *Server) { registerapi.RegisterRegistrationServer(s, d) }),
	}
	return d
}

// stop implements process.
func (d *draDriver) stop() {
	closeAll(d.sockets)
	d.g.Kill()
}

// tellsHealth reports whether the driver has the service DRAResourceHealth.
func (d *draDriver) tellsHealth() bool { return d.o.Pool != nil || d.o.Health != nil }

// SetHealth has a driver say something else of its devices' health.
func (h *Host) SetHealth(name string, list []*drahealth.DeviceHealth) error {
	d, ok := h.running(name).(*draDriver)
	if !ok {
		return fmt.Errorf("there is no DRA driver %s", name)
	}
	d.o.Health = list
	d.tellHealth()
	return nil
}

// tellHealth sends what the driver says now on all streams.
func (d *draDriver) tellHealth() {
	for _, q := range d.watchers {
		q.TryPut(d.health())
	}
}

// health is what the driver says of its devices.
func (d *draDriver) health() []*drahealth.DeviceHealth {
	if d.o.Pool == nil {
		return d.o.Health
	}
	return append(d.publisher.health(), d.o.Health...)
}

// NodeWatchResources implements drahealth.DRAResourceHealthServer.
func (d *draDriver) NodeWatchResources(_ *drahealth.NodeWatchResourcesRequest, s drahealth.DRAResourceHealth_NodeWatchResourcesServer) error {
	q := loop.NewQueue[[]*drahealth.DeviceHealth](0)
	d.watchers = append(d.watchers, q)
	defer func() {
		d.watchers = slices.DeleteFunc(d.watchers, func(o *loop.Queue[[]*drahealth.DeviceHealth]) bool { return o == q })
	}()
	for list := d.health(); ; {
		now := d.h.l.Now().Unix()
		m := &drahealth.NodeWatchResourcesResponse{}
		for _, h := range list {
			h = proto.CloneOf(h)
			h.LastUpdatedTime = now
			m.Devices = append(m.Devices, h)
		}
		err := s.Send(m)
		if err == nil {
			list, err = q.Get(s.Context())
		}
		if err != nil {
			return status.FromContextError(err).Err()
		}
	}
}

// GetInfo answers the kubelet's plugin manager.
func (d *draDriver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	versions := []string{drapb.DRAPluginService}
	if d.tellsHealth() {
		versions = append(versions, "v1alpha1.DRAResourceHealth")
	}
	return &registerapi.PluginInfo{Type: registerapi.DRAPlugin, Name: d.o.Name, Endpoint: d.o.endpoint(), SupportedVersions: versions}, nil
}

// NotifyRegistrationStatus answers the kubelet's plugin manager. What a driver offers is
// published once the first kubelet has taken it in: on a real node it is the kubelet that
// starts its pod.
func (d *draDriver) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if d.publisher != nil && s.PluginRegistered {
		d.publisher.begin()
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// NodePrepareResources implements drapb.DRAPluginServer.
func (d *draDriver) NodePrepareResources(ctx context.Context, req *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	resp := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, c := range req.Claims {
		r := &drapb.NodePrepareResourceResponse{Error: d.h.broken}
		switch {
		case r.Error != "":
		case d.o.Devices != nil:
			r.Devices = d.o.Devices(c)
		case d.publisher != nil:
			var err error
			if r.Devices, err = d.publisher.prepare(ctx, c); err != nil {
				r.Error = err.Error()
			}
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
