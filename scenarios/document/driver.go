package document

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// Driver is a driver on a group's nodes: a plugin that offers itself to each kubelet, and is called by it. It runs from the start. Besides its name and what goes wrong it has exactly one other field, which says its type.
type Driver struct {
	// The driver's name, as classes, slices and volumes have it ("gpu.example.com").
	Name string `json:"name" required:""`
	// A driver of CSI, which mounts volumes.
	CSI *CSIDriver `json:"csi,omitempty"`
	// A driver of dynamic resource allocation (DRA).
	DRA *DRADriver `json:"dra,omitempty"`
	// What goes wrong with the kubelet's calls from the start; the action `plugin` does the same later.
	Fail []action.PluginFailure `json:"fail,omitempty"`
}

// kind is what the driver is; nil: nothing says so.
func (d *Driver) kind() driverKind {
	switch {
	case d.DRA != nil:
		return d.DRA
	case d.CSI != nil:
		return d.CSI
	}
	return nil
}

// driverKind is the part of a driver that says its type.
type driverKind interface {
	// plugin is the driver on a node.
	plugin(name string, n *sim.Node) plugins.Driver
	// methods are those that kubelets call.
	methods() []string
}

// checkDrivers wants drivers' names, each once, and a type for each.
func (g *NodeGroup) checkDrivers(at decode.Place) {
	for i := range g.Drivers {
		d, at := &g.Drivers[i], at.Index(i)
		switch msgs := validation.IsDNS1123Subdomain(d.Name); {
		case d.Name == "": // told of already
		case len(msgs) > 0:
			at.Field("name").Errorf("%q is no driver's name: %s", decode.Short(d.Name), msgs[0])
		case slices.ContainsFunc(g.Drivers[:i], func(o Driver) bool { return o.Name == d.Name }):
			at.Field("name").Errorf("%s is there twice", d.Name)
		}
		k := d.kind()
		if k == nil {
			at.Errorf("needs the driver's type: csi or dra")
			continue
		}
		if d.CSI != nil && d.DRA != nil {
			at.Errorf("csi and dra exclude each other: one driver has one type")
		}
		checkFailures(at.Field("fail"), d.Fail, k.methods())
	}
}

// checkFailures wants methods that a plugin has.
func checkFailures(at decode.Place, list []action.PluginFailure, methods []string) {
	for i := range list {
		list[i].CheckFor(at.Index(i), methods)
	}
}

// hasPlugins reports whether the group's nodes run any.
func (g *NodeGroup) hasPlugins() bool { return len(g.Devices)+len(g.Drivers) > 0 }

// StartPlugins starts the plugins of one of the group's nodes.
func (g *NodeGroup) StartPlugins(n *sim.Node) {
	h := n.Plugins()
	for i := range g.Devices {
		d := &g.Devices[i]
		addFailures(h, d.Resource, d.Fail)
		h.StartDevice(d.Plugin())
	}
	for i := range g.Drivers {
		d := &g.Drivers[i]
		addFailures(h, d.Name, d.Fail)
		h.StartDriver(d.kind().plugin(d.Name, n))
	}
}

func addFailures(h *plugins.Host, plugin string, list []action.PluginFailure) {
	for i := range list {
		h.AddRules(list[i].Rule(plugin))
	}
}
