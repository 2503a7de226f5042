package devicemanager

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// allocation is what a container was given of one resource.
type allocation struct {
	// byNode are the devices by the NUMA nodes that they are near; see noNode.
	byNode   map[int64][]string
	response *pluginapi.ContainerAllocateResponse
}

// ids are the devices.
func (a *allocation) ids() sets.Set[string] {
	out := sets.Set[string]{}
	for _, list := range a.byNode { //drydock:unordered fills a set
		out.Insert(list...)
	}
	return out
}

// podDevices are what containers were given, by pod, container and resource.
type podDevices map[types.UID]map[string]map[string]*allocation

func (d podDevices) insert(pod types.UID, container, name string, a *allocation) {
	if d[pod] == nil {
		d[pod] = map[string]map[string]*allocation{}
	}
	if d[pod][container] == nil {
		d[pod][container] = map[string]*allocation{}
	}
	d[pod][container][name] = a
}

// container are a container's devices of a resource; nil: it was given none.
func (d podDevices) container(pod types.UID, container, name string) sets.Set[string] {
	if a := d[pod][container][name]; a != nil {
		return a.ids()
	}
	return nil
}

// pod are those of all containers of a pod.
func (d podDevices) pod(pod types.UID, name string) sets.Set[string] {
	out := sets.Set[string]{}
	for container := range d[pod] { //drydock:unordered fills a set
		out = out.Union(d.container(pod, container, name))
	}
	return out
}

// devices are those of all pods, by resource.
func (d podDevices) devices() map[string]sets.Set[string] {
	out := map[string]sets.Set[string]{}
	d.each(func(_ types.UID, _, name string, a *allocation) {
		out[name] = out[name].Union(a.ids())
	})
	return out
}

// holder is the pod that has a device.
func (d podDevices) holder(name, device string) (pod types.UID, ok bool) {
	d.each(func(uid types.UID, _, of string, a *allocation) {
		if !ok && of == name && a.ids().Has(device) {
			pod, ok = uid, true
		}
	})
	return pod, ok
}

// each calls fn for all allocations, in the order of pods, containers and resources.
func (d podDevices) each(fn func(pod types.UID, container, name string, a *allocation)) {
	for _, pod := range sets.List(sets.KeySet(d)) {
		for _, container := range sets.List(sets.KeySet(d[pod])) {
			for _, name := range sets.List(sets.KeySet(d[pod][container])) {
				fn(pod, container, name, d[pod][container][name])
			}
		}
	}
}

// RunOptions are what a container gets at its devices by.
type RunOptions struct {
	Envs        []*runtimeapi.KeyValue
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
}

// RunOptions returns what plugins answered about a container's devices
// (deviceRunContainerOptions); nil: it has none. Where two say something about the same
// name, the first resource counts.
func (m *Manager) RunOptions(pod types.UID, container string) *RunOptions {
	if m == nil || m.pods[pod][container] == nil {
		return nil
	}
	resources := m.pods[pod][container]
	o := &RunOptions{Annotations: map[string]string{}}
	for _, name := range sets.List(sets.KeySet(resources)) {
		o.add(resources[name].response)
	}
	return o
}

func (o *RunOptions) add(r *pluginapi.ContainerAllocateResponse) {
	for _, k := range sets.List(sets.KeySet(r.Envs)) {
		if !slices.ContainsFunc(o.Envs, func(have *runtimeapi.KeyValue) bool { return have.Key == k }) {
			o.Envs = append(o.Envs, &runtimeapi.KeyValue{Key: k, Value: []byte(r.Envs[k])})
		}
	}
	for k, v := range r.Annotations { //drydock:unordered fills a map
		if _, ok := o.Annotations[k]; !ok {
			o.Annotations[k] = v
		}
	}
	for _, d := range r.Devices {
		if !slices.ContainsFunc(o.Devices, func(have *runtimeapi.Device) bool { return have.ContainerPath == d.ContainerPath }) {
			o.Devices = append(o.Devices, &runtimeapi.Device{ContainerPath: d.ContainerPath, HostPath: d.HostPath, Permissions: d.Permissions})
		}
	}
	for _, d := range r.Mounts {
		if !slices.ContainsFunc(o.Mounts, func(have *runtimeapi.Mount) bool { return have.ContainerPath == d.ContainerPath }) {
			o.Mounts = append(o.Mounts, &runtimeapi.Mount{ContainerPath: d.ContainerPath, HostPath: d.HostPath, Readonly: d.ReadOnly})
		}
	}
	for _, d := range r.CdiDevices {
		if !slices.ContainsFunc(o.CDIDevices, func(have *runtimeapi.CDIDevice) bool { return have.Name == d.Name }) {
			o.CDIDevices = append(o.CDIDevices, &runtimeapi.CDIDevice{Name: d.Name})
		}
	}
}

// Status is how a container's devices are, by resource (UpdateAllocatedResourcesStatus);
// nil: it has none. Of a device that its plugin no longer lists nothing bad is known.
func (m *Manager) Status(pod types.UID, container string) []v1.ResourceStatus {
	var out []v1.ResourceStatus
	resources := m.pods[pod][container]
	for _, name := range sets.List(sets.KeySet(resources)) {
		s := v1.ResourceStatus{Name: v1.ResourceName(name)}
		for _, id := range sets.List(resources[name].ids()) {
			health := v1.ResourceHealthStatusHealthy
			if r := m.resources[name]; r != nil && r.devices[id] != nil && r.devices[id].Health != pluginapi.Healthy {
				health = v1.ResourceHealthStatusUnhealthy
			}
			s.Resources = append(s.Resources, v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: health})
		}
		slices.SortFunc(s.Resources, func(a, b v1.ResourceHealth) int { return strings.Compare(string(a.ResourceID), string(b.ResourceID)) })
		out = append(out, s)
	}
	return out
}

// Devices are a container's, each by itself, with the NUMA nodes that it is near.
func (m *Manager) Devices(pod types.UID, container string) []*podresources.ContainerDevices {
	if m == nil {
		return nil
	}
	var out []*podresources.ContainerDevices
	resources := m.pods[pod][container]
	for _, name := range sets.List(sets.KeySet(resources)) {
		a := resources[name]
		for _, id := range sets.List(a.ids()) {
			d := &podresources.ContainerDevices{ResourceName: name, DeviceIds: []string{id}}
			for _, node := range sets.List(sets.KeySet(a.byNode)) {
				if node != noNode && slices.Contains(a.byNode[node], id) {
					d.Topology = near(d.Topology, node)
				}
			}
			out = append(out, d)
		}
	}
	return out
}

// Healthy are all devices that could be given out, or are.
func (m *Manager) Healthy() []*podresources.ContainerDevices {
	if m == nil {
		return nil
	}
	var out []*podresources.ContainerDevices
	for _, name := range sets.List(sets.KeySet(m.resources)) {
		r := m.resources[name]
		for _, id := range sets.List(r.healthy) {
			d := &podresources.ContainerDevices{ResourceName: name, DeviceIds: []string{id}}
			for _, node := range r.nodesOf(id) {
				d.Topology = near(d.Topology, int64(node))
			}
			out = append(out, d)
		}
	}
	return out
}

// near adds a NUMA node.
func near(t *podresources.TopologyInfo, node int64) *podresources.TopologyInfo {
	if t == nil {
		t = &podresources.TopologyInfo{}
	}
	t.Nodes = append(t.Nodes, &podresources.NUMANode{ID: node})
	return t
}
