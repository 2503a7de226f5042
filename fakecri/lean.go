package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// RunPodSandboxOf is RunPodSandbox of what config comes to.
func (c *Client) RunPodSandboxOf(ctx context.Context, config SandboxConfig, runtimeHandler string) (string, error) {
	c.r.assumeUsers(config.Metadata())
	return c.r.life.RunSandbox(ctx, &c.by, &records.Sandbox{Config: config.Shared(), Metadata: config.Metadata(), Own: config, Handler: runtimeHandler})
}

// CreateContainerOf is CreateContainer of a config that lacks the labels, which
// are the kubelet's: pod, namespace, uid and container. Replicas can share it.
func (c *Client) CreateContainerOf(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig) (string, error) {
	return c.r.life.CreateContainer(ctx, &c.by, podSandboxID, config, true)
}

// LeanPodSandboxStatus is PodSandboxStatus; a sandbox of RunPodSandboxOf is shown
// without labels and annotations.
func (c *Client) LeanPodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	s, err := c.readSandbox(ctx, calls.PodSandboxStatus, id)
	if err != nil {
		return nil, err
	}
	return c.r.view.leanSandboxStatus(s), nil
}

// LeanContainerStatus is ContainerStatus; a container of CreateContainerOf is
// shown without labels, and until it has exited without the path of its log.
func (c *Client) LeanContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	ctr, err := c.readContainer(ctx, calls.ContainerStatus, id)
	if err != nil {
		return nil, err
	}
	return c.r.view.leanContainerStatus(ctr), nil
}
