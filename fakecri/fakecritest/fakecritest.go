//go:build linux

// Package fakecritest gives a container runtime behind a socket to a Go test,
// as net/http/httptest does a web server.
//
//	srv := fakecritest.NewServer(t)
//	conn, err := grpc.NewClient(srv.Endpoint(), ...)
//
// The runtime takes no time for its calls and pulls unless an option says
// otherwise; what runs in containers takes the time it says.
package fakecritest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/server"
)

// Server is a runtime behind a unix socket, until the test ends.
type Server struct {
	t      testing.TB
	srv    *server.Server
	path   string
	dir    string
	served chan error
	closed bool
}

// Option changes what NewServer starts.
type Option func(*server.Options)

// WithRuntime changes the runtime's options: images, programs, names.
func WithRuntime(fn func(*fakecri.Options)) Option {
	return func(o *server.Options) { fn(&o.Runtime) }
}

// WithOptions changes all options.
func WithOptions(fn func(*server.Options)) Option { return fn }

// WithSpeed has programs and latencies run so many times as fast as the wall
// clock.
func WithSpeed(speed float64) Option {
	return func(o *server.Options) { o.Speed = speed }
}

// Isolated keeps what runs in containers off this machine: host paths are in
// memory, logs are dropped, and pods' ports can't be reached.
func Isolated() Option {
	return func(o *server.Options) { o.Isolated = true }
}

// WithLatency has calls and pulls take what they take on an idle machine.
func WithLatency() Option {
	return func(o *server.Options) { o.Runtime.Latency, o.Runtime.ImagePull = nil, fakecri.Range{} }
}

// WithFaults sets faults from the start.
func WithFaults(faults ...fakecri.Fault) Option {
	return func(o *server.Options) { o.Faults = append(o.Faults, faults...) }
}

// NewServer starts a server, which the test's cleanup stops. It fails the test
// if that doesn't work, and in the end if something went wrong inside.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	// Not TempDir of the test: its path may be too long for a socket.
	dir, err := os.MkdirTemp("", "fakecri")
	if err != nil {
		t.Fatalf("fakecritest: %v", err)
	}
	s := &Server{t: t, path: filepath.Join(dir, "cri.sock"), dir: dir, served: make(chan error, 1)}
	o := server.Options{
		Runtime: fakecri.Options{Latency: server.NoLatency(), ImagePull: fakecri.Range{Min: 1, Max: 1}, PodCIDR: podCIDR()},
		Root:    dir,
		Grace:   100 * time.Millisecond,
		Warn:    s.warn,
	}
	for _, opt := range opts {
		opt(&o)
	}
	if s.srv, err = server.New(o); err != nil {
		_ = os.RemoveAll(dir)
		t.Fatalf("fakecritest: %v", err)
	}
	lis, err := net.Listen("unix", s.path)
	if err != nil {
		s.srv.Stop()
		_ = os.RemoveAll(dir)
		t.Fatalf("fakecritest: %v", err)
	}
	go func() { s.served <- s.srv.Serve(lis) }()
	t.Cleanup(s.Close)
	return s
}

// servers counts the servers of this process.
var servers atomic.Uint32

// podCIDR returns addresses of the machine's own for 4,000 pods. What pods
// listen on is opened there, so that servers of one process, and most probably
// those of two, have different ones.
func podCIDR() string {
	n := (uint32(os.Getpid())*17 + servers.Add(1)) % (112 * 16)
	return fmt.Sprintf("127.%d.%d.0/20", 128+n>>4, n&15<<4)
}

func (s *Server) warn(text string) {
	defer func() { _ = recover() }() // the test may be over
	s.t.Logf("fakecri: %s", text)
}

// Close stops the server before the test ends. It may be called again.
func (s *Server) Close() {
	s.t.Helper()
	if s.closed {
		return
	}
	s.closed = true
	st, err := s.srv.State()
	s.srv.Stop()
	if serr := <-s.served; serr != nil {
		s.t.Errorf("fakecritest: Serve: %v", serr)
	}
	if lerr := s.srv.Err(); lerr != nil {
		s.t.Errorf("fakecritest: the loop: %v", lerr)
	} else if err == nil && st.Panics > 0 {
		s.t.Errorf("fakecritest: %d panics inside the server; see the log", st.Panics)
	}
	_ = os.RemoveAll(s.dir)
}

// Endpoint is the socket's address: "unix:///...".
func (s *Server) Endpoint() string { return "unix://" + s.path }

// Dial returns a connection to the server, which the test's cleanup closes.
func (s *Server) Dial(opts ...grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	opts = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
	}, opts...)
	conn, err := grpc.NewClient(s.Endpoint(), opts...)
	if err != nil {
		s.t.Fatalf("fakecritest: %v", err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Server returns the server itself, for its control functions and its Control
// endpoint.
func (s *Server) Server() *server.Server { return s.srv }

// Do runs fn on the runtime's loop and waits for it: what happens behind the
// client's back, such as Runtime.StopContainerOutside, is done so. fn must not
// wait, and must not call the test's Fatal.
func (s *Server) Do(fn func(*fakecri.Runtime)) {
	s.t.Helper()
	if err := s.srv.Do(fn); err != nil {
		s.t.Fatalf("fakecritest: %v", err)
	}
}

// Fault sets a fault; the function returned takes it back.
func (s *Server) Fault(f fakecri.Fault) (remove func()) {
	s.t.Helper()
	id, err := s.srv.AddFault(f)
	if err != nil {
		s.t.Fatalf("fakecritest: fault %s: %v", f.Method, err)
	}
	return func() { _, _ = s.srv.RemoveFault(id) }
}

// FailNext has the next call of a method fail with a code, "Unavailable".
func (s *Server) FailNext(method, code, format string, args ...any) {
	s.t.Helper()
	s.Fault(fakecri.Fault{Method: method, Count: 1, Error: &fakecri.FaultError{Code: code, Message: fmt.Sprintf(format, args...)}})
}

// ClearFaults takes back every fault.
func (s *Server) ClearFaults() {
	s.t.Helper()
	if _, err := s.srv.RemoveFault(0); err != nil {
		s.t.Fatalf("fakecritest: %v", err)
	}
}
