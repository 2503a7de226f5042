package action

import (
	"time"

	"github.com/drydock-sim/drydock/sim"
)

// PowerCut cuts a machine's power.
//
// In the timeline: cuts a machine's power: all its processes die, its disk
// stays, its tmpfs goes. When the power is back the machine boots.
type PowerCut struct {
	OnNodes `json:",inline"`
	// How long the power is off. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// OnlySimulated is because a machine outside keeps its power.
func (*PowerCut) OnlySimulated() {}

// Do cuts the power; the node itself records that it is back.
func (a *PowerCut) Do(s Stage) error {
	return onNodes(s, "power cut", a.Node, func(n *sim.Node) error { n.PowerCut(a.For); return nil })
}
