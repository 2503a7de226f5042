// Package grpc judges probes that ask a server's gRPC health service (upstream
// pkg/probe/grpc).
package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/tcp"
)

const serving = "SERVING"

// HealthClient calls Check of grpc.health.v1.Health and returns the name of the
// status that it answers (SERVING, NOT_SERVING, ...). An error is the dialer's
// ("dial tcp ...") or a gRPC status.
type HealthClient interface {
	GRPCHealth(ctx context.Context, containerID, host string, port int, service string) (servingStatus string, err error)
}

// Probe asks once. The result is never unknown.
func Probe(ctx context.Context, c HealthClient, containerID, host string, port int, service string, timeout time.Duration) (probe.Result, string) {
	l := loop.From(ctx)
	start := l.Now()
	tctx, cancel := loop.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := c.GRPCHealth(tctx, containerID, host, port, service)
	if tcp.IsDialError(err) { // the client dials until its time is over
		_ = l.Sleep(tctx, timeout-l.Since(start))
	}
	if tctx.Err() != nil && ctx.Err() == nil && err == nil {
		err = context.DeadlineExceeded
	}
	return Judge(answer, err, host, port, timeout)
}

// Judge is the result of what the server answered.
func Judge(answer string, err error, host string, port int, timeout time.Duration) (probe.Result, string) {
	switch {
	case err == nil && answer == serving:
		return probe.Success, "service healthy"
	case err == nil:
		return probe.Failure, fmt.Sprintf("service unhealthy (responded with %q)", answer)
	case tcp.IsDialError(err):
		return probe.Failure, fmt.Sprintf("timeout: failed to connect service %q within %v: %v",
			net.JoinHostPort(host, strconv.Itoa(port)), timeout, context.DeadlineExceeded)
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return probe.Failure, fmt.Sprintf("timeout: health rpc did not complete within %v", timeout)
	case status.Code(err) == codes.Unimplemented:
		return probe.Failure, fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	}
	return probe.Failure, fmt.Sprintf("error: health rpc probe failed: %+v", err)
}
