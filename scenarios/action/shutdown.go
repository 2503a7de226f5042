package action

import (
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// Shutdown tells a machine to shut down in good order.
//
// In the timeline: shuts a machine down in good order: systemd-logind tells of
// it, a kubelet with shutdownGracePeriod ends its pods while it holds the
// shutdown up, and then the machine turns off.
type Shutdown struct {
	OnNodes `json:",inline"`
	// How long the machine stays off; then it boots. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// OnlySimulated is because nobody turns a machine outside on again.
func (*Shutdown) OnlySimulated() {}

// Do begins the shutdown, which takes as long as it is held up.
func (a *Shutdown) Do(s Stage) error {
	return onNodes(s, "shutdown", a.Node, func(n *sim.Node) error { return n.Shutdown(a.For) })
}
