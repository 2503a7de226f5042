//go:build linux

package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

// runtimeService is runtime.v1.RuntimeService. Requests have been validated. What a client may do
// wrong is refused before, by check in the interceptors; what the runtime refuses has
// containerd's words and codes.
type runtimeService struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	s *Server
}

// The methods below hand a call to the loop by onLoop, or by reading if it only
// reads, and make an answer of what comes back. What they check themselves is what
// would harm the server, or what a CRI client in process can't say.
func (r *runtimeService) Version(ctx context.Context, req *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return reading(ctx, r.s, "Version", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.VersionResponse, error) {
		return c.Version(ctx, req.Version)
	})
}

func (r *runtimeService) Status(ctx context.Context, req *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return reading(ctx, r.s, "Status", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.StatusResponse, error) {
		return c.Status(ctx, req.Verbose)
	})
}

func (r *runtimeService) RuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return reading(ctx, r.s, "RuntimeConfig", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.RuntimeConfigResponse, error) {
		return c.RuntimeConfig(ctx)
	})
}

func (r *runtimeService) UpdateRuntimeConfig(ctx context.Context, req *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return onLoop(ctx, r.s, "UpdateRuntimeConfig", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
		return &runtimeapi.UpdateRuntimeConfigResponse{}, c.UpdateRuntimeConfig(ctx, req.RuntimeConfig)
	})
}

func (r *runtimeService) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return onLoop(ctx, r.s, "RunPodSandbox", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.RunPodSandboxResponse, error) {
		id, err := c.RunPodSandbox(ctx, req.Config, req.RuntimeHandler)
		return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, err
	})
}

func (r *runtimeService) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return onLoop(ctx, r.s, "StopPodSandbox", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.StopPodSandboxResponse, error) {
		return &runtimeapi.StopPodSandboxResponse{}, c.StopPodSandbox(ctx, req.PodSandboxId)
	})
}

func (r *runtimeService) RemovePodSandbox(ctx context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	return onLoop(ctx, r.s, "RemovePodSandbox", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.RemovePodSandboxResponse, error) {
		return &runtimeapi.RemovePodSandboxResponse{}, c.RemovePodSandbox(ctx, req.PodSandboxId)
	})
}

func (r *runtimeService) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return onLoop(ctx, r.s, "UpdatePodSandboxResources", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		return c.UpdatePodSandboxResources(ctx, req)
	})
}

func (r *runtimeService) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	resp, err := reading(ctx, r.s, "PodSandboxStatus", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.PodSandboxStatusResponse, error) {
		return c.PodSandboxStatus(ctx, req.PodSandboxId, req.Verbose)
	})
	return wallTimes(r.s, resp), err
}

func (r *runtimeService) ListPodSandbox(ctx context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return r.sandboxes(ctx, req.Filter)
}

// sandboxes is what ListPodSandbox and its stream list.
func (r *runtimeService) sandboxes(ctx context.Context, f *runtimeapi.PodSandboxFilter) (*runtimeapi.ListPodSandboxResponse, error) {
	// A filter without fields lists everything, and may be answered from the cache.
	filtered := f.GetId() != "" || f.GetState() != nil || len(f.GetLabelSelector()) > 0
	return reading(ctx, r.s, "ListPodSandbox", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ListPodSandboxResponse, error) {
		items, err := c.ListPodSandbox(ctx, f)
		if err != nil {
			return nil, err
		}
		return r.s.lists.sandboxes.of(items, filtered, func() *runtimeapi.ListPodSandboxResponse {
			return wallTimes(r.s, &runtimeapi.ListPodSandboxResponse{Items: items})
		}), nil
	})
}

func (r *runtimeService) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	return onLoop(ctx, r.s, "CreateContainer", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.CreateContainerResponse, error) {
		id, err := c.CreateContainer(ctx, req.PodSandboxId, req.Config, req.SandboxConfig)
		return &runtimeapi.CreateContainerResponse{ContainerId: id}, err
	})
}

func (r *runtimeService) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	return onLoop(ctx, r.s, "StartContainer", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.StartContainerResponse, error) {
		return &runtimeapi.StartContainerResponse{}, c.StartContainer(ctx, req.ContainerId)
	})
}

func (r *runtimeService) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	return onLoop(ctx, r.s, "StopContainer", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.StopContainerResponse, error) {
		// The grace period passes on the loop's clock, in whole seconds as the CRI has them.
		return &runtimeapi.StopContainerResponse{}, c.StopContainer(ctx, req.ContainerId, int64(r.s.loopTimeout(req.Timeout).Seconds()))
	})
}

func (r *runtimeService) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	return onLoop(ctx, r.s, "RemoveContainer", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.RemoveContainerResponse, error) {
		return &runtimeapi.RemoveContainerResponse{}, c.RemoveContainer(ctx, req.ContainerId)
	})
}

func (r *runtimeService) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	resp, err := reading(ctx, r.s, "ContainerStatus", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ContainerStatusResponse, error) {
		return c.ContainerStatus(ctx, req.ContainerId, req.Verbose)
	})
	return wallTimes(r.s, resp), err
}

func (r *runtimeService) ListContainers(ctx context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return r.containers(ctx, req.Filter)
}

// containers is what ListContainers and its stream list.
func (r *runtimeService) containers(ctx context.Context, f *runtimeapi.ContainerFilter) (*runtimeapi.ListContainersResponse, error) {
	filtered := f.GetId() != "" || f.GetPodSandboxId() != "" || f.GetState() != nil || len(f.GetLabelSelector()) > 0
	return reading(ctx, r.s, "ListContainers", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ListContainersResponse, error) {
		items, err := c.ListContainers(ctx, f)
		if err != nil {
			return nil, err
		}
		return r.s.lists.containers.of(items, filtered, func() *runtimeapi.ListContainersResponse {
			return wallTimes(r.s, &runtimeapi.ListContainersResponse{Containers: items})
		}), nil
	})
}

func (r *runtimeService) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return onLoop(ctx, r.s, "UpdateContainerResources", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.UpdateContainerResourcesResponse, error) {
		return &runtimeapi.UpdateContainerResourcesResponse{}, c.UpdateContainerResources(ctx, req.ContainerId,
			&runtimeapi.ContainerResources{Linux: req.Linux, Windows: req.Windows})
	})
}

func (r *runtimeService) ReopenContainerLog(ctx context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	return onLoop(ctx, r.s, "ReopenContainerLog", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ReopenContainerLogResponse, error) {
		return &runtimeapi.ReopenContainerLogResponse{}, c.ReopenContainerLog(ctx, req.ContainerId)
	})
}

// ExecSync has its timeout translated to the loop's time, and back in the error. A code other
// than 0 is a result; only a command that did not run is an error.
func (r *runtimeService) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return onLoop(ctx, r.s, "ExecSync", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ExecSyncResponse, error) {
		stdout, stderr, err := c.ExecSync(ctx, req.ContainerId, req.Cmd, r.s.loopTimeout(req.Timeout))
		code, ran := exitCode(err)
		if err != nil && !ran {
			return nil, r.s.wallTimeout(err, req.Timeout)
		}
		return &runtimeapi.ExecSyncResponse{Stdout: stdout, Stderr: stderr, ExitCode: code}, nil
	})
}

func (r *runtimeService) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return onLoop(ctx, r.s, "Exec", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.ExecResponse, error) {
		return c.Exec(ctx, req)
	})
}

func (r *runtimeService) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return onLoop(ctx, r.s, "Attach", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.AttachResponse, error) {
		return c.Attach(ctx, req)
	})
}

func (r *runtimeService) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return onLoop(ctx, r.s, "PortForward", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.PortForwardResponse, error) {
		return c.PortForward(ctx, req)
	})
}

func (r *runtimeService) CheckpointContainer(ctx context.Context, req *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error) {
	return onLoop(ctx, r.s, "CheckpointContainer", func(ctx context.Context, c *fakecri.Client) (*runtimeapi.CheckpointContainerResponse, error) {
		return &runtimeapi.CheckpointContainerResponse{}, c.CheckpointContainer(ctx, req)
	})
}

// maxTimeout is the longest timeout of a stop or exec, about 31 years: a
// longer one is cut, so that no sum overflows.
const maxTimeout = 1_000_000_000 * time.Second

// wallTimeout is an error about a timeout on the loop's clock as one about the
// request's, in seconds of the wall clock. The runtime's text names the timeout that it was
// given, which the client never asked for.
func (s *Server) wallTimeout(err error, seconds int64) error {
	st := status.Convert(err)
	if s.opts.Speed == 1 || st.Code() != codes.DeadlineExceeded {
		return err
	}
	said := fmt.Sprintf("timeout %s exceeded", s.loopTimeout(seconds))
	asked := fmt.Sprintf("timeout %s exceeded", time.Duration(seconds)*time.Second)
	return status.Error(st.Code(), strings.Replace(st.Message(), said, asked, 1))
}

// loopTimeout is a request's timeout, in seconds of the wall clock, on the
// loop's clock. It is rounded up to whole seconds. 0 stays 0, which means no timeout for an exec
// and no grace for a stop.
func (s *Server) loopTimeout(seconds int64) time.Duration {
	if seconds <= 0 {
		return 0
	}
	f := float64(seconds) * s.opts.Speed
	if f >= maxTimeout.Seconds() {
		return maxTimeout
	}
	n := int64(f)
	if float64(n) < f {
		n++
	}
	return time.Duration(n) * time.Second
}
