package plugins

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Device describes a device plugin.
type Device struct {
	// Resource is what it offers ("example.com/gpu").
	Resource string
	Devices  []*pluginapi.Device
	// PreStart and Preferred are its options: it wants to be called before a container
	// starts, and to be asked which devices it prefers.
	PreStart, Preferred bool
	// Islands are groups of devices that are linked to each other. Of those that may be
	// chosen the plugin prefers such of one island: of that with the fewest to choose from
	// that has enough. Without: those whose names sort last.
	Islands [][]string
	// Reregister has it register again when the kubelet is a new one. Without, it is gone
	// then.
	Reregister bool
	// Version is of the API; "" means the kubelet's.
	Version string
	// Answer is what a container gets with devices; nil: nothing but them.
	Answer func(ids []string) *pluginapi.ContainerAllocateResponse
}

// endpoint is the socket's name.
func (d *Device) endpoint() string { return strings.ReplaceAll(d.Resource, "/", "-") + ".sock" }

// lookPeriod is how often a plugin looks for a new socket of the kubelet's.
const lookPeriod = 300 * time.Millisecond

// device is a device plugin's process.
type device struct {
	h *Host
	o Device
	// generation counts the sockets that it has listened on: connections to earlier ones
	// are broken.
	generation int
	stopped    bool
	streams    []*loop.Queue[message]
}

// message is one on a stream of lists of devices.
type message struct {
	devices []*pluginapi.Device
	last    bool // the stream ends in its place
}

// StartDevice starts a device plugin, or one of the same name anew, which registers if a
// kubelet runs.
func (h *Host) StartDevice(o Device) {
	d := h.devices[o.Resource]
	if d == nil {
		d = &device{h: h}
		h.devices[o.Resource] = d
		h.order = append(h.order, o.Resource)
	}
	d.hangUp()
	d.o, d.stopped = o, false
	d.register()
}

// SetDevices has a plugin tell of another list of devices.
func (h *Host) SetDevices(resource string, list []*pluginapi.Device) error {
	d := h.devices[resource]
	if d == nil || d.stopped {
		return fmt.Errorf("there is no device plugin for %s", resource)
	}
	d.o.Devices = list
	for _, s := range d.streams {
		s.TryPut(message{devices: list})
	}
	return nil
}

// RenameDevices has a plugin offer devices of other names, whether or not it was stopped;
// they are where those of the same index were.
func (h *Host) RenameDevices(resource string, ids []string) error {
	d := h.devices[resource]
	if d == nil {
		return fmt.Errorf("there is no device plugin for %s", resource)
	}
	list := make([]*pluginapi.Device, len(ids))
	for i, id := range ids {
		list[i] = &pluginapi.Device{ID: id, Health: pluginapi.Healthy}
		if i < len(d.o.Devices) {
			list[i].Topology = d.o.Devices[i].Topology
		}
	}
	d.o.Devices = list
	if d.stopped {
		return nil
	}
	return h.SetDevices(resource, list)
}

// Devices returns what a plugin offers. It is shared and never written to.
func (h *Host) Devices(resource string) ([]*pluginapi.Device, error) {
	d := h.devices[resource]
	if d == nil {
		return nil, fmt.Errorf("there is no device plugin for %s", resource)
	}
	return d.o.Devices, nil
}

// RestartDevice has a plugin start again as it was, whether or not it was stopped.
func (h *Host) RestartDevice(resource string) error {
	d := h.devices[resource]
	if d == nil {
		return fmt.Errorf("there is no device plugin for %s", resource)
	}
	h.StartDevice(d.o)
	return nil
}

// StopDevice has a plugin go away: its socket is closed and removed.
func (h *Host) StopDevice(resource string) error {
	d := h.devices[resource]
	if d == nil || d.stopped {
		return fmt.Errorf("there is no device plugin for %s", resource)
	}
	d.stopped = true
	h.tell(Call{At: h.l.Now(), Plugin: resource, Method: "(stopped)"})
	d.hangUp()
	return nil
}

// hangUp ends all connections.
func (d *device) hangUp() {
	d.generation++
	for _, s := range d.streams {
		s.TryPut(message{last: true})
	}
	d.streams = nil
}

// kubeletIsNew has the plugin see that the kubelet has another socket.
func (d *device) kubeletIsNew() {
	if d.stopped || !d.o.Reregister {
		return
	}
	generation := d.generation
	d.h.g.After(lookPeriod, func() {
		if d.generation == generation && !d.stopped {
			d.hangUp()
			d.register()
		}
	})
}

// register registers with the kubelet that runs.
func (d *device) register() {
	register := d.h.register
	if register == nil {
		return
	}
	req := &pluginapi.RegisterRequest{
		Version: cmp.Or(d.o.Version, pluginapi.Version), Endpoint: d.o.endpoint(), ResourceName: d.o.Resource, Options: d.options(),
	}
	d.h.g.Go("register "+d.o.Resource, func(ctx context.Context) {
		c := Call{At: d.h.l.Now(), Plugin: d.o.Resource, Method: "Register", Req: req}
		err := register(ctx, req)
		if err != nil {
			err = status.Error(codes.Unknown, err.Error())
		}
		c.Took, c.Err = d.h.l.Since(c.At), err
		d.h.tell(c)
	})
}

func (d *device) options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{PreStartRequired: d.o.PreStart, GetPreferredAllocationAvailable: d.o.Preferred}
}

// connection implements cm.DevicePlugin, for as long as the plugin listens on the socket
// that it is of.
type connection struct {
	d          *device
	generation int
}

func ask[Resp proto.Message](c connection, ctx context.Context, method string, req proto.Message, answer func() (Resp, error)) (Resp, error) {
	if c.generation != c.d.generation {
		var none Resp
		return none, status.Error(codes.Unavailable, "error reading from server: EOF")
	}
	return call(c.d.h, ctx, c.d.o.Resource, method, req, answer)
}

// GetDevicePluginOptions implements cm.DevicePlugin.
func (c connection) GetDevicePluginOptions(ctx context.Context) (*pluginapi.DevicePluginOptions, error) {
	return ask(c, ctx, "GetDevicePluginOptions", &pluginapi.Empty{}, func() (*pluginapi.DevicePluginOptions, error) { return c.d.options(), nil })
}

// GetPreferredAllocation implements cm.DevicePlugin: of the devices that may be chosen,
// those that must be, and then as Device.Islands says.
func (c connection) GetPreferredAllocation(ctx context.Context, req *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	return ask(c, ctx, "GetPreferredAllocation", req, func() (*pluginapi.PreferredAllocationResponse, error) {
		resp := &pluginapi.PreferredAllocationResponse{}
		for _, r := range req.ContainerRequests {
			list := slices.Clone(r.MustIncludeDeviceIDs)
			for _, id := range c.d.o.preference(r) {
				if len(list) < int(r.AllocationSize) && !slices.Contains(list, id) {
					list = append(list, id)
				}
			}
			resp.ContainerResponses = append(resp.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: list})
		}
		return resp, nil
	})
}

// preference are the devices that may be chosen, the most preferred first.
func (d *Device) preference(r *pluginapi.ContainerPreferredAllocationRequest) []string {
	if len(d.Islands) == 0 {
		available := slices.Sorted(slices.Values(r.AvailableDeviceIDs))
		slices.Reverse(available)
		return available
	}
	type island struct {
		must int // of those that must be included
		free []string
	}
	islands := make([]island, len(d.Islands))
	for i, all := range d.Islands {
		for _, id := range all {
			if slices.Contains(r.MustIncludeDeviceIDs, id) {
				islands[i].must++
			}
			if slices.Contains(r.AvailableDeviceIDs, id) {
				islands[i].free = append(islands[i].free, id)
			}
		}
	}
	// One that has enough comes before one that has not; of those that have enough the
	// smallest, of others the largest; first of all where there is something already.
	want := int(r.AllocationSize)
	slices.SortStableFunc(islands, func(a, b island) int {
		enough := func(i island) int {
			if len(i.free) >= want {
				return 0
			}
			return 1
		}
		size := cmp.Compare(len(a.free), len(b.free))
		if enough(a) == 1 {
			size = -size
		}
		return cmp.Or(cmp.Compare(b.must, a.must), cmp.Compare(enough(a), enough(b)), size)
	})
	var out []string
	for _, i := range islands {
		out = append(out, i.free...)
	}
	return append(out, r.AvailableDeviceIDs...) // and what is in no island
}

// Allocate implements cm.DevicePlugin.
func (c connection) Allocate(ctx context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	return ask(c, ctx, "Allocate", req, func() (*pluginapi.AllocateResponse, error) {
		resp := &pluginapi.AllocateResponse{}
		for _, r := range req.ContainerRequests {
			answer := &pluginapi.ContainerAllocateResponse{}
			if c.d.o.Answer != nil {
				answer = c.d.o.Answer(slices.Sorted(slices.Values(r.DevicesIds)))
			}
			resp.ContainerResponses = append(resp.ContainerResponses, answer)
		}
		return resp, nil
	})
}

// PreStartContainer implements cm.DevicePlugin.
func (c connection) PreStartContainer(ctx context.Context, req *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return ask(c, ctx, "PreStartContainer", req, func() (*pluginapi.PreStartContainerResponse, error) {
		return &pluginapi.PreStartContainerResponse{}, nil
	})
}

// Close implements cm.DevicePlugin.
func (c connection) Close() {
	if c.generation != c.d.generation {
		return
	}
	for _, s := range c.d.streams {
		s.TryPut(message{last: true})
	}
}

// ListAndWatch implements cm.DevicePlugin.
func (c connection) ListAndWatch(ctx context.Context, list func([]*pluginapi.Device)) error {
	h, plugin := c.d.h, c.d.o.Resource
	if c.generation != c.d.generation {
		return status.Error(codes.Unavailable, "error reading from server: EOF")
	}
	began := h.l.Now()
	h.tell(Call{At: began, Plugin: plugin, Method: "ListAndWatch", Req: &pluginapi.Empty{}})
	s := loop.NewQueue[message](0)
	c.d.streams = append(c.d.streams, s)
	s.TryPut(message{devices: c.d.o.Devices})
	defer func() {
		c.d.streams = slices.DeleteFunc(c.d.streams, func(o *loop.Queue[message]) bool { return o == s })
		h.tell(Call{At: h.l.Now(), Plugin: plugin, Method: "ListAndWatch ends"})
	}()
	for {
		m, err := s.Get(ctx)
		if err != nil {
			return status.FromContextError(err).Err()
		}
		if m.last {
			return status.Error(codes.Unavailable, "error reading from server: EOF")
		}
		h.tell(Call{At: h.l.Now(), Plugin: plugin, Method: "ListAndWatch sends", Req: &pluginapi.ListAndWatchResponse{Devices: m.devices}})
		list(m.devices)
	}
}
