package scenarios

import (
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// Shutdown tells a machine to shut down in good order.
type Shutdown struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// How long the machine stays off; then it boots. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// shutdownNodes returns the selection of nodes that an action about a machine's
// shutdown has, and the action's name.
func (a *Action) shutdownNodes() (field string, sel *Nodes) {
	switch {
	case a.Shutdown != nil:
		return "shutdown", &a.Shutdown.Node
	case a.CancelShutdown != nil:
		return "cancelShutdown", &a.CancelShutdown.Node
	case a.Boot != nil:
		return "boot", &a.Boot.Node
	}
	return "", nil
}

// shutdown does an action about a machine's shutdown.
func (r *run) shutdown(a *Action, nodes Nodes) error {
	switch {
	case a.Shutdown != nil:
		return r.onNodes("shutdown", nodes, func(n *sim.Node) error { return n.Shutdown(a.Shutdown.For) })
	case a.CancelShutdown != nil:
		return r.onNodes("cancel shutdown", nodes, (*sim.Node).CancelShutdown)
	}
	return r.onNodes("boot", nodes, func(n *sim.Node) error { n.Boot(); return nil })
}
