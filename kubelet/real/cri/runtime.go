//go:build linux

package cri

import (
	"context"
	"errors"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// runtimeService is a runtime service whose calls are for tasks of one loop.
// Its methods are those of the interface, call by call; each waits in its task
// while the loop goes on. Streams (Exec, Attach, PortForward) return a URL at once; what flows
// goes past the kubelet. Events of containers come in by ContainerEvents.
type runtimeService struct {
	l *loop.Loop
	c internalapi.RuntimeService
}

var _ internalapi.RuntimeService = (*runtimeService)(nil)

// Close drops the connection. It does not wait, and may be called anywhere.
func (s *runtimeService) Close(ctx context.Context) error { return s.c.Close(withoutLogs(ctx)) }

// ContainerEvents calls connected when there is a stream of GetContainerEvents, and told with
// each event, as steps of the loop, until the stream ends, and returns why.
func (s *runtimeService) ContainerEvents(ctx context.Context, connected func(), told func(*runtimeapi.ContainerEventResponse)) error {
	return do(ctx, s.l, func(ctx context.Context) error {
		events := make(chan *runtimeapi.ContainerEventResponse)
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			for ev := range events {
				s.l.Post(func() { told(ev) })
			}
		}()
		err := s.c.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { s.l.Post(connected) })
		close(events)
		<-passed
		return err
	})
}

// GetContainerEvents is not for a loop: ContainerEvents is.
func (s *runtimeService) GetContainerEvents(context.Context, chan *runtimeapi.ContainerEventResponse, func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return errors.New("container events on a loop are had from ContainerEvents")
}

// ExecSync runs a command; timeout 0 means none. The runtime counts whole
// seconds.
func (s *runtimeService) ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	type output struct{ stdout, stderr []byte }
	out, err := call(ctx, s.l, func(ctx context.Context) (o output, err error) {
		o.stdout, o.stderr, err = s.c.ExecSync(ctx, containerID, cmd, timeout)
		return o, execError(err)
	})
	return out.stdout, out.stderr, err
}

func (s *runtimeService) Version(ctx context.Context, apiVersion string) (*runtimeapi.VersionResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.VersionResponse, error) {
		return s.c.Version(ctx, apiVersion)
	})
}

func (s *runtimeService) CreateContainer(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	return call(ctx, s.l, func(ctx context.Context) (string, error) {
		return s.c.CreateContainer(ctx, podSandboxID, config, sandboxConfig)
	})
}

func (s *runtimeService) StartContainer(ctx context.Context, containerID string) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.StartContainer(ctx, containerID) })
}

func (s *runtimeService) StopContainer(ctx context.Context, containerID string, timeout int64) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.StopContainer(ctx, containerID, timeout) })
}

func (s *runtimeService) RemoveContainer(ctx context.Context, containerID string) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.RemoveContainer(ctx, containerID) })
}

func (s *runtimeService) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.Container, error) {
		return s.c.ListContainers(ctx, filter)
	})
}

func (s *runtimeService) ContainerStatus(ctx context.Context, containerID string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.ContainerStatusResponse, error) {
		return s.c.ContainerStatus(ctx, containerID, verbose)
	})
}

func (s *runtimeService) UpdateContainerResources(ctx context.Context, containerID string, resources *runtimeapi.ContainerResources) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.UpdateContainerResources(ctx, containerID, resources) })
}

func (s *runtimeService) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.ExecResponse, error) {
		return s.c.Exec(ctx, request)
	})
}

func (s *runtimeService) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.AttachResponse, error) {
		return s.c.Attach(ctx, req)
	})
}

func (s *runtimeService) ReopenContainerLog(ctx context.Context, containerID string) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.ReopenContainerLog(ctx, containerID) })
}

func (s *runtimeService) CheckpointContainer(ctx context.Context, options *runtimeapi.CheckpointContainerRequest) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.CheckpointContainer(ctx, options) })
}

func (s *runtimeService) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, runtimeHandler string) (string, error) {
	return call(ctx, s.l, func(ctx context.Context) (string, error) {
		return s.c.RunPodSandbox(ctx, config, runtimeHandler)
	})
}

func (s *runtimeService) StopPodSandbox(ctx context.Context, podSandboxID string) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.StopPodSandbox(ctx, podSandboxID) })
}

func (s *runtimeService) RemovePodSandbox(ctx context.Context, podSandboxID string) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.RemovePodSandbox(ctx, podSandboxID) })
}

func (s *runtimeService) PodSandboxStatus(ctx context.Context, podSandboxID string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.PodSandboxStatusResponse, error) {
		return s.c.PodSandboxStatus(ctx, podSandboxID, verbose)
	})
}

func (s *runtimeService) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
		return s.c.ListPodSandbox(ctx, filter)
	})
}

func (s *runtimeService) PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.PortForwardResponse, error) {
		return s.c.PortForward(ctx, request)
	})
}

func (s *runtimeService) UpdatePodSandboxResources(ctx context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		return s.c.UpdatePodSandboxResources(ctx, request)
	})
}

func (s *runtimeService) ContainerStats(ctx context.Context, containerID string) (*runtimeapi.ContainerStats, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.ContainerStats, error) {
		return s.c.ContainerStats(ctx, containerID)
	})
}

func (s *runtimeService) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.ContainerStats, error) {
		return s.c.ListContainerStats(ctx, filter)
	})
}

func (s *runtimeService) PodSandboxStats(ctx context.Context, podSandboxID string) (*runtimeapi.PodSandboxStats, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.PodSandboxStats, error) {
		return s.c.PodSandboxStats(ctx, podSandboxID)
	})
}

func (s *runtimeService) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.PodSandboxStats, error) {
		return s.c.ListPodSandboxStats(ctx, filter)
	})
}

func (s *runtimeService) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
		return s.c.ListMetricDescriptors(ctx)
	})
}

func (s *runtimeService) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return call(ctx, s.l, func(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
		return s.c.ListPodSandboxMetrics(ctx)
	})
}

func (s *runtimeService) UpdateRuntimeConfig(ctx context.Context, runtimeConfig *runtimeapi.RuntimeConfig) error {
	return do(ctx, s.l, func(ctx context.Context) error { return s.c.UpdateRuntimeConfig(ctx, runtimeConfig) })
}

func (s *runtimeService) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.StatusResponse, error) {
		return s.c.Status(ctx, verbose)
	})
}

func (s *runtimeService) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return call(ctx, s.l, func(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
		return s.c.RuntimeConfig(ctx)
	})
}
