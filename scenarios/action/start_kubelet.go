package action

import "github.com/drydock-sim/drydock/sim"

// StartKubelet starts a kubelet on the files that the last one left.
type StartKubelet struct{ OnNodes }

// About is the field's description.
func (*StartKubelet) About() string { return "Starts a kubelet that was stopped." }

// Do does nothing where one runs.
func (a *StartKubelet) Do(s Stage) error {
	return onNodes(s, "start kubelet", a.Node, func(n *sim.Node) error { n.StartKubelet(); return nil })
}
