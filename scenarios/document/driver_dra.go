package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// DRADriver is a driver of dynamic resource allocation (DRA). Once a kubelet has taken it in it publishes the node's devices in ResourceSlices, in a pool of the node's name; it prepares the claims that got some of them, and tells the kubelet of the devices' health.
type DRADriver struct {
	// The devices of each node.
	Devices []DRADevices `json:"devices,omitempty"`
	// What devices that are parts of others share, as ResourceSlices have it.
	SharedCounters []resourcev1.CounterSet `json:"sharedCounters,omitempty"`
	// What the driver does about a device that is not healthy, besides telling the kubelet: it taints the device (NoSchedule, or NoExecute, which has pods deleted that don't tolerate it), withdraws it, or does no more (tell). NoSchedule unless said.
	Unhealthy string `json:"unhealthy,omitempty" enum:"NoSchedule,NoExecute,withdraw,tell"`
}

// DRADevices are equal devices of a node.
type DRADevices struct {
	// The devices' name. With a count, the devices are called name-0, name-1 and so on; without one there is one device, called just so.
	Name string `json:"name" required:""`
	// How many devices there are.
	Count *int `json:"count,omitempty"`
	// What selectors and constraints ask for: `model: {string: H100}`.
	Attributes map[string]resourcev1.DeviceAttribute `json:"attributes,omitempty"`
	// How much a device has of something: `memory: 80Gi`.
	Capacity map[string]DRACapacity `json:"capacity,omitempty"`
	// What a device that is a part of another takes of shared counters.
	ConsumesCounters []resourcev1.DeviceCounterConsumption `json:"consumesCounters,omitempty"`
	// Taints of the devices.
	Taints []resourcev1.DeviceTaint `json:"taints,omitempty"`
	// What has to be true of a device before its pod is bound: conditions in status.devices of its ResourceClaim. The driver doesn't set them, the timeline does, by patches.
	BindingConditions []string `json:"bindingConditions,omitempty"`
	// Of such conditions those of which a true one says that the device won't do.
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty"`
	// Several claims may have a share of one device.
	AllowMultipleAllocations bool `json:"allowMultipleAllocations,omitempty"`
}

// DRACapacity is how much a device has of something. Written as just an amount, or with a policy.
type DRACapacity struct {
	// The amount.
	Value resource.Quantity `json:"value" required:""`
	// How much of it claims may ask for, of a device that several may have.
	RequestPolicy *resourcev1.CapacityRequestPolicy `json:"requestPolicy,omitempty"`
}

// Shorthand has a capacity be written as just its amount.
func (c *DRACapacity) Shorthand() any { return &c.Value }

// devices are those of a node.
func (d *DRADriver) devices() []resourcev1.Device {
	var out []resourcev1.Device
	for i := range d.Devices {
		k := &d.Devices[i]
		for n := range ptr.Deref(k.Count, 1) {
			dev := resourcev1.Device{Name: k.Name, Taints: k.Taints, ConsumesCounters: k.ConsumesCounters,
				BindingConditions: k.BindingConditions, BindingFailureConditions: k.BindingFailureConditions}
			if k.Count != nil {
				dev.Name += "-" + strconv.Itoa(n)
			}
			if k.AllowMultipleAllocations {
				dev.AllowMultipleAllocations = ptr.To(true)
			}
			for name, a := range k.Attributes { //drydock:unordered fills a map
				if dev.Attributes == nil {
					dev.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
				}
				dev.Attributes[resourcev1.QualifiedName(name)] = a
			}
			for name, c := range k.Capacity { //drydock:unordered fills a map
				if dev.Capacity == nil {
					dev.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
				}
				dev.Capacity[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: c.Value, RequestPolicy: c.RequestPolicy}
			}
			out = append(out, dev)
		}
	}
	return out
}

// maxDRADevices is more than any machine has.
const maxDRADevices = 10_000

// Check wants names that are there once, and what the API would take.
func (d *DRADriver) Check(at decode.Place) {
	total := 0
	for i := range d.Devices {
		k, at := &d.Devices[i], at.Field("devices").Index(i)
		if n := ptr.Deref(k.Count, 1); n < 0 || n > maxDRADevices {
			at.Field("count").Errorf("must be between 0 and %d", maxDRADevices)
			return
		} else if total += n; total > maxDRADevices {
			at.Errorf("a node has up to %d devices of a driver", maxDRADevices)
			return
		}
	}
	all := d.devices()
	seen := map[string]bool{}
	for i := range all {
		if n := all[i].Name; seen[n] && n != "" {
			at.Field("devices").Errorf("two devices are called %s", n)
			return
		}
		seen[all[i].Name] = true
	}
	for i := range d.Devices {
		one := DRADriver{Devices: slices.Clone(d.Devices[i : i+1])}
		one.Devices[0].Count = nil
		refused(at.Field("devices").Index(i), &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Devices: one.devices()}})
	}
	if len(d.SharedCounters) > 0 {
		refused(at.Field("sharedCounters"), &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{SharedCounters: d.SharedCounters}})
	}
}

// refused says what the API would refuse of a slice.
func refused(at decode.Place, s *resourcev1.ResourceSlice) {
	s.Name, s.Spec.Driver, s.Spec.NodeName = "slice", "driver.test", ptr.To("node")
	s.Spec.Pool = resourcev1.ResourcePool{Name: "node", Generation: 1, ResourceSliceCount: 1}
	for _, err := range refusedByAPI(s, apiserver.Gates{}) {
		where := strings.TrimPrefix(strings.TrimPrefix(err.Field, "spec.devices[0]"), "spec.sharedCounters")
		at.Errorf("%s%s", strings.TrimPrefix(strings.TrimPrefix(where, ".")+": ", ": "), err.ErrorBody())
	}
}

func (d *DRADriver) methods() []string { return action.DRAMethods() }

func (d *DRADriver) plugin(name string, _ *sim.Node) plugins.Driver {
	reaction := plugins.TaintNoSchedule
	if d.Unhealthy != "" {
		reaction = plugins.Reaction(d.Unhealthy)
	}
	return plugins.DRADriver{Name: name, Pool: &plugins.Pool{Devices: d.devices(), Counters: d.SharedCounters, Unhealthy: reaction}}
}

// cdi is the environment that containers get with the devices of a group's drivers, by
// CDI device: GPU_EXAMPLE_COM_GPU_0=gpu-0. Nil without such drivers.
func (g *NodeGroup) cdi() map[string][]string {
	var out map[string][]string
	for i := range g.Drivers {
		d := &g.Drivers[i]
		if d.DRA == nil {
			continue
		}
		for _, dev := range d.DRA.devices() {
			if out == nil {
				out = map[string][]string{}
			}
			out[plugins.CDIName(d.Name, dev.Name)] = []string{fmt.Sprintf("%s=%s", variable(d.Name+"_"+dev.Name), dev.Name)}
		}
	}
	return out
}
