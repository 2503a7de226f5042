// Package tcp judges probes that connect to a port (upstream pkg/probe/tcp).
package tcp

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
)

// Dialer connects to a port and closes the connection again. containerID is the
// container on whose behalf that is done.
type Dialer interface {
	DialTCP(ctx context.Context, containerID, host string, port int) error
}

// Probe connects once. The result is never unknown.
func Probe(ctx context.Context, d Dialer, containerID, host string, port int, timeout time.Duration) (probe.Result, string) {
	tctx, cancel := loop.WithTimeout(ctx, timeout)
	defer cancel()
	err := d.DialTCP(tctx, containerID, host, port)
	if err != nil && ctx.Err() == nil && (tctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
		return Late(host, port)
	}
	return Judge(err)
}

// Judge is the result of a connection that was made, or failed with err.
func Judge(err error) (probe.Result, string) {
	if err != nil {
		return probe.Failure, err.Error()
	}
	return probe.Success, ""
}

// Late is the result of a connection that was not made in time.
func Late(host string, port int) (probe.Result, string) {
	return probe.Failure, TimeoutText(net.JoinHostPort(host, strconv.Itoa(port)))
}

// TimeoutText is what a dialer says when its time is over.
func TimeoutText(addr string) string { return "dial tcp " + addr + ": i/o timeout" }

// IsDialError reports whether an error is one of making a connection.
func IsDialError(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "dial ") }
