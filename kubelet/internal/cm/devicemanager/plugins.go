package devicemanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// stopGrace is for how long a plugin that went away may come again before the node loses
// its resource (endpointStopGracePeriod).
const stopGrace = 5 * time.Minute

// resource is what plugins of one name have registered.
type resource struct {
	plugin  cm.DevicePlugin // nil: of before a restart, and not back yet
	options *pluginapi.DevicePluginOptions
	// stopped is when the plugin went away; zero: it is there.
	stopped time.Time
	devices map[string]*pluginapi.Device
	healthy sets.Set[string]
	// unhealthy are those that the plugin says so of, and all that one had that went away.
	unhealthy sets.Set[string]
}

// register takes in a plugin that asks for it (plugin/v1beta1/server.go, Register).
func (m *Manager) register(ctx context.Context, req *pluginapi.RegisterRequest) error {
	if !slices.Contains(pluginapi.SupportedVersions[:], req.Version) {
		return fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q", req.Version, pluginapi.SupportedVersions)
	}
	if !isExtendedResource(req.ResourceName) {
		return fmt.Errorf("the ResourceName %q is invalid", req.ResourceName)
	}
	m.log("Got registration request from device plugin with resource resourceName=%s", req.ResourceName)
	return m.connect(ctx, req.ResourceName, req.Endpoint)
}

// connect connects to a plugin, which is from now on what counts for its resource. Its
// stream of devices is read until it ends.
func (m *Manager) connect(ctx context.Context, name, endpoint string) error {
	plugin, err := m.c.Plugins.Dial(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("failed to dial device plugin with socketPath %s: %w", endpoint, err)
	}
	options, err := plugin.GetDevicePluginOptions(ctx)
	if err != nil {
		plugin.Close()
		return fmt.Errorf("failed to get device plugin options: %w", err)
	}
	if m.c.Group.Dead() { // the kubelet has ended meanwhile
		return fmt.Errorf("failed to register %s: %w", name, context.Canceled)
	}
	r := m.resources[name]
	if r == nil {
		r = newResource()
		m.resources[name] = r
	}
	r.plugin, r.options, r.stopped = plugin, options, time.Time{}
	m.lost.Delete(name)
	m.c.Group.Go("device-plugin", func(ctx context.Context) {
		err := plugin.ListAndWatch(ctx, func(list []*pluginapi.Device) { m.listed(name, plugin, list) })
		m.log("ListAndWatch ended unexpectedly for device plugin resource=%s: %v", name, err)
		plugin.Close()
		m.gone(name, plugin)
	})
	return nil
}

func newResource() *resource {
	return &resource{devices: map[string]*pluginapi.Device{}, healthy: sets.Set[string]{}, unhealthy: sets.Set[string]{}}
}

// isExtendedResource reports whether a name can be that of a plugin's resource
// (IsExtendedResourceName of pkg/apis/core/v1/helper).
func isExtendedResource(name string) bool {
	domain, rest, ok := strings.Cut(name, "/")
	return ok && rest != "" && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix)
}

// listed takes a plugin's list of devices. What another plugin of the name says that is
// there by now counts.
func (m *Manager) listed(name string, from cm.DevicePlugin, list []*pluginapi.Device) {
	r := m.resources[name]
	if r == nil {
		r = newResource()
		r.plugin = from
		m.resources[name] = r
	}
	old := r.devices
	r.devices, r.healthy, r.unhealthy = map[string]*pluginapi.Device{}, sets.Set[string]{}, sets.Set[string]{}
	affected := sets.Set[types.UID]{}
	for _, d := range list {
		if was, ok := old[d.ID]; !ok || was.Health != d.Health {
			if pod, ok := m.pods.holder(name, d.ID); ok {
				affected.Insert(pod)
			}
		}
		r.devices[d.ID] = d
		if d.Health == pluginapi.Healthy {
			r.healthy.Insert(d.ID)
		} else {
			r.unhealthy.Insert(d.ID)
		}
	}
	_ = m.writeCheckpoint() // it has said so
	m.c.Changed(sets.List(affected))
}

// gone notes that a plugin went away. Its devices are of no use until it comes again.
func (m *Manager) gone(name string, plugin cm.DevicePlugin) {
	r := m.resources[name]
	if r == nil || r.plugin != plugin || !r.stopped.IsZero() {
		return
	}
	r.unhealthy = r.unhealthy.Union(r.healthy)
	r.healthy = sets.Set[string]{}
	r.stopped = m.c.Group.Loop().Now()
	// Upstream's says so from the next change of any plugin on.
	_ = m.writeCheckpoint() // it has said so
	m.c.Changed(nil)
	m.c.Group.After(stopGrace, func() { m.c.Changed(nil) })
}

// Capacity is what the node has of plugins' resources, and of that what pods can be
// given. A resource that was lost for good is there with 0, as a node's status keeps it.
func (m *Manager) Capacity() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	lost := false
	for name, r := range m.resources { //drydock:unordered fills a map
		n := v1.ResourceName(name)
		if !r.stopped.IsZero() && m.c.Group.Loop().Since(r.stopped) >= stopGrace {
			delete(m.resources, name)
			m.lost.Insert(name)
			lost = true
			continue
		}
		capacity[n], allocatable[n] = count(len(r.healthy)+len(r.unhealthy)), count(len(r.healthy))
	}
	for name := range m.lost { //drydock:unordered fills a map
		capacity[v1.ResourceName(name)] = count(0)
	}
	if lost {
		_ = m.writeCheckpoint() // it has said so
	}
	return capacity, allocatable
}

func count(n int) quantity.Quantity { return *quantity.NewQuantity(int64(n), quantity.DecimalSI) }
