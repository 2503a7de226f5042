package prober

import (
	"net/http"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/grpc"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/tcp"
)

// Runner runs the commands of exec probes.
type Runner = exec.Runner

// Network is how the node reaches the ports of its containers. containerID is
// the CRI ID of the container that is probed; host may be any host. Errors read
// like those of Go's net package on Linux ("dial tcp 10.1.2.3:80: connect:
// connection refused").
type Network interface {
	httpprobe.Transport
	tcp.Dialer
	grpc.HealthClient

	// The Quick methods tell what the method of that name would answer if it
	// were called now, if that is known without running anything; they neither
	// wait nor write to the request.
	QuickHTTP(containerID string, req *http.Request) (HTTPAnswer, bool)
	QuickTCP(containerID, host string, port int) (TCPAnswer, bool)
	QuickGRPC(containerID, host string, port int, service string) (GRPCAnswer, bool)
}

// HTTPAnswer is the answer to a request, which comes after Took.
type HTTPAnswer struct {
	httpprobe.Response
	Err  error
	Took time.Duration
	// Holds means that the answer stays what it is, and takes as long, until
	// an AnswerNotifier tells otherwise.
	Holds bool
}

// TCPAnswer is what becomes of a connection after Took; nil: it is made.
type TCPAnswer struct {
	Err   error
	Took  time.Duration
	Holds bool // see HTTPAnswer
}

// GRPCAnswer is the health status that a server tells after Took.
type GRPCAnswer struct {
	Status string
	Err    error
	Took   time.Duration
	Holds  bool // see HTTPAnswer
}

// AnswerNotifier is a Network that tells when an answer of a container's that
// was said to hold may be another; fn is called until g dies.
type AnswerNotifier interface {
	OnAnswerChange(g *loop.Group, fn func(containerID string))
}
