//go:build linux

package plugins

import (
	"context"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// Dial implements pluginmanager.Sockets. The connection comes again by itself when the
// plugin has been away.
func (s *Sockets) Dial(ctx context.Context, socket string) (pluginmanager.Conn, error) {
	return dial(ctx, s.g, socket)
}

// dial connects to a socket, trying once.
func dial(ctx context.Context, g *loop.Group, socket string) (*conn, error) {
	return loop.Await(ctx, func(ctx context.Context) (*conn, error) {
		c, err := grpc.NewClient("passthrough:///"+socket,
			grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			}))
		if err != nil {
			return nil, status.Errorf(codes.Unavailable, "connection error: %v", err)
		}
		if err := connected(ctx, c, socket); err != nil {
			_ = c.Close()
			return nil, err
		}
		return &conn{c, g}, nil
	})
}

// connected waits until somebody has answered on a connection, or nobody did. Who answers
// and ends at once leaves the connection idle: it is made again, or nobody ever would.
func connected(ctx context.Context, c *grpc.ClientConn, socket string) error {
	for {
		state := c.GetState()
		switch state {
		case connectivity.Idle:
			c.Connect()
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return status.Errorf(codes.Unavailable, "connection error: nobody listens on %s", socket)
		case connectivity.Connecting:
		}
		if !c.WaitForStateChange(ctx, state) {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// conn is a connection, for tasks.
type conn struct {
	c *grpc.ClientConn
	g *loop.Group
}

// Close implements pluginmanager.Conn.
func (c *conn) Close() error {
	if err := c.c.Close(); err != nil {
		return fmt.Errorf("close the connection to %s: %w", c.c.Target(), err)
	}
	return nil
}

// Invoke implements grpc.ClientConnInterface. The answer is the task's own only once the
// call has ended, so it is received into a message that the goroutine has for itself.
func (c *conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	got, err := loop.Await(ctx, func(ctx context.Context) (*frame, error) {
		got := &frame{}
		return got, c.c.Invoke(ctx, method, args, got, append(opts, grpc.ForceCodecV2(frames{}))...)
	})
	if err != nil {
		return ended(err)
	}
	return got.into(reply)
}

// NewStream implements grpc.ClientConnInterface: a stream of a task, which ends with the
// context's end, or the group's.
func (c *conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	own, cancel := context.WithCancel(context.Background())
	s, err := loop.Await(ctx, func(context.Context) (grpc.ClientStream, error) {
		return c.c.NewStream(own, desc, method, append(opts, grpc.ForceCodecV2(frames{}))...)
	})
	if err != nil {
		cancel()
		return nil, ended(err)
	}
	c.g.OnKill(cancel)
	return &stream{s, ctx, cancel}, nil
}

// stream is a stream whose methods wait in the task that made it.
type stream struct {
	grpc.ClientStream
	ctx    context.Context
	cancel context.CancelFunc
}

// SendMsg implements grpc.ClientStream.
func (s *stream) SendMsg(m any) error {
	_, err := loop.Await(s.ctx, func(context.Context) (struct{}, error) { return struct{}{}, s.ClientStream.SendMsg(m) })
	return s.checked(err)
}

// CloseSend implements grpc.ClientStream. It doesn't wait.
func (s *stream) CloseSend() error { return s.ClientStream.CloseSend() } //nolint:wrapcheck // gRPC's, as it is

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	got, err := loop.Await(s.ctx, func(context.Context) (*frame, error) {
		got := &frame{}
		return got, s.ClientStream.RecvMsg(got)
	})
	if err := s.checked(err); err != nil {
		return err
	}
	return got.into(m)
}

// checked ends a stream with its first error.
func (s *stream) checked(err error) error {
	if err == nil {
		return nil
	}
	s.cancel()
	if err == io.EOF { //nolint:errorlint // gRPC's own, unwrapped
		return err
	}
	return ended(err)
}

// ended is a call's error: that of gRPC, whoever noticed the end of its context first.
func ended(err error) error {
	if err == context.DeadlineExceeded || err == context.Canceled { //nolint:errorlint // the loop's own, unwrapped
		return status.FromContextError(err).Err()
	}
	return err
}
