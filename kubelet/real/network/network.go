//go:build linux

// Package network reaches the ports of containers for probes and lifecycle
// hooks. It mirrors the clients of upstream's pkg/probe (http, tcp, grpc):
// what they judge is in kubelet/internal/probe.
package network

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/prober"
)

const (
	// maxBody is how much of an answer is read, in bytes.
	maxBody = 10 << 10
	// early is by how much a request ends before its caller's deadline, so that
	// the caller gets to know what was not done in time.
	early = 10 * time.Millisecond
	// userAgent is that of gRPC probes; those of HTTP bring their own.
	userAgent = "kube-probe/1.36"
)

// Network is the machine's network. Its methods wait in tasks of its loop.
type Network struct {
	http http.Client
}

var _ prober.Network = (*Network)(nil)

// New returns the machine's network, for tasks of l.
func New(l *loop.Loop) *Network {
	return &Network{http: http.Client{
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as kubelets do: they know no certificate of a pod's
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			DisableKeepAlives:   true,
			DisableCompression:  true,
			DialContext:         dialer().DialContext,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// dialer makes connections that take no port for a minute after they were
// closed (upstream pkg/probe/dialer_others.go).
func dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 1})
		})
	}}
}

// ahead is a context that ends a little before ctx.
func ahead(ctx context.Context) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, at.Add(-early))
	}
	return context.WithCancel(ctx)
}

// HTTP implements kubelet/internal/probe/http.Transport.
func (n *Network) HTTP(ctx context.Context, _ string, req *http.Request) (status int, header http.Header, body []byte, err error) {
	type answer struct {
		status int
		header http.Header
		body   []byte
	}
	a, err := loop.Await(ctx, func(ctx context.Context) (answer, error) {
		ctx, cancel := ahead(ctx)
		defer cancel()
		resp, err := n.http.Do(req.Clone(ctx))
		if err != nil {
			var u *url.Error
			if errors.As(err, &u) {
				err = u.Err
			}
			return answer{}, err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
		if err != nil {
			return answer{}, err
		}
		return answer{resp.StatusCode, resp.Header, body}, nil
	})
	return a.status, a.header, a.body, err
}

// DialTCP implements kubelet/internal/probe/tcp.Dialer.
func (n *Network) DialTCP(ctx context.Context, _, host string, port int) error {
	_, err := loop.Await(ctx, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := ahead(ctx)
		defer cancel()
		conn, err := dialer().DialContext(ctx, "tcp", address(host, port))
		if err == nil {
			_ = conn.Close() // it is as good as it gets
		}
		return struct{}{}, err
	})
	return err
}

// GRPCHealth implements kubelet/internal/probe/grpc.HealthClient. As upstream's, it dials
// until the connection can be used or the context ends, and asks after that.
func (n *Network) GRPCHealth(ctx context.Context, _, host string, port int, service string) (string, error) {
	// Outside of the call, since the caller may go on before it is over.
	var connected atomic.Bool
	answer, err := loop.Await(ctx, func(ctx context.Context) (string, error) {
		ctx, cancel := ahead(ctx)
		defer cancel()
		conn, err := grpc.NewClient("passthrough:///"+address(host, port),
			grpc.WithUserAgent(userAgent),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return dialer().DialContext(ctx, "tcp", addr)
			}))
		if err != nil {
			return "", err
		}
		defer func() { _ = conn.Close() }()
		if err := connect(ctx, conn); err != nil {
			return "", err
		}
		connected.Store(true)
		resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			return "", err
		}
		return resp.GetStatus().String(), nil
	})
	if errors.Is(err, context.DeadlineExceeded) && !connected.Load() {
		err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return answer, err
}

// connect waits until the connection can be used, or ctx ends.
func connect(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		s := conn.GetState()
		switch s {
		case connectivity.Ready:
			return nil
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, s) {
			return ctx.Err()
		}
	}
}

// address is a host, maybe IPv6, with its port.
func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// QuickHTTP implements prober.Network: nothing is known before it is asked.
func (n *Network) QuickHTTP(string, *http.Request) (a prober.HTTPAnswer, ok bool) { return a, false }

// QuickTCP implements prober.Network.
func (n *Network) QuickTCP(string, string, int) (a prober.TCPAnswer, ok bool) { return a, false }

// QuickGRPC implements prober.Network.
func (n *Network) QuickGRPC(string, string, int, string) (a prober.GRPCAnswer, ok bool) {
	return a, false
}
