package action

import "github.com/drydock-sim/drydock/sim"

// StartRuntime starts the container runtime's daemon again.
type StartRuntime struct{ OnNodes }

// OnlySimulated is because a machine outside has no way to say it.
func (*StartRuntime) OnlySimulated() {}

// Do does nothing where it runs.
func (a *StartRuntime) Do(s Stage) error {
	return onNodes(s, "start runtime", a.Node, func(n *sim.Node) error { n.StartRuntime(); return nil })
}
