//go:build linux

package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri"
)

// http2Preface is what a client says first that speaks HTTP/2.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// tlsHandshake is the first byte of a TLS connection. ContentType handshake of RFC 8446.
const tlsHandshake = 0x16

// peekedConn is a connection whose first bytes were looked at. Reads come from the buffer first,
// so nobody misses what was peeked at.
type peekedConn struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (c *peekedConn) Read(b []byte) (int, error) { return c.r.Read(b) }

// CloseWrite says that nothing more is sent.
func (c *peekedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// sniff looks at what a client says first to a stated program, which waits for
// the client in any case. HTTP/2 is taken to be a health check by gRPC and is
// served to its end; TLS is taken off, as the program's answers are the same for
// https. The connection returned is to be used in the place of conn. The bytes stay readable.
// served says that nothing is left to do. The kubelet's probes by https and gRPC work against
// stated programs only by this.
func (b *bridge) sniff(conn net.Conn, ip string, port int) (_ net.Conn, served bool, err error) {
	p := &peekedConn{Conn: conn, r: bufio.NewReader(conn)}
	first, err := p.r.Peek(1)
	if err != nil {
		return nil, true, nil // a client that only wanted to connect
	}
	if first[0] == tlsHandshake {
		config, err := b.health.tlsConfig()
		if err != nil {
			return nil, false, err
		}
		t := tls.Server(p, config)
		if err := t.Handshake(); err != nil {
			return nil, false, err
		}
		p = &peekedConn{Conn: t, r: bufio.NewReader(t)}
		if first, err = p.r.Peek(1); err != nil {
			return nil, true, nil
		}
	}
	// One byte more at a time: a shorter request than the preface must not be waited for.
	for n := 1; string(first) == http2Preface[:n]; {
		if n == len(http2Preface) {
			b.health.serve(p, ip, port)
			return nil, true, nil
		}
		n++
		if first, err = p.r.Peek(n); err != nil {
			return p, false, nil // whoever reads it gets what there is
		}
	}
	return p, false, nil
}

// healthServer answers health checks by gRPC for stated programs. It is started by the first
// connection that needs it; conns and quit hand it over.
type healthServer struct {
	healthpb.UnimplementedHealthServer
	b     *bridge
	grpc  *grpc.Server
	conns chan net.Conn
	quit  chan struct{}
	start sync.Once

	certOnce sync.Once
	cert     *tls.Config
	certErr  error
}

// newHealthServer answers the health checks of stated programs, which speak no
// gRPC themselves.
func newHealthServer(b *bridge) *healthServer {
	return &healthServer{b: b, conns: make(chan net.Conn), quit: make(chan struct{})}
}

// serve returns once the connection has ended. serve hands a connection to the gRPC server, and
// returns once it has ended.
func (h *healthServer) serve(conn net.Conn, ip string, port int) {
	h.start.Do(func() {
		h.b.mu.Lock()
		defer h.b.mu.Unlock()
		if h.b.closed {
			return
		}
		h.grpc = grpc.NewServer()
		healthpb.RegisterHealthServer(h.grpc, h)
		h.b.work.Go(func() { _ = h.grpc.Serve(healthListener{h}) })
	})
	c := &healthConn{Conn: conn, addr: portKey{ip, port}, done: make(chan struct{})}
	select {
	case h.conns <- c:
		<-c.done
	case <-h.quit:
	}
}

// stop ends it with its connections.
func (h *healthServer) stop() {
	close(h.quit)
	// Used up, so that no later connection starts the server.
	h.start.Do(func() {})
	if h.grpc != nil {
		h.grpc.Stop()
	}
}

// healthConn is a connection to a port of a pod. Its remote address is the pod's, which is how
// Check knows whom it was asked about.
type healthConn struct {
	net.Conn
	addr portKey
	once sync.Once
	done chan struct{}
}

// RemoteAddr names the port that is asked, for the server's methods.
func (c *healthConn) RemoteAddr() net.Addr { return c.addr }

// Close implements net.Conn.
func (c *healthConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.done) })
	return err
}

// Network and String make a portKey a net.Addr.
func (portKey) Network() string  { return "tcp" }
func (k portKey) String() string { return k.ip }

// healthListener hands the server its connections. A gRPC server wants a listener; these
// connections were accepted elsewhere.
type healthListener struct{ h *healthServer }

// Accept implements net.Listener.
func (l healthListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.h.conns:
		return c, nil
	case <-l.h.quit:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (healthListener) Close() error { return nil }

// Addr implements net.Listener.
func (healthListener) Addr() net.Addr { return portKey{} }

// Check implements grpc.health.v1. An OpError is the connection's, which a real client would have
// seen as Unavailable.
func (h *healthServer) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	p, _ := peer.FromContext(ctx)
	key, ok := p.Addr.(portKey)
	if !ok {
		return nil, status.Error(codes.Internal, "no such connection")
	}
	health, err := onLoop(ctx, h.b.s, "GRPCHealth", func(ctx context.Context, _ *fakecri.Client) (string, error) {
		return h.b.s.rt.GRPCHealth(ctx, "", key.ip, key.port, req.GetService())
	})
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		return nil, err
	}
	n, ok := healthpb.HealthCheckResponse_ServingStatus_value[health]
	if !ok {
		return nil, status.Errorf(codes.Internal, "no health status %q", health)
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(n)}, nil
}

// watchEvery is how often Watch looks again.
const watchEvery = 200 * time.Millisecond

// Watch implements grpc.health.v1. It polls, since nothing on the loop tells of changes;
// grpc.health.v1 has an unknown service be a status here and not an error.
func (h *healthServer) Watch(req *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	last := healthpb.HealthCheckResponse_ServingStatus(-1)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		resp, err := h.Check(stream.Context(), req)
		switch {
		case status.Code(err) == codes.NotFound:
			resp = &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVICE_UNKNOWN}
		case err != nil:
			return err
		}
		if resp.Status != last {
			if err := stream.Send(resp); err != nil {
				return err
			}
			last = resp.Status
		}
		select {
		case <-tick.C:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// tlsConfig has a certificate that nobody trusts, as a kubelet's probes want.
func (h *healthServer) tlsConfig() (*tls.Config, error) {
	h.certOnce.Do(func() {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			h.certErr = err
			return
		}
		now := time.Now()
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), DNSNames: []string{"localhost"}}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			h.certErr = err
			return
		}
		h.cert = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"http/1.1", "h2"}}
	})
	return h.cert, h.certErr
}
