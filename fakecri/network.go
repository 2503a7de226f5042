package fakecri

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// This file is the pod network as a node's own processes see it: the kubelet's
// probes and lifecycle handlers. It needs no daemon. Errors read as those of
// Go's net package on Linux.

// podNet is the pod network.
type podNet struct {
	l              *loop.Loop
	recs           *recordStore
	kern           *nodeKernel
	warner         *warner
	ips            ipPool
	nodeIP         string
	noElide        bool
	answerWatchers watchers[string] // of containers' ids
	// exitSoon has a stated program end with a code, once it has answered.
	exitSoon func(c *container, code int32)
}

func newPodNet(l *loop.Loop, recs *recordStore, kern *nodeKernel, warner *warner, cidr, nodeIP string, noElide bool) *podNet {
	r := &podNet{l: l, recs: recs, kern: kern, warner: warner, nodeIP: nodeIP, noElide: noElide}
	r.ips.init(cidr)
	return r
}

// HTTP is Runtime.HTTP.
func (r *podNet) HTTP(ctx context.Context, containerID string, req *http.Request) (code int, header http.Header, body []byte, err error) {
	host, port, err := hostPort(req)
	if err != nil {
		return 0, nil, nil, err
	}
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return a.live.http(ctx, req)
	}
	code, body, err = a.http(req)
	if werr := r.l.Sleep(ctx, a.took); werr != nil {
		return 0, nil, nil, werr
	}
	return code, nil, body, err
}

// QuickHTTP is Runtime.QuickHTTP.
func (r *podNet) QuickHTTP(containerID string, req *http.Request) (code int, header http.Header, body []byte, took time.Duration, holds, ok bool, err error) {
	host, port, err := hostPort(req)
	if err != nil {
		return 0, nil, nil, 0, false, true, err
	}
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return 0, nil, nil, 0, false, false, nil
	}
	code, body, err = a.http(req)
	return code, nil, body, a.took, a.holds(containerID), true, err
}

// DialTCP is Runtime.DialTCP.
func (r *podNet) DialTCP(ctx context.Context, containerID, host string, port int) error {
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return a.live.dial(ctx)
	}
	if err := r.l.Sleep(ctx, a.dialTook()); err != nil {
		return err
	}
	return a.err
}

// QuickDialTCP is Runtime.QuickDialTCP.
func (r *podNet) QuickDialTCP(containerID, host string, port int) (took time.Duration, holds, ok bool, err error) {
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return 0, false, false, nil
	}
	return a.dialTook(), a.holds(containerID), true, a.err
}

// GRPCHealth is Runtime.GRPCHealth.
func (r *podNet) GRPCHealth(ctx context.Context, containerID, host string, port int, service string) (health string, err error) {
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return a.live.health(ctx, service)
	}
	health, err = a.grpc(service)
	if werr := r.l.Sleep(ctx, a.took); werr != nil {
		return "", werr
	}
	return health, err
}

// QuickGRPCHealth is Runtime.QuickGRPCHealth.
func (r *podNet) QuickGRPCHealth(containerID, host string, port int, service string) (health string, took time.Duration, holds, ok bool, err error) {
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return "", 0, false, false, nil
	}
	health, err = a.grpc(service)
	return health, a.took, a.holds(containerID), true, err
}

var (
	// errNotGRPC is of a client's connection that waits for the server's HTTP/2
	// preface: it never gets ready, and the client dials until its time is over.
	errNotGRPC = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("error reading server preface")}
	errNotHTTP = errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00"`)
)

// answer is what an address has to say: an error of the connection, a stated
// port, or a live one.
type answer struct {
	err  error
	port *Port
	at   time.Duration // since the start of the program
	took time.Duration
	live *liveTarget
	of   *container // whose port it is
	r    *podNet
}

// liveTarget is an address at which interpreted processes may listen.
type liveTarget struct {
	r    *podNet
	host string
	port int
}

func (a *answer) dialTook() time.Duration {
	if a.err != nil {
		return a.took
	}
	return 0
}

func (a *answer) http(req *http.Request) (int, []byte, error) {
	if a.err != nil {
		return 0, nil, a.err
	}
	path := req.URL.Path
	if path == "" {
		path = "/"
	}
	if a.port.answer != nil {
		code, body := a.port.answer(asked{netServer{a.r, a.of}, req, a.at})
		return code, []byte(body), nil
	}
	code, body, speaks := a.port.http(path, a.at)
	if !speaks {
		return 0, nil, errNotHTTP
	}
	return code, []byte(body), nil
}

// netServer is a container as its known server sees it.
type netServer struct {
	r *podNet
	c *container
}

func (s netServer) Now() time.Time   { return s.r.l.Now() }
func (s netServer) Hostname() string { return s.r.kern.utsName(s.c.sandbox) }
func (s netServer) Exit(code int32)  { s.r.exitSoon(s.c, code) }

func (s netServer) Files() files {
	if s.c.process == nil || s.c.process.in == nil {
		return nil
	}
	return s.c.process.in.view
}

func (a *answer) grpc(service string) (string, error) {
	if a.err != nil {
		return "", a.err
	}
	health, speaks := a.port.grpc(service, a.at)
	switch {
	case !speaks:
		return "", errNotGRPC
	case health == "":
		return "", status.Error(codes.NotFound, "unknown service")
	}
	return health, nil
}

// unreachableAfter is how long it takes to find out that nobody has an address
// of the pod network: three ARP requests, a second apart.
const unreachableAfter = 3 * time.Second

// ask finds out who answers at an address.
func (r *podNet) ask(containerID, host string, port int) answer {
	c := r.recs.containerFor(containerID)
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if host != "localhost" {
			return answer{err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}}
		}
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	addr = addr.Unmap()
	onHost := addr.IsLoopback() && !r.ips.prefix.Contains(addr) || host == r.nodeIP
	live := false
	if c != nil && r.listensAt(c.sandbox, addr, onHost) {
		if a, ok := r.askContainer(c, port, true, &live); ok {
			return a
		}
		if !onHost { // the pod's other containers
			return r.askSandbox(c.sandbox, c, addr, port, live)
		}
	}
	found := onHost
	for _, s := range r.recs.sandboxes {
		if !r.listensAt(s, addr, onHost) {
			continue
		}
		found = true
		for _, o := range s.containers {
			if a, ok := r.askContainer(o, port, false, &live); ok && o != c {
				return a
			}
		}
	}
	switch {
	case live:
		return r.liveAnswer(addr, port)
	case found:
		return answer{err: dialError(addr, port, syscall.ECONNREFUSED)}
	}
	return answer{err: dialError(addr, port, syscall.EHOSTUNREACH), took: unreachableAfter}
}

func (r *podNet) askSandbox(s *sandbox, except *container, addr netip.Addr, port int, live bool) answer {
	for _, o := range s.containers {
		if o == except {
			continue
		}
		if a, ok := r.askContainer(o, port, false, &live); ok {
			return a
		}
	}
	if live {
		return r.liveAnswer(addr, port)
	}
	return answer{err: dialError(addr, port, syscall.ECONNREFUSED)}
}

func (r *podNet) liveAnswer(addr netip.Addr, port int) answer {
	return answer{live: &liveTarget{r: r, host: addr.String(), port: port}}
}

// listensAt tells whether the sandbox's network has the address.
func (r *podNet) listensAt(s *sandbox, addr netip.Addr, onHost bool) bool {
	if onHost {
		return s.hostNetwork() && s.state == sandboxReady
	}
	return s.netUp && s.ip == addr
}

// askContainer tells what a container's stated program says on a port; own
// means that the container is asked on its own behalf. It notes in live that
// the container's processes are interpreted.
func (r *podNet) askContainer(c *container, port int, own bool, live *bool) (answer, bool) {
	p := c.process
	if p == nil || !c.alive() {
		return answer{}, false
	}
	if p.in != nil && p.in.stated == nil {
		*live = true
		return answer{}, false
	}
	t := time.Duration(r.l.UnixNano() - p.startedAt)
	if p.b.Ports == nil && !own && !slices.Contains(c.declaredPorts(), port) {
		return answer{}, false
	}
	found := p.b.port(port, t)
	if found == nil {
		return answer{}, false
	}
	return answer{port: found, at: t, took: r.drawLatency(c, found), of: c, r: r}, true
}

// dialError is how Go's net package reports a failed connect.
func dialError(addr netip.Addr, port int, errno syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: addr.AsSlice(), Port: port}, Err: &os.SyscallError{Syscall: "connect", Err: errno}}
}

func hostPort(req *http.Request) (host string, port int, err error) {
	host = req.URL.Hostname()
	if p := req.URL.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return "", 0, &net.AddrError{Err: "invalid port", Addr: p}
		}
		return host, port, nil
	}
	if req.URL.Scheme == "https" {
		return host, 443, nil
	}
	return host, 80, nil
}
