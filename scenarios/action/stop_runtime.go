package action

import "github.com/drydock-sim/drydock/sim"

// StopRuntime stops the runtime's daemon; calls to it fail until it is started.
type StopRuntime struct{ OnNodes }

// About is the field's description.
func (*StopRuntime) About() string {
	return "Stops the container runtime's daemon; containers live on."
}

// OnlySimulated is because a machine outside has no way to say it.
func (*StopRuntime) OnlySimulated() {}

// Do stops it: calls under way fail as those of a closed connection.
func (a *StopRuntime) Do(s Stage) error {
	return onNodes(s, "stop runtime", a.Node, func(n *sim.Node) error { n.StopRuntime(); return nil })
}
