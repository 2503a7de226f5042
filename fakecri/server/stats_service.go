//go:build linux

package server

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

func (r *runtimeService) ContainerStats(ctx context.Context, req *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	resp, err := onLoop(ctx, r.s, "ContainerStats", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ContainerStatsResponse, error) {
		st, err := c.ContainerStats(ctx, req.ContainerId)
		return &runtimeapi.ContainerStatsResponse{Stats: st}, err
	})
	return wallTimes(r.s, resp), err
}

func (r *runtimeService) ListContainerStats(ctx context.Context, req *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	items, err := r.containerStats(ctx, req.Filter)
	if err != nil {
		return nil, err
	}
	return wallTimes(r.s, &runtimeapi.ListContainerStatsResponse{Stats: items}), nil
}

// containerStats is ListContainerStats, for the listing and the stream of it.
func (r *runtimeService) containerStats(ctx context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return onLoop(ctx, r.s, "ListContainerStats", func(ctx context.Context, c *fakecri.Client) ([]*runtimeapi.ContainerStats, error) {
		return c.ListContainerStats(ctx, f)
	})
}

func (r *runtimeService) PodSandboxStats(ctx context.Context, req *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	resp, err := onLoop(ctx, r.s, "PodSandboxStats", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.PodSandboxStatsResponse, error) {
		st, err := c.PodSandboxStats(ctx, req.PodSandboxId)
		return &runtimeapi.PodSandboxStatsResponse{Stats: st}, err
	})
	return wallTimes(r.s, resp), err
}

func (r *runtimeService) ListPodSandboxStats(ctx context.Context, req *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	items, err := r.sandboxStats(ctx, req.Filter)
	if err != nil {
		return nil, err
	}
	return wallTimes(r.s, &runtimeapi.ListPodSandboxStatsResponse{Stats: items}), nil
}

// sandboxStats is ListPodSandboxStats, for the listing and the stream of it.
func (r *runtimeService) sandboxStats(ctx context.Context, f *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return onLoop(ctx, r.s, "ListPodSandboxStats", func(ctx context.Context, c *fakecri.Client) ([]*runtimeapi.PodSandboxStats, error) {
		return c.ListPodSandboxStats(ctx, f)
	})
}

func (r *runtimeService) ListMetricDescriptors(ctx context.Context, _ *runtimeapi.ListMetricDescriptorsRequest) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	return onLoop(ctx, r.s, "ListMetricDescriptors", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ListMetricDescriptorsResponse, error) {
		list, err := c.ListMetricDescriptors(ctx)
		return &runtimeapi.ListMetricDescriptorsResponse{Descriptors: list}, err
	})
}

func (r *runtimeService) ListPodSandboxMetrics(ctx context.Context, _ *runtimeapi.ListPodSandboxMetricsRequest) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	items, err := r.metrics(ctx)
	if err != nil {
		return nil, err
	}
	return wallTimes(r.s, &runtimeapi.ListPodSandboxMetricsResponse{PodMetrics: items}), nil
}

// metrics is ListPodSandboxMetrics, for the listing and the stream of it.
func (r *runtimeService) metrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return onLoop(ctx, r.s, "ListPodSandboxMetrics", func(ctx context.Context, c *fakecri.Client) ([]*runtimeapi.PodSandboxMetrics, error) {
		return c.ListPodSandboxMetrics(ctx)
	})
}
