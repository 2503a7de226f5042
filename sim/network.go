package sim

import (
	"net/http"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/kubelet/prober"
)

// podNetwork is the pod network of a node, as its kubelet sees it.
//
// The Runtime answers what takes time as the prober asks it; only the answers at
// once have a form of their own here.
type podNetwork struct{ *fakecri.Runtime }

var _ prober.Network = podNetwork{}

// QuickHTTP is HTTP for stated programs.
func (n podNetwork) QuickHTTP(containerID string, req *http.Request) (a prober.HTTPAnswer, ok bool) {
	a.Status, a.Header, a.Body, a.Took, a.Holds, ok, a.Err = n.Runtime.QuickHTTP(containerID, req)
	return a, ok
}

// QuickTCP is DialTCP for stated programs.
func (n podNetwork) QuickTCP(containerID, host string, port int) (a prober.TCPAnswer, ok bool) {
	a.Took, a.Holds, ok, a.Err = n.Runtime.QuickDialTCP(containerID, host, port)
	return a, ok
}

// QuickGRPC is GRPCHealth for stated programs.
func (n podNetwork) QuickGRPC(containerID, host string, port int, service string) (a prober.GRPCAnswer, ok bool) {
	a.Status, a.Took, a.Holds, ok, a.Err = n.Runtime.QuickGRPCHealth(containerID, host, port, service)
	return a, ok
}
