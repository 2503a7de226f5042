package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

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
	h *Host
	o DRADriver
}

// StartDRA starts a DRA driver, or one of the same name anew.
func (h *Host) StartDRA(o DRADriver) { h.dra[o.Name] = &draDriver{h, o} }

// StopDRA has a driver go away.
func (h *Host) StopDRA(name string) error {
	if h.dra[name] == nil {
		return fmt.Errorf("there is no DRA driver %s", name)
	}
	delete(h.dra, name)
	h.tell(Call{At: h.l.Now(), Plugin: name, Method: "(stopped)"})
	return nil
}

// DRAPlugin implements cm.DRAPlugins.
func (h *Host) DRAPlugin(name string) cm.DRAPlugin {
	if d := h.dra[name]; d != nil {
		return d
	}
	return nil
}

// askDRA has a rule act on a call and answers it; claimError is what each of its claims
// fails with.
func askDRA[Resp proto.Message](d *draDriver, ctx context.Context, method string, req proto.Message, answer func(claimError string) Resp) (Resp, error) {
	c := Call{At: d.h.l.Now(), Plugin: d.o.Name, Method: method, Req: req}
	err := d.h.rule(ctx, d.o.Name, method, req)
	var broken claimError
	if errors.As(err, &broken) {
		err = nil
	}
	var resp Resp
	if err == nil {
		resp = answer(string(broken))
		c.Resp = resp
	}
	c.Took, c.Err = d.h.l.Since(c.At), err
	d.h.tell(c)
	return resp, err
}

// NodePrepareResources implements cm.DRAPlugin.
func (d *draDriver) NodePrepareResources(ctx context.Context, req *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	return askDRA(d, ctx, "NodePrepareResources", req, func(claimError string) *drapb.NodePrepareResourcesResponse {
		resp := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
		for _, c := range req.Claims {
			r := &drapb.NodePrepareResourceResponse{Error: claimError}
			if claimError == "" && d.o.Devices != nil {
				r.Devices = d.o.Devices(c)
			}
			resp.Claims[c.Uid] = r
		}
		return resp
	})
}

// NodeUnprepareResources implements cm.DRAPlugin.
func (d *draDriver) NodeUnprepareResources(ctx context.Context, req *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	return askDRA(d, ctx, "NodeUnprepareResources", req, func(claimError string) *drapb.NodeUnprepareResourcesResponse {
		resp := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
		for _, c := range req.Claims {
			resp.Claims[c.Uid] = &drapb.NodeUnprepareResourceResponse{Error: claimError}
		}
		return resp
	})
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
