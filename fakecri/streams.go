package fakecri

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/streams"
	"github.com/drydock-sim/drydock/fakecri/kernel"
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

// ExecSync runs a command in a container that runs and returns what it wrote.
// A command that exits other than 0 is an *ExitError; one that runs longer than timeout, if that is not 0, is
// killed, and the error has the code DeadlineExceeded. If the caller goes away
// the command is killed too. Processes that the command leaves behind and that
// hold its output keep the call waiting, as containerd's
// drain_exec_sync_io_timeout of 0 has it.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	sub := c.r.recs.ContainerSubject(id)
	out, err := calls.Change(ctx, &c.by, calls.ExecSync, &sub, func(ctx context.Context) (streams.ExecResult, error) {
		return c.r.exec.ExecSync(ctx, &sub, id, cmd, timeout)
	})
	if err != nil {
		return nil, nil, err
	}
	return out.Stdout, out.Stderr, out.Err(cmd)
}

// AttachStream gives a client what a running container writes from now on, and
// has it feed the container's stdin if that was asked for. It returns when the
// container has ended or the client has gone; at the end of the client's input
// it detaches, unless the container's stdin is closed by that (stdin_once,
// without a terminal). A container with stdin_once has its input closed by the
// first client that ends. The terminal is the container's, whatever tty says.
func (c *Client) AttachStream(ctx context.Context, id string, tty bool, s Streams) error {
	d, err := c.by.Streaming()
	if err != nil {
		return err
	}
	return c.r.exec.Attach(ctx, d, id, s)
}

// PortForwardStream connects to a port within a sandbox's network and copies
// both ways until one end closes. conn is not closed. A program that states no
// ports answers on each.
func (c *Client) PortForwardStream(ctx context.Context, podSandboxID string, port int32, conn kernel.File) error {
	if _, err := c.by.Streaming(); err != nil {
		return err
	}
	return c.r.net.Forward(ctx, podSandboxID, port, conn)
}
