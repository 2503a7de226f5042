package action

import "github.com/drydock-sim/drydock/sim"

// StopKubelet kills a kubelet; containers live on.
type StopKubelet struct{ OnNodes }

// Do kills it as SIGKILL would: it writes nothing more.
func (a *StopKubelet) Do(s Stage) error {
	return onNodes(s, "stop kubelet", a.Node, func(n *sim.Node) error { n.StopKubelet(); return nil })
}
