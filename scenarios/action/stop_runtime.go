package action

import "github.com/drydock-sim/drydock/sim"

// StopRuntime stops the container runtime's daemon; containers live on.
type StopRuntime struct{ OnNodes }

// OnlySimulated is because a machine outside has no way to say it.
func (*StopRuntime) OnlySimulated() {}

// Do stops it: calls under way fail as those of a closed connection.
func (a *StopRuntime) Do(s Stage) error {
	return onNodes(s, "stop runtime", a.Node, func(n *sim.Node) error { n.StopRuntime(); return nil })
}
