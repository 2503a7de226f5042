package action

import (
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// RemoveStaticPod removes a static pod's manifest.
//
// In the timeline: removes a static pod's manifest from a node's manifest
// directory.
type RemoveStaticPod struct {
	OnNodes `json:",inline"`
	// The file's name in the manifest directory.
	File string `json:"file" required:""`
}

// Check wants a file's name.
func (a *RemoveStaticPod) Check(at Place) {
	a.OnNodes.Check(at)
	value.CheckStaticPod(at.Field("file"), a.File, &value.Manifest{})
}

// Do fails if there is no such file.
func (a *RemoveStaticPod) Do(s Stage) error {
	return onNodes(s, "remove static pod "+a.File, a.Node, func(n *sim.Node) error { return n.RemoveStaticPod(a.File) })
}
