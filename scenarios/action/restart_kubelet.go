package action

import (
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// RestartKubelet kills a kubelet and starts it again.
//
// In the timeline: kills a kubelet and starts it again; containers live on.
type RestartKubelet struct {
	OnNodes `json:",inline"`
	// How long it is down. It starts again at once unless said.
	Down time.Duration `json:"down,omitempty"`
	// The time over which that is spread evenly, one node after another, in their order. All at once unless said.
	Over time.Duration `json:"over,omitempty"`
}

// Check fills in the only node.
func (a *RestartKubelet) Check(at Place) {
	a.OnNodes.Check(at)
	checkOver(at, a.Over)
}

// Do kills it as SIGKILL would.
func (a *RestartKubelet) Do(s Stage) error {
	return onNodesOver(s, "restart kubelet", a.Node, a.Over, func(n *sim.Node) error { n.RestartKubelet(a.Down); return nil })
}
