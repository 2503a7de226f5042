package action

import "github.com/drydock-sim/drydock/sim"

// Boot turns a machine on.
type Boot struct{ OnNodes }

// About is the field's description.
func (*Boot) About() string { return "Turns a machine on that is off." }

// OnlySimulated is because a machine outside is always on.
func (*Boot) OnlySimulated() {}

// Do does nothing to a machine that is on.
func (a *Boot) Do(s Stage) error {
	return onNodes(s, "boot", a.Node, func(n *sim.Node) error { n.Boot(); return nil })
}
