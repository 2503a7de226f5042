package podnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Dial is Runtime.Dial. It is the machine's own connection, as a kubelet's on the node.
func (r *Net) Dial(ctx context.Context, ip string, port int) (*kernel.Conn, error) {
	return r.kern.Kernel().HostNet().Dial(ctx, ip, port)
}

// Sandbox returns the sandbox whose ports are asked for. The errors are containerd's for
// PortForward.
func (r *Net) Sandbox(id string) (*records.Sandbox, error) {
	s := r.recs.SandboxFor(id)
	switch {
	case s == nil:
		return nil, status.Errorf(codes.NotFound, "failed to find sandbox %q in store: not found", id)
	case s.State != records.SandboxReady:
		return nil, status.Error(codes.Unknown, "sandbox container is not running")
	}
	return s, nil
}

// ForwardTarget is Runtime.ForwardTarget. stated says that a stated program answers, so that the
// server may look at what the client speaks.
func (r *Net) ForwardTarget(podSandboxID string, port int32) (ip string, stated bool, err error) {
	s, err := r.Sandbox(podSandboxID)
	if err != nil {
		return "", false, err
	}
	n := r.kern.Pod(s).Net
	ip = s.IP.String()
	if s.HostNetwork() {
		ip = "127.0.0.1"
	}
	return ip, n.Handler(int(port)) != nil || !n.Listening(int(port)) && r.openProgram(s, int(port)) != nil, nil
}

// openProgram returns a stated program of the sandbox that answers on the port although
// nothing is said of it.
func (r *Net) openProgram(s *records.Sandbox, port int) *records.Process {
	for _, c := range s.Containers {
		if p := c.Process; p != nil && c.Alive() && (p.Interpreted == nil || p.Interpreted.Stated != nil) && p.Behaviour.AnswersUnlisted(port) {
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

// Forward is Client.PortForwardStream. It ends when both directions have ended, or one and its
// patience.
func (r *Net) Forward(ctx context.Context, podSandboxID string, port int32, conn kernel.File) error {
	to, err := r.dialSandbox(ctx, podSandboxID, port)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	return r.Copy(ctx, conn, to, lingers, lingers)
}

// Join is Runtime.Join.
func (r *Net) Join(ctx context.Context, conn kernel.File, to *kernel.Conn) error {
	return r.Copy(ctx, conn, to, 0, finTimeout)
}

// Copy copies both ways. Once the client has sent its end, the answers may take
// afterThere, and once all answers are there, the client's end afterBack; 0
// means for ever. Half-closed connections are usual: a client that sends its request and closes
// that direction still waits for the answer.
func (r *Net) Copy(ctx context.Context, conn kernel.File, to *kernel.Conn, afterThere, afterBack time.Duration) error {
	g := r.l.NewGroup("forward")
	// The direction that is left ends with the group.
	defer g.Kill()
	var there, back loop.Event
	var failed error
	g.Go("forward", func(ctx context.Context) {
		defer there.Fire()
		if err := CopyFile(ctx, to, conn); err != nil && failed == nil {
			failed = err
		}
		_ = to.CloseWrite()
	})
	g.Go("back", func(ctx context.Context) {
		defer back.Fire()
		if err := CopyFile(ctx, conn, to); err != nil && failed == nil {
			failed = err
		}
		if w, ok := conn.(interface{ CloseWrite() error }); ok && failed == nil {
			_ = w.CloseWrite()
		}
	})
	first, err := loop.WaitAny(ctx, &back, &there)
	if err != nil {
		return calls.CtxError(err)
	}
	// first is the index in the WaitAny: 0 is the way back.
	rest, limit := &back, afterThere
	if first == 0 {
		rest, limit = &there, afterBack
	}
	wait, cancel := ctx, func() {}
	if limit > 0 {
		wait, cancel = loop.WithTimeout(ctx, limit)
	}
	defer cancel()
	// Running out of patience is no error.
	if failed == nil && rest.Wait(wait) != nil && ctx.Err() != nil {
		return calls.CtxError(ctx.Err())
	}
	if errors.Is(failed, linux.EPIPE) { // the other end closed first: that is how connections end
		return nil
	}
	return failed
}

// dialSandbox connects to a port within a sandbox's network. A stated program that
// names no ports answers even where nothing listens. It dials within the pod's namespace, so
// 127.0.0.1 is the pod's loopback.
func (r *Net) dialSandbox(ctx context.Context, id string, port int32) (*kernel.Conn, error) {
	s, err := r.Sandbox(id)
	if err != nil {
		return nil, err
	}
	if port <= 0 || port > 65535 {
		return nil, status.Errorf(codes.InvalidArgument, "invalid port %d", port)
	}
	n := r.kern.Pod(s).Net
	if !n.Listening(int(port)) {
		if p := r.openProgram(s, int(port)); p != nil {
			return n.DialHandler(int(port), r.handler(p, program.AnyPort)), nil
		}
	}
	conn, err := n.Dial(ctx, "127.0.0.1", int(port))
	var errno linux.Errno
	if !errors.As(err, &errno) {
		return conn, calls.CtxError(err)
	}
	// Linux containerd's, with both attempts. kubectl port-forward prints the text.
	v4 := &net.OpError{Op: "dial", Net: "tcp4", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)}, Err: &os.SyscallError{Syscall: "connect", Err: errno}}
	return nil, status.Errorf(codes.Unknown, "failed to connect to localhost:%d inside namespace %q, IPv4: %v IPv6 dial tcp6: address localhost: no suitable address found ", port, netnsOf(s), v4)
}

// netnsOf is where a sandbox's network namespace would be. The form is that of the CNI plugins'
// names, made of the sandbox's id so that it is the same in each run.
func netnsOf(s *records.Sandbox) string {
	if s.HostNetwork() {
		return ""
	}
	id := s.ID
	return "/var/run/netns/cni-" + id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:32]
}

// CopyFile copies until the end of from, which is no error. What was read before an error is
// written first.
func CopyFile(ctx context.Context, to, from kernel.File) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(ctx, buf)
		if n > 0 {
			if _, werr := to.Write(ctx, buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
