package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// CreateContainer makes a container in a READY sandbox, of an image that is
// present, and returns its id.
func (c *Client) CreateContainer(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	return c.r.life.CreateContainer(ctx, &c.by, podSandboxID, config, false)
}

// StartContainer starts a container that is CREATED.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	return c.r.life.StartContainer(ctx, &c.by, id)
}

// StopContainer sends the stop signal, waits up to timeout seconds and kills
// what then still runs; a timeout of 0 kills at once. It returns when the
// process has ended. What is unknown or doesn't run is no error.
func (c *Client) StopContainer(ctx context.Context, id string, timeout int64) error {
	sub := c.r.recs.ContainerSubject(id)
	sub.Timeout = max(timeout, 0)
	_, err := calls.Change(ctx, &c.by, calls.StopContainer, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.r.life.StopContainer(ctx, &sub, id)
	})
	return err
}

// RemoveContainer removes a container, killing it first if it runs. It may be
// repeated, and unknown ids succeed. A container that is being started or
// removed can't be removed.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	sub := c.r.recs.ContainerSubject(id)
	_, err := calls.Change(ctx, &c.by, calls.RemoveContainer, &sub, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.r.life.RemoveContainerCall(ctx, &sub, id)
	})
	return err
}

// UpdateContainerResources takes over the resources that are set, all or, with
// InvalidArgument, none of them; a memory limit below what the program uses gets
// it killed.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	r, sub := c.r, c.r.recs.ContainerSubject(id)
	sub.Resources = resources.GetLinux()
	return c.by.Update(ctx, calls.UpdateContainerResources, &sub, func() error {
		return r.life.UpdateContainer(id, resources.GetLinux())
	})
}

// ReopenContainerLog makes the log file of a running container anew, after
// the caller has renamed it.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	r, sub := c.r, c.r.recs.ContainerSubject(id)
	return c.by.Update(ctx, calls.ReopenContainerLog, &sub, func() error {
		c, err := r.recs.NeedContainer(id)
		switch {
		case err != nil:
			return err
		case c.State != records.StateRunning:
			return status.Error(codes.FailedPrecondition, "container is not running")
		}
		if err := r.out.OpenLog(c); err != nil {
			return status.Error(codes.Unknown, err.Error())
		}
		return nil
	})
}
