package fakecri

import (
	"context"
	"net/http"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
)

// This file is what the runtime offers besides calls: to the node's own
// processes over the pod network, to those who look at what is used, and to
// whoever injects faults.

// AddFault puts a rule in force, after its From. The function returned takes
// it back; calls that hang on it then go on.
func (r *Runtime) AddFault(rule Fault) (remove func()) { return r.calls.AddFault(rule) }

// OnEvent has fn called, on the loop, with what GetContainerEvents streams, until
// g dies: when a sandbox or container was created, started, has stopped, was
// deleted, in the order in which that happened to it. Sandboxes have their own
// id as the container's; each is started as it is created. fn must not wait and
// must not change the event, which has the status of the sandbox and of all its
// containers after what happened.
func (r *Runtime) OnEvent(g *loop.Group, fn func(*runtimeapi.ContainerEventResponse)) {
	r.view.OnEvent(g, fn)
}

// QuickExecSync is ExecSync where the outcome is known without running
// anything: in a container with a stated program, while the daemon is up and no
// fault is about ExecSync. took is how long it takes, the timeout at most.
func (r *Runtime) QuickExecSync(id string, cmd []string, timeout time.Duration) (stdout []byte, took time.Duration, ok bool, err error) {
	return r.exec.QuickExecSync(id, cmd, timeout)
}

// HTTP sends a request to whoever listens on its URL's host and port, on behalf
// of a container: a program that states no ports answers 200 on every port
// that its own container is asked on. The request's body is not looked at.
// Errors are what a transport's RoundTrip returns, or ctx's.
func (r *Runtime) HTTP(ctx context.Context, containerID string, req *http.Request) (code int, header http.Header, body []byte, err error) {
	return r.net.HTTP(ctx, containerID, req)
}

// QuickHTTP is HTTP where the answer is known without running anything; took is
// how long it takes. Else ok is false, and HTTP must be called. holds means
// that the answer stays the same until OnAnswerChange tells otherwise.
func (r *Runtime) QuickHTTP(containerID string, req *http.Request) (code int, header http.Header, body []byte, took time.Duration, holds, ok bool, err error) {
	return r.net.QuickHTTP(containerID, req)
}

// DialTCP opens a connection and closes it again.
func (r *Runtime) DialTCP(ctx context.Context, containerID, host string, port int) error {
	return r.net.DialTCP(ctx, containerID, host, port)
}

// QuickDialTCP is DialTCP where the answer is known without running anything.
func (r *Runtime) QuickDialTCP(containerID, host string, port int) (took time.Duration, holds, ok bool, err error) {
	return r.net.QuickDialTCP(containerID, host, port)
}

// GRPCHealth asks for the health of a service and returns its serving status,
// "SERVING" or another of grpc.health.v1. Errors are those of the connection,
// or the call's gRPC status: NotFound for a service that is unknown,
// a dial error where something else than gRPC is spoken.
func (r *Runtime) GRPCHealth(ctx context.Context, containerID, host string, port int, service string) (health string, err error) {
	return r.net.GRPCHealth(ctx, containerID, host, port, service)
}

// QuickGRPCHealth is GRPCHealth where the answer is known without running
// anything.
func (r *Runtime) QuickGRPCHealth(containerID, host string, port int, service string) (health string, took time.Duration, holds, ok bool, err error) {
	return r.net.QuickGRPCHealth(containerID, host, port, service)
}

// OnAnswerChange has fn called, on the loop, when an answer of a container's
// that was said to hold may be another, until g dies.
func (r *Runtime) OnAnswerChange(g *loop.Group, fn func(containerID string)) {
	r.net.OnAnswerChange(g, fn)
}

// Dial connects, from the machine, to whoever listens on a port of a pod's IP,
// or of the host's network (127.0.0.1). Errors are syscall.Errnos, or ctx's.
func (r *Runtime) Dial(ctx context.Context, ip string, port int) (*kernel.Conn, error) {
	return r.net.Dial(ctx, ip, port)
}

// ForwardTarget returns the address that the ports of a sandbox have for Dial
// and GRPCHealth, and whether a stated program answers on a port.
func (r *Runtime) ForwardTarget(podSandboxID string, port int32) (ip string, stated bool, err error) {
	return r.net.ForwardTarget(podSandboxID, port)
}

// Join copies both ways between a client's connection and one of Dial until
// both directions have ended. It closes neither. The error is a syscall.Errno
// of the connections, or ctx's.
func (r *Runtime) Join(ctx context.Context, conn kernel.File, to *kernel.Conn) error {
	return r.net.Join(ctx, conn, to)
}

// NodeUsage returns what the machine uses now. It is no call.
func (r *Runtime) NodeUsage() NodeUsage { return r.use.NodeUsage() }

// WatchUsage has changed called once when more than these is used: memory of the
// machine and of all pods in bytes, and processes; noLimit or more for what
// nobody wants to know. It returns false, and watches nothing, if more is used
// already. It forgets what was watched before.
func (r *Runtime) WatchUsage(memory, podsMemory, pids int64, changed func()) bool {
	return r.use.WatchUsage(memory, podsMemory, pids, changed)
}

// WatchOOM has fn called for each kill from now on, while the group lives. fn
// must not wait.
func (r *Runtime) WatchOOM(g *loop.Group, fn func(OOMKill)) { r.use.WatchOOM(g, fn) }

// SetSystemMemory changes what the machine itself uses of memory, in bytes; the
// curve begins now.
func (r *Runtime) SetSystemMemory(c *usage.Curve) { r.use.SetSystemMemory(c) }

// SetSystemPIDs changes how many processes the machine has itself; the curve
// begins now.
func (r *Runtime) SetSystemPIDs(c *usage.Curve) { r.use.SetSystemPIDs(c) }

// SetSystemCPU changes what the machine itself uses of its processors, in
// millicores; the curve begins now.
func (r *Runtime) SetSystemCPU(c *usage.Curve) { r.use.SetSystemCPU(c) }

// SetPodsMemoryLimit sets the memory limit of the cgroup of all pods in bytes; 0
// or less for none. If more is in use the OOM killer goes to work.
func (r *Runtime) SetPodsMemoryLimit(n int64) { r.use.SetPodsMemoryLimit(n) }

// SetPodsPIDLimit sets how many processes all pods can have; 0 or less for any
// number.
func (r *Runtime) SetPodsPIDLimit(n int64) { r.use.SetPodsPIDLimit(n) }

// SetStreaming has Exec, Attach and PortForward answer with the URLs of s, in the place of
// Options.Streaming.
func (r *Runtime) SetStreaming(s StreamingServer) { r.opts.Streaming = s }
