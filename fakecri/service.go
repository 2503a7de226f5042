package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
)

// Version returns the runtime's name and versions.
func (c *Client) Version(ctx context.Context, _ string) (*runtimeapi.VersionResponse, error) {
	if err := c.by.Read(ctx, calls.Version, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	return &runtimeapi.VersionResponse{
		Version:           "0.1.0",
		RuntimeName:       c.r.opts.Name,
		RuntimeVersion:    c.r.opts.Version,
		RuntimeApiVersion: "v1",
	}, nil
}

// Status returns the conditions RuntimeReady and NetworkReady and the runtime
// handlers.
func (c *Client) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	if err := c.by.Read(ctx, calls.Status, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	network := c.r.view.networkNotReady
	if network == nil {
		network = &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}
	}
	resp := &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			network,
		}},
		RuntimeHandlers: c.r.life.Handlers,
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}
	if verbose {
		resp.Info = c.r.view.statusInfo()
	}
	return resp, nil
}

// RuntimeConfig returns the cgroup driver.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	if err := c.by.Read(ctx, calls.RuntimeConfig, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	driver := runtimeapi.CgroupDriver_CGROUPFS
	if c.r.kern.Options.CgroupDriver == "systemd" {
		driver = runtimeapi.CgroupDriver_SYSTEMD
	}
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: driver}}, nil
}

// UpdateRuntimeConfig accepts what it is told and only the trace shows it: pod IPs
// come from Options.PodCIDR, as if the network were configured elsewhere. A
// containerd without a template for its network's configuration does the same.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	sub := calls.Subject{Timeout: -1, PodCIDR: config.GetNetworkConfig().GetPodCidr()}
	return c.by.Update(ctx, calls.UpdateRuntimeConfig, &sub, func() error { return nil })
}

// CheckpointContainer is Unimplemented.
func (c *Client) CheckpointContainer(ctx context.Context, _ *runtimeapi.CheckpointContainerRequest) error {
	return c.by.Unimplemented(ctx, "CheckpointContainer")
}

// GetContainerEvents is Unimplemented: it needs a channel. See ContainerEvents.
func (c *Client) GetContainerEvents(ctx context.Context, _ chan *runtimeapi.ContainerEventResponse, _ func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return c.by.Unimplemented(ctx, "GetContainerEvents")
}
