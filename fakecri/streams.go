package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
)

// This file is Exec, Attach and PortForward up to where a streaming server
// takes over, and interactive exec.

// StreamingServer gives out URLs at which a client finds a stream. It checks
// requests, with the code InvalidArgument, and then calls the Client's
// ExecStream, AttachStream or PortForwardStream. Its methods must not wait.
type StreamingServer interface {
	GetExec(*runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error)
	GetAttach(*runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error)
	GetPortForward(*runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error)
}

// streamURL runs a call that answers with a URL.
func streamURL[T any](ctx context.Context, c *Client, m calls.Method, s calls.Subject, check func() error, get func(StreamingServer) (T, error)) (T, error) {
	var zero T
	if err := c.by.Read(ctx, m, s); err != nil {
		return zero, err
	}
	server := c.r.opts.Streaming
	if server == nil {
		return zero, status.Errorf(codes.Unimplemented, "method %s not implemented", m.Name())
	}
	if err := check(); err != nil {
		return zero, err
	}
	return get(server)
}

// Exec returns the URL of an interactive exec; Unimplemented without
// Options.Streaming.
func (c *Client) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	id := req.GetContainerId()
	return streamURL(ctx, c, calls.Exec, c.r.recs.ContainerSubject(id), func() error {
		if id == "" {
			return nil // the server says what is missing
		}
		if len(req.GetCmd()) == 0 {
			return status.Error(codes.InvalidArgument, "exec command is empty")
		}
		_, err := c.r.exec.StreamTarget(id)
		return err
	}, func(s StreamingServer) (*runtimeapi.ExecResponse, error) { return s.GetExec(req) })
}

// Attach returns the URL of a container's standard streams; Unimplemented
// without Options.Streaming.
func (c *Client) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	id := req.GetContainerId()
	return streamURL(ctx, c, calls.Attach, c.r.recs.ContainerSubject(id), func() error {
		if id == "" {
			return nil
		}
		_, err := c.r.exec.StreamTarget(id)
		return err
	}, func(s StreamingServer) (*runtimeapi.AttachResponse, error) { return s.GetAttach(req) })
}

// PortForward returns the URL for connections to a sandbox's ports;
// Unimplemented without Options.Streaming.
func (c *Client) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	id := req.GetPodSandboxId()
	return streamURL(ctx, c, calls.PortForward, c.r.recs.SandboxSubject(id), func() error {
		if id == "" {
			return nil
		}
		_, err := c.r.net.Sandbox(id)
		return err
	}, func(s StreamingServer) (*runtimeapi.PortForwardResponse, error) { return s.GetPortForward(req) })
}

// ExecStream runs a command in a container with the client's streams, on a
// terminal if tty is set, and returns its exit code once it has ended and all
// that it wrote was taken. Without a Stdin it reads from /dev/null. If ctx ends
// the command runs on, as under containerd: it finds the end of its input, and
// nobody takes what it writes.
func (c *Client) ExecStream(ctx context.Context, id string, cmd []string, tty bool, s Streams) (exit int32, err error) {
	d, err := c.by.Streaming()
	if err != nil {
		return 0, err
	}
	return c.r.exec.ExecOver(ctx, d, id, cmd, tty, s)
}
