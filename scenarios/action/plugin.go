package action

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// Plugin does something to a plugin of nodes: to the device plugin that offers a resource, or to a driver. The nodes' `devices` and `drivers` say which there are.
type Plugin struct {
	OnNodes `json:",inline"`
	// The resource that a device plugin offers.
	Resource string `json:"resource,omitempty"`
	// The driver's name, in place of a resource.
	Driver string `json:"driver,omitempty"`
	// Devices that become unhealthy, with * and ?; of a driver of CSI volumes, by their handles.
	Unhealthy []string `json:"unhealthy,omitempty"`
	// Devices, or a CSI driver's volumes, that are healthy again, with * and ?.
	Healthy []string `json:"healthy,omitempty"`
	// Why devices or volumes are unhealthy, which a driver says of them. Kubelets ask for it with the gates ResourceHealthStatus and CSIVolumeHealth.
	Message string `json:"message,omitempty"`
	// The plugin goes away. The devices of a device plugin are of no use then, and after 5 minutes the node has lost the resource.
	Stop bool `json:"stop,omitempty"`
	// The plugin comes again, as it was.
	Start bool `json:"start,omitempty"`
	// The names of a device plugin's devices from now on, in place of those that it had: with start, of those that it comes with.
	IDs []string `json:"ids,omitempty"`
	// Calls to the plugin fail or take longer from now on.
	Fail *PluginFailure `json:"fail,omitempty"`
}

// PluginFailure is what goes wrong with calls to a plugin. It has at least one of error, claimError and latency.
type PluginFailure struct {
	// The method. Of a device plugin it is Allocate unless said.
	Method string `json:"method,omitempty" enum:"Allocate,GetPreferredAllocation,PreStartContainer,GetDevicePluginOptions,NodePrepareResources,NodeUnprepareResources,NodeStageVolume,NodeUnstageVolume,NodePublishVolume,NodeUnpublishVolume,NodeExpandVolume,NodeGetVolumeStats,NodeGetInfo,CreateVolume,DeleteVolume,ControllerPublishVolume,ControllerUnpublishVolume,ControllerExpandVolume"`
	// Hits only calls whose request has this text, as JSON.
	Match string `json:"match,omitempty"`
	// The error that calls fail with: a gRPC code, or a code and a message.
	Error *CRIError `json:"error,omitempty"`
	// The error that a driver of DRA tells of each claim of a call, which goes well otherwise.
	ClaimError string `json:"claimError,omitempty"`
	// How long calls take: a time or a range. A call that hangs takes longer than its caller waits.
	Latency *value.Range `json:"latency,omitempty"`
	// The call takes effect first; then it takes its time, and fails.
	TakesEffect bool `json:"takesEffect,omitempty"`
	// The first call that it hits, counted from 1.
	Nth int `json:"nth,omitempty"`
	// How many calls it hits from there on. All unless said.
	Count int `json:"count,omitempty"`
}

// DeviceMethods are those that kubelets call of device plugins.
func DeviceMethods() []string {
	return []string{"Allocate", "GetPreferredAllocation", "PreStartContainer", "GetDevicePluginOptions"}
}

// DRAMethods are those that kubelets call of drivers of DRA.
func DRAMethods() []string { return []string{"NodePrepareResources", "NodeUnprepareResources"} }

// CSIMethods are those that kubelets call of drivers of CSI.
func CSIMethods() []string {
	return []string{"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume", "NodeGetVolumeStats", "NodeGetInfo"}
}

// CheckFor wants an effect, and a method that there is.
func (f *PluginFailure) CheckFor(at decode.Place, methods []string) {
	if f.Error == nil && f.Latency == nil && f.ClaimError == "" {
		at.Errorf("has no effect: needs error, claimError or latency")
	}
	switch {
	case f.Method != "":
		value.OneOf(at.Field("method"), "method of the plugin", f.Method, methods)
	case slices.Contains(methods, "Allocate"):
		f.Method = "Allocate"
	default:
		at.Errorf("needs a method: %s", strings.Join(methods, ", "))
	}
	if f.ClaimError != "" && f.Method != "" && !slices.Contains(DRAMethods(), f.Method) {
		at.Field("claimError").Errorf("is for %s", strings.Join(DRAMethods(), " and "))
	}
	value.NotNegative(at.Field("nth"), f.Nth)
	value.NotNegative(at.Field("count"), f.Count)
}

// Check wants something to be done, and a plugin to do it to.
func (a *Plugin) Check(at Place) {
	a.OnNodes.Check(at)
	if len(a.Unhealthy) == 0 && len(a.Healthy) == 0 && !a.Stop && !a.Start && a.IDs == nil && a.Fail == nil {
		at.Errorf("has no effect: needs unhealthy, healthy, ids, stop, start or fail")
	}
	if a.IDs != nil && (a.Driver != "" || a.Stop) {
		at.Field("ids").Errorf("is for a device plugin that runs")
	}
	for i, id := range a.IDs {
		if id == "" || slices.Contains(a.IDs[:i], id) {
			at.Field("ids").Index(i).Errorf("names are there once, and not empty")
		}
	}
	if a.Stop && a.Start {
		at.Errorf("stop and start exclude each other")
	}
	methods := DeviceMethods()
	if a.Message != "" && (a.Driver == "" || len(a.Unhealthy) == 0) {
		at.Field("message").Errorf("is for a driver's devices that become unhealthy")
	}
	switch {
	case (a.Resource == "") == (a.Driver == ""):
		at.Errorf("needs a resource or a driver")
	case a.Driver != "":
		methods = slices.Concat(DRAMethods(), CSIMethods())
	}
	if f := a.Fail; f != nil {
		f.CheckFor(at.Field("fail"), methods)
	}
}

// Do tells the plugin on each node. A node that has none of that name is an error.
func (a *Plugin) Do(s Stage) error {
	name := cmp.Or(a.Resource, a.Driver)
	return onNodes(s, "plugin "+name, a.Node, func(n *sim.Node) error {
		h := n.Plugins()
		if h == nil {
			return fmt.Errorf("node %s has no plugin for %s: give it devices or drivers", n.Name(), name)
		}
		if f := a.Fail; f != nil {
			h.AddRules(f.Rule(name))
		}
		do := a.doDevices
		if a.Driver != "" {
			do = a.doDriver
		}
		if err := do(h); err != nil {
			return fmt.Errorf("node %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (a *Plugin) doDriver(h *plugins.Host) error {
	switch {
	case a.Stop:
		return h.StopDriver(a.Driver)
	case a.Start:
		if err := h.RestartDriver(a.Driver); err != nil {
			return err
		}
	}
	if len(a.Unhealthy) == 0 && len(a.Healthy) == 0 {
		return nil
	}
	if h.IsCSI(a.Driver) {
		return a.doVolumes(h)
	}
	list, err := h.PoolDevices(a.Driver)
	if err != nil {
		return err
	}
	changed := false
	for healthy, patterns := range [...][]string{a.Unhealthy, a.Healthy} {
		var names []string
		for i := range list {
			if slices.ContainsFunc(patterns, func(p string) bool { return value.Matches(p, list[i].Name) }) {
				names = append(names, list[i].Name)
			}
		}
		c, err := h.SetPoolHealth(a.Driver, names, healthy == 1, a.Message)
		if err != nil {
			return err
		}
		changed = changed || c
	}
	if !changed {
		return a.nothingChanged()
	}
	return nil
}

func (a *Plugin) doVolumes(h *plugins.Host) error {
	for healthy, patterns := range [...][]string{a.Unhealthy, a.Healthy} {
		if len(patterns) == 0 {
			continue
		}
		matches := func(handle string) bool {
			return slices.ContainsFunc(patterns, func(p string) bool { return value.Matches(p, handle) })
		}
		if err := h.SetVolumeCondition(a.Driver, plugins.VolumeCondition{Matches: matches, Healthy: healthy == 1, Message: a.Message}); err != nil {
			return err
		}
	}
	return nil
}

func (a *Plugin) nothingChanged() error {
	return fmt.Errorf("no device of %s is called %s, or changes by it", cmp.Or(a.Resource, a.Driver), strings.Join(slices.Concat(a.Unhealthy, a.Healthy), ", "))
}

func (a *Plugin) doDevices(h *plugins.Host) error {
	if a.IDs != nil {
		if err := h.RenameDevices(a.Resource, a.IDs); err != nil {
			return err
		}
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
		return a.nothingChanged()
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

// Rule is the failure as a host takes it, for a plugin's name.
func (f *PluginFailure) Rule(plugin string) plugins.Rule {
	r := plugins.Rule{Plugin: plugin, Method: f.Method, Match: f.Match, Skip: max(f.Nth-1, 0), Times: -1, Code: codes.OK, ClaimError: f.ClaimError, Late: f.TakesEffect}
	if f.Count > 0 {
		r.Times = f.Count
	}
	if f.Latency != nil {
		r.Delay, r.MaxDelay = f.Latency.Min, f.Latency.Max
	}
	if f.Error != nil {
		r.Code, r.Message = f.Error.status(), f.Error.Message
	}
	return r
}
