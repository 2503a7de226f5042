package podnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/internal/watch"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// This file is the pod network as a node's own processes see it: the kubelet's
// probes and lifecycle handlers. It needs no daemon. Errors read as those of
// Go's net package on Linux.

// Net is the pod network. It keeps little: who answers is found in the records each time.
type Net struct {
	l       *loop.Loop
	recs    *records.Store
	kern    *podkernel.Node
	warner  *records.Warner
	IPs     ipPool
	nodeIP  string
	noElide bool
	// answerWatchers are told of containers whose answers no longer hold.
	answerWatchers watch.Watchers[string] // of containers' ids
	// Unserved, if any, is told of a container that was refused, on its own behalf, at a
	// port of its pod while no processes are there that might listen on it yet.
	Unserved func(c *records.Container, port int)
	// ExitSoon has a stated program end with a code, once it has answered.
	ExitSoon func(c *records.Container, code int32)
}

// New returns a network without sandboxes.
func New(l *loop.Loop, recs *records.Store, kern *podkernel.Node, warner *records.Warner, cidr, nodeIP string, noElide bool) *Net {
	r := &Net{l: l, recs: recs, kern: kern, warner: warner, nodeIP: nodeIP, noElide: noElide}
	r.IPs.init(cidr)
	return r
}

// HTTP is Runtime.HTTP. It waits as long as the answer takes, on the caller's task. header is nil
// for stated programs.
func (r *Net) HTTP(ctx context.Context, containerID string, req *http.Request) (code int, header http.Header, body []byte, err error) {
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

// QuickHTTP is Runtime.QuickHTTP. ok is false if there is no answer without a connection; the
// caller then uses HTTP, on a task. took is for the caller to wait.
func (r *Net) QuickHTTP(containerID string, req *http.Request) (code int, header http.Header, body []byte, took time.Duration, holds, ok bool, err error) {
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
func (r *Net) DialTCP(ctx context.Context, containerID, host string, port int) error {
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
func (r *Net) QuickDialTCP(containerID, host string, port int) (took time.Duration, holds, ok bool, err error) {
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return 0, false, false, nil
	}
	return a.dialTook(), a.holds(containerID), true, a.err
}

// GRPCHealth is Runtime.GRPCHealth.
func (r *Net) GRPCHealth(ctx context.Context, containerID, host string, port int, service string) (health string, err error) {
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
func (r *Net) QuickGRPCHealth(containerID, host string, port int, service string) (health string, took time.Duration, holds, ok bool, err error) {
	a := r.ask(containerID, host, port)
	if a.live != nil {
		return "", 0, false, false, nil
	}
	health, err = a.grpc(service)
	return health, a.took, a.holds(containerID), true, err
}

var (
	// errNotGRPC is of a client's connection that waits for the server's HTTP/2
	// preface: it never gets ready, and the client dials until its time is over. The texts are
	// Go's own, since probes' messages carry them: the bytes are an HTTP/2 settings frame.
	errNotGRPC = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("error reading server preface")}
	errNotHTTP = errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00"`)
)

// answer is what an address has to say: an error of the connection, a stated
// port, or a live one. Exactly one of err, port and live is set.
type answer struct {
	err  error
	port *program.Port
	at   time.Duration // since the start of the program
	// took is drawn when the question is asked; for an error it is the time until that is known.
	took time.Duration
	live *liveTarget
	of   *records.Container // whose port it is
	r    *Net
}

// liveTarget is an address at which interpreted processes may listen.
type liveTarget struct {
	r    *Net
	host string
	port int
}

// dialTook is how long a connection takes: one that works none, since the latency
// is the answer's. A TCP probe succeeds with the connection, before any answer.
func (a *answer) dialTook() time.Duration {
	if a.err != nil {
		return a.took
	}
	return 0
}

// http is what a request gets. It has no effects unless the port's Answer has.
func (a *answer) http(req *http.Request) (int, []byte, error) {
	if a.err != nil {
		return 0, nil, a.err
	}
	path := cmp.Or(req.URL.Path, "/")
	if a.port.Answer != nil {
		code, body := a.port.Answer(program.Asked{Server: server{a.r, a.of}, Req: req, At: a.at})
		return code, []byte(body), nil
	}
	code, body, speaks := a.port.Http(path, a.at)
	// The port is there, and speaks something else: gRPC, or a protocol of its own, whose
	// servers commonly close on what they don't understand.
	switch {
	case a.port.Raw:
		return 0, nil, io.EOF
	case !speaks:
		return 0, nil, errNotHTTP
	}
	return code, []byte(body), nil
}

// server is a container as its known server sees it. It is what a known image's server may ask of
// its surroundings.
type server struct {
	r *Net
	c *records.Container
}

func (s server) Now() time.Time { return s.r.l.Now() }

func (s server) Hostname() string { return s.r.kern.UtsName(s.c.Sandbox) }

func (s server) Exit(code int32) { s.r.ExitSoon(s.c, code) }

// Files returns an interface that is nil if there are none, not one that holds nil.
func (s server) Files() program.Files {
	if s.c.Process == nil || s.c.Process.Interpreted == nil {
		return nil
	}
	return s.c.Process.Interpreted.View
}

// grpc is what a health check gets. An empty health is a service that the program does not know.
func (a *answer) grpc(service string) (string, error) {
	if a.err != nil {
		return "", a.err
	}
	health, speaks := a.port.Grpc(service, a.at)
	switch {
	case !speaks:
		return "", errNotGRPC
	case health == "":
		return "", status.Error(codes.NotFound, "unknown service")
	}
	return health, nil
}

// unreachableAfter is how long it takes to find out that nobody has an address
// of the pod network: three ARP requests, a second apart. A kubelet's probe with its default
// timeout of 1 s gives up before.
const unreachableAfter = 3 * time.Second

// ask finds out who answers at an address.
//
// containerID is who asks on whose behalf: the container that a probe belongs to, or "". The
// order matters: the container itself, the rest of its pod, then everybody else who has the
// address.
func (r *Net) ask(containerID, host string, port int) answer {
	c := r.recs.ContainerFor(containerID)
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if host != "localhost" {
			if c != nil {
				r.warner.WarnOnce(c, "host\x00"+host, fmt.Sprintf("a probe or hook asks the host %q, and can't succeed: a kubelet resolves names as its machine does, which knows none of the cluster's. Leave host out to have the pod itself asked", host))
			}
			return answer{err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}}
		}
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	addr = addr.Unmap()
	// A loopback address is the machine's, unless a scenario has pods there.
	onHost := addr.IsLoopback() && !r.IPs.Prefix.Contains(addr) || host == r.nodeIP
	live := false
	// A container that asks its own address is its own first answer: several in a pod
	// may state the same port, as they may not in reality.
	if c != nil && r.listensAt(c.Sandbox, addr, onHost) {
		if a, ok := r.askContainer(c, port, true, &live); ok {
			return a
		}
		if !onHost { // the pod's other containers
			return r.askSandbox(c.Sandbox, c, addr, port, live)
		}
	}
	// Sandboxes are in the order of their making, so of two that state a port on the host's
	// network the first answers.
	found := onHost
	for _, s := range r.recs.Sandboxes {
		if !r.listensAt(s, addr, onHost) {
			continue
		}
		found = true
		for _, o := range s.Containers {
			if a, ok := r.askContainer(o, port, false, &live); ok && o != c {
				return a
			}
		}
	}
	switch {
	// Nobody states the port, but processes may listen on it.
	case live:
		return r.liveAnswer(addr, port)
	case found:
		return answer{err: dialError(addr, port, linux.ECONNREFUSED)}
	}
	// Nobody has the address.
	return answer{err: dialError(addr, port, linux.EHOSTUNREACH), took: unreachableAfter}
}

// askSandbox asks the other containers of a pod, at its own address. All of them have the
// address, so the search ends here.
func (r *Net) askSandbox(s *records.Sandbox, except *records.Container, addr netip.Addr, port int, live bool) answer {
	for _, o := range s.Containers {
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
	if r.Unserved != nil {
		r.Unserved(except, port)
	}
	return answer{err: dialError(addr, port, linux.ECONNREFUSED)}
}

// liveAnswer says that processes may listen there.
func (r *Net) liveAnswer(addr netip.Addr, port int) answer {
	return answer{live: &liveTarget{r: r, host: addr.String(), port: port}}
}

// listensAt reports whether the sandbox's network has the address. A pod with the host's network
// listens at the node's address and at its loopback.
func (r *Net) listensAt(s *records.Sandbox, addr netip.Addr, onHost bool) bool {
	if onHost {
		return s.HostNetwork() && s.State == records.SandboxReady
	}
	return s.NetUp && s.IP == addr
}

// askContainer tells what a container's stated program says on a port; own
// means that the container is asked on its own behalf. It notes in live that
// the container's processes are interpreted. A program that states no ports answers where its
// container declares one; asked by its own probe, anywhere.
func (r *Net) askContainer(c *records.Container, port int, own bool, live *bool) (answer, bool) {
	p := c.Process
	if p == nil || !c.Alive() {
		return answer{}, false
	}
	if in := p.Interpreted; in != nil && (in.Stated == nil || in.Beside != nil) {
		*live = true
		if in.Stated == nil {
			return answer{}, false
		}
	}
	t := time.Duration(r.l.UnixNano() - p.StartedAt)
	if !own && p.Behaviour.AnswersUnlisted(port) && !slices.Contains(c.DeclaredPorts(), port) {
		return answer{}, false
	}
	found := p.PortAt(port, t)
	if found == nil {
		return answer{}, false
	}
	return answer{port: found, at: t, took: r.drawLatency(c, found), of: c, r: r}, true
}

// dialError is how Go's net package reports a failed connect. Op, network and address read as
// "dial tcp 10.0.0.1:80: connect: connection refused".
func dialError(addr netip.Addr, port int, errno linux.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: addr.AsSlice(), Port: port}, Err: &os.SyscallError{Syscall: "connect", Err: errno}}
}

// hostPort is where a request goes, with the port that its scheme implies.
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
