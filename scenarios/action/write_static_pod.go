package action

import (
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// WriteStaticPod writes a static pod's manifest.
//
// In the timeline: writes a static pod's manifest into a node's manifest
// directory.
type WriteStaticPod struct {
	OnNodes `json:",inline"`
	// The file's name in the manifest directory.
	File string `json:"file" required:""`
	// The pod; or a text, which is written as it is, also if it is no good manifest.
	Manifest value.Manifest `json:"manifest" required:""`
}

// Check wants a file's name and one pod.
func (a *WriteStaticPod) Check(at Place) {
	a.OnNodes.Check(at)
	value.CheckStaticPod(at.Field("file"), a.File, &a.Manifest)
}

// Do writes the file at once, over one of that name.
func (a *WriteStaticPod) Do(s Stage) error {
	return onNodes(s, "write static pod "+a.File, a.Node, func(n *sim.Node) error { return n.WriteStaticPod(a.File, a.Manifest.Content) })
}
