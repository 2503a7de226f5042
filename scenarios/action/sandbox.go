package action

import (
	"github.com/drydock-sim/drydock/scenarios/value"
)

// OnSandbox names a pod's sandbox.
type OnSandbox struct {
	// The node. Wherever the pod is, unless said.
	Node value.Nodes `json:"node,omitempty"`
	// The pod: namespace/name, or a name in the namespace default.
	Pod string `json:"pod" required:""`
}

// Check completes the pod's name.
func (o *OnSandbox) Check(at Place) {
	o.Node.Check(at.Field("node"), at.Scope, false)
	o.Pod = value.PodRef(at.Field("pod"), o.Pod)
}
