package action

import "github.com/drydock-sim/drydock/sim"

// Boot turns a machine on that is off.
type Boot struct{ OnNodes }

// OnlySimulated is because a machine outside is always on.
func (*Boot) OnlySimulated() {}

// Do does nothing to a machine that is on.
func (a *Boot) Do(s Stage) error {
	return onNodes(s, "boot", a.Node, func(n *sim.Node) error { n.Boot(); return nil })
}
