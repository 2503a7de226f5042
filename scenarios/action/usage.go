package action

import (
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// Usage changes what machines use; its fields are documented as UsageChange,
// since value.Usage is one of them.
//
// In the timeline: changes what machines use outside of all pods.
type Usage struct{ UsageChange }

// UsageChange changes what machines use outside of all pods, from now on; what it leaves out stays as it is.
type UsageChange struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node               value.Nodes `json:"node,omitempty"`
	value.MachineUsage `json:",inline"`
}

// OnlySimulated is because a machine outside uses what it uses.
func (*Usage) OnlySimulated() {}

// Check wants a change, and a file system for images on each node that is said to
// fill one.
func (a *Usage) Check(at Place) {
	a.Node.Check(at.Field("node"), at.Scope, true)
	if a.MachineUsage == (value.MachineUsage{}) {
		at.Errorf("changes nothing: needs memory, cpu, pids, nodefs, nodefsInodes, imagefs or imagefsInodes")
	}
	imagefs := true
	for _, n := range a.Node.Select(at.Scope.Nodes) {
		imagefs = imagefs && at.Scope.Imagefs(n)
	}
	a.MachineUsage.Check(at.Place, imagefs)
}

// Do sets the curves, which begin now.
func (a *Usage) Do(s Stage) error {
	return onNodes(s, "usage", a.Node, func(n *sim.Node) error { n.SetUsage(a.Machine()); return nil })
}
