package action

import (
	"time"

	"github.com/drydock-sim/drydock/scenarios/value"
)

// StopComponent stops a component of the control plane.
//
// In the timeline: stops a component of the control plane: what it knew is lost.
type StopComponent struct {
	// Which one.
	Component string `json:"component" required:"" enum:"kube-scheduler,kube-controller-manager"`
	// How long it is down. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// Check refuses a negative time.
func (a *StopComponent) Check(at Place) {
	value.NotNegative(at.Field("for"), a.For)
}

// Do stops it, and has it started again after its time.
func (a *StopComponent) Do(s Stage) error {
	note(s, "component "+a.Component, "stop")
	s.Cluster().ControlPlane().Stop(a.Component)
	if a.For > 0 {
		s.Later(s.Cluster().Now()+a.For, func() error { return (&StartComponent{Component: a.Component}).Do(s) })
	}
	return nil
}
