package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
)

// ListPodSandbox returns the sandboxes that the filter lets through, in order
// of creation. What it returns is shared and must not be changed.
func (c *Client) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	if err := c.by.Read(ctx, calls.ListPodSandbox, c.r.recs.SelectorSubject(filter.GetLabelSelector())); err != nil {
		return nil, err
	}
	return c.r.recs.ListSandboxes(filter), nil
}

// ListContainers returns the containers that the filter lets through, in order
// of creation. What it returns is shared and must not be changed.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	if err := c.by.Read(ctx, calls.ListContainers, c.r.recs.SelectorSubject(filter.GetLabelSelector())); err != nil {
		return nil, err
	}
	return c.r.recs.ListContainers(filter), nil
}
