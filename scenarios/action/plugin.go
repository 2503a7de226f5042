package action

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// Plugin does something to the device plugin of nodes that offers a resource: the nodes' `devices` say which there are.
type Plugin struct {
	OnNodes `json:",inline"`
	// The resource.
	Resource string `json:"resource" required:""`
	// Devices that become unhealthy, with * and ?.
	Unhealthy []string `json:"unhealthy,omitempty"`
	// Devices that are healthy again, with * and ?.
	Healthy []string `json:"healthy,omitempty"`
	// The plugin goes away. Its devices are of no use then, and after 5 minutes the node has lost the resource.
	Stop bool `json:"stop,omitempty"`
	// The plugin comes again, with the devices that it had.
	Start bool `json:"start,omitempty"`
	// Calls to the plugin fail or take longer from now on.
	Fail *PluginFailure `json:"fail,omitempty"`
}

// PluginFailure is what goes wrong with calls to a plugin. It has at least one of error and latency.
type PluginFailure struct {
	// The method. Allocate unless said.
	Method string `json:"method,omitempty" enum:"Allocate,GetPreferredAllocation,PreStartContainer,GetDevicePluginOptions"`
	// The error that calls fail with: a gRPC code, or a code and a message.
	Error *CRIError `json:"error,omitempty"`
	// How long calls take: a time.
	Latency *value.Range `json:"latency,omitempty"`
	// How many calls it hits. All unless said.
	Count int `json:"count,omitempty"`
}

// Check wants something to be done, and a resource that the nodes have.
func (a *Plugin) Check(at Place) {
	a.OnNodes.Check(at)
	if len(a.Unhealthy) == 0 && len(a.Healthy) == 0 && !a.Stop && !a.Start && a.Fail == nil {
		at.Errorf("has no effect: needs unhealthy, healthy, stop, start or fail")
	}
	if a.Stop && a.Start {
		at.Errorf("stop and start exclude each other")
	}
	if f := a.Fail; f != nil {
		if f.Error == nil && f.Latency == nil {
			at.Field("fail").Errorf("has no effect: needs error or latency")
		}
		value.NotNegative(at.Field("fail").Field("count"), f.Count)
	}
}

// Do tells the plugin on each node. A node that has none of the resource is an error.
func (a *Plugin) Do(s Stage) error {
	return onNodes(s, "plugin "+a.Resource, a.Node, func(n *sim.Node) error {
		h := n.Plugins()
		if h == nil {
			return fmt.Errorf("node %s has no device plugin for %s: give it devices", n.Name(), a.Resource)
		}
		if err := a.do(h); err != nil {
			return fmt.Errorf("node %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (a *Plugin) do(h *plugins.Host) error {
	if f := a.Fail; f != nil {
		h.AddRules(f.rule(a.Resource))
	}
	switch {
	case a.Stop:
		return h.StopDevice(a.Resource)
	case a.Start:
		if err := h.RestartDevice(a.Resource); err != nil {
			return err
		}
	}
	if len(a.Unhealthy) == 0 && len(a.Healthy) == 0 {
		return nil
	}
	list, err := h.Devices(a.Resource)
	if err != nil {
		return err
	}
	var next []*pluginapi.Device
	changed := false
	for _, d := range list {
		health := d.Health
		matches := func(p string) bool { return value.Matches(p, d.ID) }
		if slices.ContainsFunc(a.Unhealthy, matches) {
			health = pluginapi.Unhealthy
		} else if slices.ContainsFunc(a.Healthy, matches) {
			health = pluginapi.Healthy
		}
		changed = changed || health != d.Health
		next = append(next, &pluginapi.Device{ID: d.ID, Health: health, Topology: d.Topology})
	}
	if !changed {
		return fmt.Errorf("no device of %s is called %s, or changes by it", a.Resource, strings.Join(slices.Concat(a.Unhealthy, a.Healthy), ", "))
	}
	return h.SetDevices(a.Resource, next)
}

// status is the error's code.
func (e *CRIError) status() codes.Code {
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if c.String() == e.Code {
			return c
		}
	}
	return codes.Unknown
}

// rule is the failure as a host takes it.
func (f *PluginFailure) rule(resource string) plugins.Rule {
	r := plugins.Rule{Plugin: resource, Method: f.Method, Times: -1, Code: codes.OK}
	if r.Method == "" {
		r.Method = "Allocate"
	}
	if f.Count > 0 {
		r.Times = f.Count
	}
	if f.Latency != nil {
		r.Delay = f.Latency.Runtime().Min
	}
	if f.Error != nil {
		r.Code, r.Message = f.Error.status(), f.Error.Message
	}
	return r
}
