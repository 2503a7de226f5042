package podnet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/actor/fake"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// maxResponse is how much of a response's body is read, in bytes.
const maxResponse = 1 << 20

// connect dials from the node. A name was resolved before: host is an address.
func (t *liveTarget) connect(ctx context.Context) (*kernel.Conn, error) {
	conn, err := t.r.kern.Kernel().HostNet().Dial(ctx, t.host, t.port)
	var errno linux.Errno
	if errors.As(err, &errno) {
		return nil, dialError(netip.MustParseAddr(t.host), t.port, errno)
	}
	return conn, err
}

// dial is a TCP probe: a connection that is closed at once.
func (t *liveTarget) dial(ctx context.Context) error {
	conn, err := t.connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// http sends a request over a connection of its own, as a probe does. A kubelet's probes keep no
// connections (DisableKeepAlives), so each has its own.
func (t *liveTarget) http(ctx context.Context, req *http.Request) (int, http.Header, []byte, error) {
	// Interpreted servers speak no TLS; that is Go's error of a client that finds plain HTTP
	// there.
	if req.URL.Scheme == "https" {
		if err := t.dial(ctx); err != nil {
			return 0, nil, nil, err
		}
		return 0, nil, nil, errors.New("http: server gave HTTP response to HTTPS client")
	}
	conn, err := t.connect(ctx)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = conn.Close() }()
	var out bytes.Buffer
	if err := req.Write(&out); err != nil {
		return 0, nil, nil, err
	}
	if _, err := conn.Write(ctx, out.Bytes()); err != nil {
		return 0, nil, nil, t.brokenBy("write", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(&reader{ctx, conn}), req)
	if err != nil {
		return 0, nil, nil, t.brokenBy("read", err)
	}
	defer func() { _ = resp.Body.Close() }()
	// The kubelet itself reads 10 KiB of a body at most.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return 0, nil, nil, t.brokenBy("read", err)
	}
	return resp.StatusCode, resp.Header, body, nil
}

// health asks for the health of a service. An error of the connection is no answer about health;
// it looks like a server that isn't one.
func (t *liveTarget) health(ctx context.Context, service string) (string, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	health, err := fake.AskHealth(ctx, conn, net.JoinHostPort(t.host, strconv.Itoa(t.port)), service)
	var refused *actor.CallError
	switch {
	case err == nil:
		return health, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &refused):
		return "", status.Error(codes.Code(refused.Code), refused.Message)
	}
	return "", errNotGRPC
}

// brokenBy is how Go's net package reports an error on an open connection. An end in the middle
// of an answer is io.EOF to http.Client's users.
func (t *liveTarget) brokenBy(op string, err error) error {
	var errno linux.Errno
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.EOF
	case errors.As(err, &errno):
		addr := netip.MustParseAddr(t.host)
		return &net.OpError{Op: op, Net: "tcp", Addr: &net.TCPAddr{IP: addr.AsSlice(), Port: t.port}, Err: &os.SyscallError{Syscall: op, Err: errno}}
	}
	return err
}

// reader reads from a connection with a context. net/http wants an io.Reader, which has no
// context.
type reader struct {
	ctx  context.Context
	conn *kernel.Conn
}

// Read waits within the reader's context.
func (r *reader) Read(b []byte) (int, error) { return r.conn.Read(r.ctx, b) }
