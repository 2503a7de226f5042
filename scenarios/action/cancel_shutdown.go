package action

import "github.com/drydock-sim/drydock/sim"

// CancelShutdown calls a shutdown off that is still held up.
type CancelShutdown struct{ OnNodes }

// OnlySimulated is because a machine outside is not shut down.
func (*CancelShutdown) OnlySimulated() {}

// Do fails if there is no shutdown that is held up.
func (a *CancelShutdown) Do(s Stage) error {
	return onNodes(s, "cancel shutdown", a.Node, (*sim.Node).CancelShutdown)
}
