package action

import (
	"time"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// OnNodes names nodes.
type OnNodes struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node value.Nodes `json:"node,omitempty"`
}

// Check fills in the only node.
func (o *OnNodes) Check(at decode.Place, s *value.Scope, _ time.Duration) {
	o.Node.Check(at.Field("node"), s, true)
}

// checkOver checks the time over which an action is spread, which ends before
// the scenario does. An action that begins too late is told of elsewhere.
func checkOver(at decode.Place, s *value.Scope, begin, over time.Duration) {
	switch d := s.Duration; {
	case over < 0:
		at.Errorf("%v is negative", over)
	case over > 0 && begin <= d && begin+over > d:
		at.Errorf("%v from %v on is after the scenario's end: its duration is %v", over, begin, d)
	}
}
