package sim

import (
	"context"
	"net/http"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/prober"
)

// podNetwork is the pod network of a node, as its kubelet sees it.
type podNetwork struct{ rt *fakecri.Runtime }

var _ prober.Network = podNetwork{}

// HTTP asks whoever listens there.
func (n podNetwork) HTTP(ctx context.Context, containerID string, req *http.Request) (status int, header http.Header, body []byte, err error) {
	return n.rt.HTTP(ctx, containerID, req)
}

// DialTCP connects to whoever listens there.
func (n podNetwork) DialTCP(ctx context.Context, containerID, host string, port int) error {
	return n.rt.DialTCP(ctx, containerID, host, port)
}

// GRPCHealth asks whoever listens there.
func (n podNetwork) GRPCHealth(ctx context.Context, containerID, host string, port int, service string) (servingStatus string, err error) {
	return n.rt.GRPCHealth(ctx, containerID, host, port, service)
}

// QuickHTTP is HTTP for stated programs.
func (n podNetwork) QuickHTTP(containerID string, req *http.Request) (a prober.HTTPAnswer, ok bool) {
	a.Status, a.Header, a.Body, a.Took, a.Holds, ok, a.Err = n.rt.QuickHTTP(containerID, req)
	return a, ok
}

// QuickTCP is DialTCP for stated programs.
func (n podNetwork) QuickTCP(containerID, host string, port int) (a prober.TCPAnswer, ok bool) {
	a.Took, a.Holds, ok, a.Err = n.rt.QuickDialTCP(containerID, host, port)
	return a, ok
}

// QuickGRPC is GRPCHealth for stated programs.
func (n podNetwork) QuickGRPC(containerID, host string, port int, service string) (a prober.GRPCAnswer, ok bool) {
	a.Status, a.Took, a.Holds, ok, a.Err = n.rt.QuickGRPCHealth(containerID, host, port, service)
	return a, ok
}

// OnAnswerChange tells when an answer holds no longer.
func (n podNetwork) OnAnswerChange(g *loop.Group, fn func(containerID string)) {
	n.rt.OnAnswerChange(g, fn)
}
