package action

import (
	"errors"
	"fmt"

	"github.com/drydock-sim/drydock/sim/plugins"
)

// Storage does something to what is behind a driver of CSI: to its controller service and the sidecars that call it. What a driver does on nodes is the action `plugin`'s.
type Storage struct {
	// The driver's name.
	Driver string `json:"driver" required:""`
	// The sidecars crash, in the middle of whatever they do: nothing is provisioned, attached, detached or expanded.
	Stop bool `json:"stop,omitempty"`
	// The sidecars come again.
	Start bool `json:"start,omitempty"`
	// Calls to the controller service fail or take longer from now on.
	Fail *PluginFailure `json:"fail,omitempty"`
}

// Check wants something to be done.
func (a *Storage) Check(at Place) {
	if !a.Stop && !a.Start && a.Fail == nil {
		at.Errorf("has no effect: needs stop, start or fail")
	}
	if a.Stop && a.Start {
		at.Errorf("stop and start exclude each other")
	}
	if a.Fail != nil {
		a.Fail.CheckFor(at.Field("fail"), plugins.ControllerMethods())
	}
}

// Do does it. A driver that no node has is an error.
func (a *Storage) Do(s Stage) error {
	note(s, "storage "+a.Driver, "storage")
	c := s.Cluster()
	if c == nil {
		return errors.New("there is no storage without a control plane")
	}
	st := c.Storage(a.Driver)
	if st == nil {
		return fmt.Errorf("there is no storage of %s: give nodes a driver of that name with `csi`", a.Driver)
	}
	if a.Fail != nil {
		st.AddRules(a.Fail.Rule(a.Driver))
	}
	switch {
	case a.Stop:
		st.StopSidecars()
	case a.Start:
		st.StartSidecars()
	}
	return nil
}
