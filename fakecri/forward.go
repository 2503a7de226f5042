package fakecri

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// This file lets who is outside the loop reach what listens in pods.

// Listening tells of a port that was opened or closed.
type Listening struct {
	// IP is the pod's; the machine's own for a pod on the host's network, and
	// for a process of the machine.
	IP string
	// Host says that it is on the host's network.
	Host bool
	Port int
	Open bool
	// Stated says that a stated program answers, whose health checks by gRPC
	// are GRPCHealth's to answer.
	Stated bool
	// Mappings are the pod's port mappings that lead to the port.
	Mappings []*runtimeapi.PortMapping
}

// listening is told by the kernel of a port.
func (r *nodeKernel) listening(n *kernel.NetNS, port int, open bool) {
	l := Listening{IP: n.IP(), Host: n == r.machine.HostNet(), Port: port, Open: open, Stated: open && n.Handler(port) != nil}
	if s := r.sandboxOf[n]; s != nil {
		for _, m := range s.config.PortMappings {
			if m.GetHostPort() > 0 && m.GetProtocol() == runtimeapi.Protocol_TCP && int(m.GetContainerPort()) == port {
				l.Mappings = append(l.Mappings, m)
			}
		}
	}
	r.opts.OnListen(l)
}

// listenHook is the kernel's OnListen.
func (r *nodeKernel) listenHook() func(*kernel.NetNS, int, bool) {
	if r.opts.OnListen == nil {
		return nil
	}
	return r.listening
}

// noteNet remembers whose network namespace it is.
func (r *nodeKernel) noteNet(n *kernel.NetNS, s *sandbox) {
	if r.opts.OnListen == nil {
		return
	}
	if r.sandboxOf == nil {
		r.sandboxOf = map[*kernel.NetNS]*sandbox{}
	}
	r.sandboxOf[n] = s
}

// dropListeners closes all ports, as a power cut does.
func (r *nodeKernel) dropListeners() {
	if r.opts.OnListen == nil || r.machine == nil {
		return
	}
	for _, s := range r.recs.sandboxes {
		if pk := r.podKernels[s]; pk != nil {
			pk.net.Close()
		}
	}
	r.machine.HostNet().Close()
	r.sandboxOf = nil
}

// Dial is Runtime.Dial.
func (r *podNet) Dial(ctx context.Context, ip string, port int) (*kernel.Conn, error) {
	return r.kern.kernel().HostNet().Dial(ctx, ip, port)
}

// forwardTarget returns the sandbox whose ports are asked for.
func (r *podNet) forwardTarget(id string) (*sandbox, error) {
	s := r.recs.sandboxFor(id)
	switch {
	case s == nil:
		return nil, status.Errorf(codes.NotFound, "failed to find sandbox %q in store: not found", id)
	case s.state != sandboxReady:
		return nil, status.Error(codes.Unknown, "sandbox container is not running")
	}
	return s, nil
}

// ForwardTarget is Runtime.ForwardTarget.
func (r *podNet) ForwardTarget(podSandboxID string, port int32) (ip string, stated bool, err error) {
	s, err := r.forwardTarget(podSandboxID)
	if err != nil {
		return "", false, err
	}
	n := r.kern.podKernelOf(s).net
	ip = s.ip.String()
	if s.hostNetwork() {
		ip = "127.0.0.1"
	}
	return ip, n.Handler(int(port)) != nil || !n.Listening(int(port)) && r.openProgram(s) != nil, nil
}

// openProgram returns a stated program of the sandbox that answers on every
// port that it is asked on.
func (r *podNet) openProgram(s *sandbox) *process {
	for _, c := range s.containers {
		if p := c.process; p != nil && c.alive() && (p.in == nil || p.in.stated != nil) && p.b.Ports == nil {
			return p
		}
	}
	return nil
}

const (
	// lingers is how long the other direction of a forwarded stream may go on
	// once one has ended, as under containerd.
	lingers = time.Second
	// finTimeout is how long a client may keep sending to who has closed its
	// connection (Linux's tcp_fin_timeout).
	finTimeout = time.Minute
)

// PortForwardStream connects to a port within a sandbox's network and copies
// both ways until one end closes. conn is not closed. A program that states no
// ports answers on each.
func (c *Client) PortForwardStream(ctx context.Context, podSandboxID string, port int32, conn kernel.File) error {
	if _, err := c.by.streaming(); err != nil {
		return err
	}
	return c.r.net.forward(ctx, podSandboxID, port, conn)
}

// forward is Client.PortForwardStream.
func (r *podNet) forward(ctx context.Context, podSandboxID string, port int32, conn kernel.File) error {
	to, err := r.dialSandbox(ctx, podSandboxID, port)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	return r.join(ctx, conn, to, lingers, lingers)
}

// Join is Runtime.Join.
func (r *podNet) Join(ctx context.Context, conn kernel.File, to *kernel.Conn) error {
	return r.join(ctx, conn, to, 0, finTimeout)
}

// join copies both ways. Once the client has sent its end, the answers may take
// afterThere, and once all answers are there, the client's end afterBack; 0
// means for ever.
func (r *podNet) join(ctx context.Context, conn kernel.File, to *kernel.Conn, afterThere, afterBack time.Duration) error {
	g := r.l.NewGroup("forward")
	defer g.Kill()
	var there, back loop.Event
	var failed error
	g.Go("forward", func(ctx context.Context) {
		defer there.Fire()
		if err := copyFile(ctx, to, conn); err != nil && failed == nil {
			failed = err
		}
		_ = to.CloseWrite()
	})
	g.Go("back", func(ctx context.Context) {
		defer back.Fire()
		if err := copyFile(ctx, conn, to); err != nil && failed == nil {
			failed = err
		}
		if w, ok := conn.(interface{ CloseWrite() error }); ok && failed == nil {
			_ = w.CloseWrite()
		}
	})
	first, err := loop.WaitAny(ctx, &back, &there)
	if err != nil {
		return ctxError(err)
	}
	rest, limit := &back, afterThere
	if first == 0 {
		rest, limit = &there, afterBack
	}
	wait, cancel := ctx, func() {}
	if limit > 0 {
		wait, cancel = loop.WithTimeout(ctx, limit)
	}
	defer cancel()
	if failed == nil && rest.Wait(wait) != nil && ctx.Err() != nil {
		return ctxError(ctx.Err())
	}
	if errors.Is(failed, syscall.EPIPE) { // the other end closed first: that is how connections end
		return nil
	}
	return failed
}

func (r *podNet) dialSandbox(ctx context.Context, id string, port int32) (*kernel.Conn, error) {
	s, err := r.forwardTarget(id)
	if err != nil {
		return nil, err
	}
	if port <= 0 || port > 65535 {
		return nil, status.Errorf(codes.InvalidArgument, "invalid port %d", port)
	}
	n := r.kern.podKernelOf(s).net
	if !n.Listening(int(port)) {
		if p := r.openProgram(s); p != nil {
			return n.DialHandler(int(port), r.handler(p, anyPort)), nil
		}
	}
	conn, err := n.Dial(ctx, "127.0.0.1", int(port))
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return conn, ctxError(err)
	}
	// Linux containerd's, with both attempts.
	v4 := &net.OpError{Op: "dial", Net: "tcp4", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)}, Err: &os.SyscallError{Syscall: "connect", Err: errno}}
	return nil, status.Errorf(codes.Unknown, "failed to connect to localhost:%d inside namespace %q, IPv4: %v IPv6 dial tcp6: address localhost: no suitable address found ", port, netnsOf(s), v4)
}

// netnsOf is where a sandbox's network namespace would be.
func netnsOf(s *sandbox) string {
	if s.hostNetwork() {
		return ""
	}
	id := s.id
	return "/var/run/netns/cni-" + id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:32]
}
