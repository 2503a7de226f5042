package action

import (
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// Reboot reboots a machine.
//
// In the timeline: reboots a machine: all its processes die, and it comes back
// with a new boot ID.
type Reboot struct {
	OnNodes `json:",inline"`
	// How long it takes until the kubelet starts. 30s unless said.
	Down time.Duration `json:"down,omitempty"`
	// The time over which that is spread evenly, one node after another, in their order. All at once unless said.
	Over time.Duration `json:"over,omitempty"`
}

// OnlySimulated is because a machine outside has more to do than reboot.
func (*Reboot) OnlySimulated() {}

// rebootDown is how long a reboot takes that does not say it.
const rebootDown = 30 * time.Second

// Check fills in the only node, and how long it takes; a down of 0s is a reboot
// that takes no time.
func (a *Reboot) Check(at Place) {
	a.OnNodes.Check(at)
	checkOver(at, a.Over)
	if !at.Field("down").Written() {
		a.Down = rebootDown
	}
}

// Do is a power cut: what differs is whether anybody meant it.
func (a *Reboot) Do(s Stage) error {
	return onNodesOver(s, "reboot", a.Node, a.Over, func(n *sim.Node) error { n.PowerCut(a.Down); return nil })
}
