package action

import (
	"errors"

	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// NFS does something to a server of NFS (`nfs` of the cluster).
type NFS struct {
	// The server's name.
	Server string `json:"server" required:""`
	// The nodes that can't reach it, or can again. All nodes unless said.
	Node value.Nodes `json:"node,omitempty"`
	// It answers no mount: mount(8) gives up after 2m. What is mounted stays as it is.
	Stop bool `json:"stop,omitempty"`
	// It answers again.
	Start bool `json:"start,omitempty"`
}

// Check wants something to be done.
func (a *NFS) Check(at Place) {
	switch {
	case a.Stop && a.Start:
		at.Errorf("stop and start exclude each other")
	case !a.Stop && !a.Start:
		at.Errorf("has no effect: needs stop or start")
	}
}

// Do does it.
func (a *NFS) Do(s Stage) error {
	if s.Cluster() == nil {
		return errors.New("there are no servers of NFS without a control plane")
	}
	nodes := a.Node
	if len(nodes) == 0 {
		nodes = s.Nodes()
	}
	verb := "can reach NFS server " + a.Server + " again"
	if a.Stop {
		verb = "can't reach NFS server " + a.Server
	}
	return onNodes(s, verb, nodes, func(n *sim.Node) error { return n.SetNFSDown(a.Server, a.Stop) })
}
