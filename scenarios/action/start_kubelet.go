package action

import "github.com/drydock-sim/drydock/sim"

// StartKubelet starts a kubelet that was stopped.
type StartKubelet struct{ OnNodes }

// Do does nothing where one runs.
func (a *StartKubelet) Do(s Stage) error {
	return onNodes(s, "start kubelet", a.Node, func(n *sim.Node) error { n.StartKubelet(); return nil })
}
