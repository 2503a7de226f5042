package action

import (
	"strings"

	"github.com/drydock-sim/drydock/sim"
)

// Get asks a kubelet's server.
//
// In the timeline: asks a kubelet's server, as a client with all rights; the answer's code and size are in the timeline, and expectations have it as `http`.
type Get struct {
	OnNodes `json:",inline"`
	// The path with its query, such as /stats/summary or /containerLogs/default/web/main?tailLines=1.
	Path string `json:"path" required:""`
}

// OnlySimulated is because the server of a machine outside wants to know who asks.
func (*Get) OnlySimulated() {}

// Check wants a path.
func (a *Get) Check(at Place) {
	a.OnNodes.Check(at)
	if !strings.HasPrefix(a.Path, "/") {
		at.Field("path").Errorf("%q does not begin with /", a.Path)
	}
}

// Do asks; the answer comes when the kubelet has it.
func (a *Get) Do(s Stage) error {
	return onNodes(s, "get "+a.Path, a.Node, func(n *sim.Node) error { return n.Get(a.Path) })
}
