package podkernel

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
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
func (r *Node) listening(n *kernel.NetNS, port int, open bool) {
	l := Listening{IP: n.IP(), Host: n == r.Machine.HostNet(), Port: port, Open: open, Stated: open && n.Handler(port) != nil}
	if s := r.sandboxOf[n]; s != nil {
		for _, m := range s.Config.PortMappings {
			if m.GetHostPort() > 0 && m.GetProtocol() == runtimeapi.Protocol_TCP && int(m.GetContainerPort()) == port {
				l.Mappings = append(l.Mappings, m)
			}
		}
	}
	r.Options.OnListen(l)
}

// listenHook is the kernel's OnListen.
func (r *Node) listenHook() func(*kernel.NetNS, int, bool) {
	if r.Options.OnListen == nil {
		return nil
	}
	return r.listening
}

// noteNet remembers whose network namespace it is.
func (r *Node) noteNet(n *kernel.NetNS, s *records.Sandbox) {
	if r.Options.OnListen == nil {
		return
	}
	if r.sandboxOf == nil {
		r.sandboxOf = map[*kernel.NetNS]*records.Sandbox{}
	}
	r.sandboxOf[n] = s
}

// dropListeners closes all ports, as a power cut does.
func (r *Node) dropListeners() {
	if r.Options.OnListen == nil || r.Machine == nil {
		return
	}
	for _, s := range r.recs.Sandboxes {
		if pk := r.Pods[s]; pk != nil {
			pk.Net.Close()
		}
	}
	r.Machine.HostNet().Close()
	r.sandboxOf = nil
}

// Keep has stop called when the container's ports are closed.
func (pk *Pod) Keep(c *records.Container, stop func()) {
	if pk.served == nil {
		pk.served = map[*records.Container][]func(){}
	}
	pk.served[c] = append(pk.served[c], stop)
}

// Unserve closes the ports of a container's stated program.
func (pk *Pod) Unserve(c *records.Container) {
	for _, stop := range pk.served[c] {
		stop()
	}
	delete(pk.served, c)
}
