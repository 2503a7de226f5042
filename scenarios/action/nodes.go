package action

import (
	"time"

	"github.com/drydock-sim/drydock/scenarios/value"
)

// OnNodes names nodes.
type OnNodes struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node value.Nodes `json:"node,omitempty"`
}

// Check fills in the only node.
func (o *OnNodes) Check(at Place) {
	o.Node.Check(at.Field("node"), at.Scope, true)
}

// checkOver checks the time over which an action is spread, which ends before
// the scenario does. An action that begins too late is told of elsewhere.
func checkOver(at Place, over time.Duration) {
	switch d, field := at.Scope.Duration, at.Field("over"); {
	case over < 0:
		field.Errorf("%v is negative", over)
	case over > 0 && at.Begin <= d && at.Begin+over > d:
		field.Errorf("%v from %v on is after the scenario's end: its duration is %v", over, at.Begin, d)
	}
}
