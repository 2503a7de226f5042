package document

import (
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// DRADriver is a driver of dynamic resource allocation.
type DRADriver struct{}

func (d *DRADriver) methods() []string { return action.DRAMethods() }

func (d *DRADriver) plugin(name, _ string) plugins.Driver { return plugins.DRADriver{Name: name} }
