//go:build linux

package server

import (
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// chunk is how many items a message of a streamed list has at most. At 256 items a message stays
// far below gRPC's 4 MiB, clients' default bound.
const chunk = 256

// sendChunks streams a list as non-empty messages of up to chunk items.
func sendChunks[T, R any](stream grpc.ServerStreamingServer[R], items []T, message func([]T) *R) error {
	for len(items) > 0 {
		n := min(len(items), chunk)
		if err := stream.Send(message(items[:n:n])); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// The methods below send what the listings of the same name list, in parts, so
// that no listing meets gRPC's limit of a message's size.
//
// StreamPodSandboxes streams ListPodSandbox. The streaming lists are KEP-5825's.
func (r *runtimeService) StreamPodSandboxes(req *runtimeapi.StreamPodSandboxesRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxesResponse]) error {
	resp, err := r.sandboxes(stream.Context(), req.Filter)
	if err != nil {
		return err
	}
	return sendChunks(stream, resp.Items, func(part []*runtimeapi.PodSandbox) *runtimeapi.StreamPodSandboxesResponse {
		return &runtimeapi.StreamPodSandboxesResponse{PodSandboxes: part}
	})
}

func (r *runtimeService) StreamContainers(req *runtimeapi.StreamContainersRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse]) error {
	resp, err := r.containers(stream.Context(), req.Filter)
	if err != nil {
		return err
	}
	return sendChunks(stream, resp.Containers, func(part []*runtimeapi.Container) *runtimeapi.StreamContainersResponse {
		return &runtimeapi.StreamContainersResponse{Containers: part}
	})
}

func (r *runtimeService) StreamContainerStats(req *runtimeapi.StreamContainerStatsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamContainerStatsResponse]) error {
	items, err := r.containerStats(stream.Context(), req.Filter)
	if err != nil {
		return err
	}
	return sendChunks(stream, items, func(part []*runtimeapi.ContainerStats) *runtimeapi.StreamContainerStatsResponse {
		return wallTimes(r.s, &runtimeapi.StreamContainerStatsResponse{ContainerStats: part})
	})
}

func (r *runtimeService) StreamPodSandboxStats(req *runtimeapi.StreamPodSandboxStatsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxStatsResponse]) error {
	items, err := r.sandboxStats(stream.Context(), req.Filter)
	if err != nil {
		return err
	}
	return sendChunks(stream, items, func(part []*runtimeapi.PodSandboxStats) *runtimeapi.StreamPodSandboxStatsResponse {
		return wallTimes(r.s, &runtimeapi.StreamPodSandboxStatsResponse{PodSandboxStats: part})
	})
}

func (r *runtimeService) StreamPodSandboxMetrics(_ *runtimeapi.StreamPodSandboxMetricsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxMetricsResponse]) error {
	items, err := r.metrics(stream.Context())
	if err != nil {
		return err
	}
	return sendChunks(stream, items, func(part []*runtimeapi.PodSandboxMetrics) *runtimeapi.StreamPodSandboxMetricsResponse {
		return wallTimes(r.s, &runtimeapi.StreamPodSandboxMetricsResponse{PodSandboxMetrics: part})
	})
}
