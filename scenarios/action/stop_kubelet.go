package action

import "github.com/drydock-sim/drydock/sim"

// StopKubelet kills a kubelet for good.
type StopKubelet struct{ OnNodes }

// About is the field's description.
func (*StopKubelet) About() string { return "Kills a kubelet; containers live on." }

// Do kills it as SIGKILL would: it writes nothing more.
func (a *StopKubelet) Do(s Stage) error {
	return onNodes(s, "stop kubelet", a.Node, func(n *sim.Node) error { n.StopKubelet(); return nil })
}
