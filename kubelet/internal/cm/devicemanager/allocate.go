package devicemanager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Allocate implements topologymanager.HintProvider: it gives a container what it asks
// for and hasn't got yet. Init containers come before the others; what one of them had,
// the next may have, unless it runs on beside them.
func (m *Manager) Allocate(ctx context.Context, pod *v1.Pod, c *v1.Container) error {
	if !m.Active() {
		return nil
	}
	if m.reuse.pod != pod.UID {
		m.reuse.pod, m.reuse.devices = pod.UID, map[string]sets.Set[string]{}
	}
	if err := m.allocateContainer(ctx, pod, c); err != nil {
		return err
	}
	for name, a := range m.pods[pod.UID][c.Name] { //drydock:unordered each resource is on its own
		if endsBeforeOthers(pod, c) {
			m.reuse.devices[name] = m.reuse.devices[name].Union(a.ids())
		} else {
			m.reuse.devices[name] = m.reuse.devices[name].Difference(a.ids())
		}
	}
	return nil
}

// backedByClaim reports whether the scheduler has claimed a container's devices of a resource from
// drivers (isDRAExtendedResource).
func backedByClaim(pod *v1.Pod, container, resource string) bool {
	s := pod.Status.ExtendedResourceClaimStatus
	return s != nil && slices.ContainsFunc(s.RequestMappings, func(m v1.ContainerExtendedResourceRequest) bool {
		return m.ContainerName == container && m.ResourceName == resource
	})
}

// endsBeforeOthers reports whether a container is an init container that ends.
func endsBeforeOthers(pod *v1.Pod, c *v1.Container) bool {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(o v1.Container) bool { return o.Name == c.Name })
	return i >= 0 && (pod.Spec.InitContainers[i].RestartPolicy == nil || *pod.Spec.InitContainers[i].RestartPolicy != v1.ContainerRestartPolicyAlways)
}

// allocateContainer has each resource of a container allocated by its plugin
// (allocateContainerResources).
func (m *Manager) allocateContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) error {
	changed := false
	names := m.names(c)
	if len(names) > 0 {
		m.RemoveStale()
	}
	for _, name := range names {
		if backedByClaim(pod, c.Name, name) {
			continue
		}
		q := c.Resources.Limits[v1.ResourceName(name)]
		picked, err := m.pick(ctx, pod.UID, c.Name, name, int(q.Value()))
		if err != nil {
			return err
		}
		if len(picked) == 0 {
			continue
		}
		changed = true
		r := m.resources[name]
		if r == nil {
			m.allocated = m.pods.devices()
			return fmt.Errorf("unknown Device Plugin %s", name)
		}
		resp, err := r.ask(ctx, name, sets.List(picked))
		if err != nil {
			m.allocated = m.pods.devices()
			return err
		}
		if len(resp.ContainerResponses) == 0 {
			return fmt.Errorf("no containers return in allocation response %v", resp)
		}
		m.pods.insert(pod.UID, c.Name, name, &allocation{byNode: r.byNode(picked), response: resp.ContainerResponses[0]})
	}
	if changed {
		return m.writeCheckpoint()
	}
	return nil
}

// connected returns a resource's plugin, if it is there.
func (r *resource) connected(name string) (cm.DevicePlugin, error) {
	if r.plugin == nil || !r.stopped.IsZero() {
		return nil, fmt.Errorf("endpoint %s has been stopped", name)
	}
	return r.plugin, nil
}

// ask has the plugin of a resource allocate devices.
func (r *resource) ask(ctx context.Context, name string, ids []string) (*pluginapi.AllocateResponse, error) {
	plugin, err := r.connected(name)
	if err != nil {
		return nil, err
	}
	return plugin.Allocate(ctx, &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}}})
}

// noNode is in the place of a NUMA node for devices that are near none.
const noNode = -1

// byNode are devices by the NUMA nodes that they are near, each as often as it is.
func (r *resource) byNode(ids sets.Set[string]) map[int64][]string {
	out := map[int64][]string{}
	for _, id := range sets.List(ids) {
		nodes := r.nodesOf(id)
		if len(nodes) == 0 {
			out[noNode] = append(out[noNode], id)
		}
		for _, n := range nodes {
			out[int64(n)] = append(out[int64(n)], id)
		}
	}
	return out
}

// nodesOf are the NUMA nodes that a device is near.
func (r *resource) nodesOf(id string) []int {
	var out []int
	for _, n := range r.devices[id].GetTopology().GetNodes() {
		out = append(out, int(n.ID))
	}
	return out
}

// pick returns the devices that a container is to be given; none: it has them. They
// count as allocated from then on (devicesToAllocate).
func (m *Manager) pick(ctx context.Context, pod types.UID, container, name string, required int) (sets.Set[string], error) {
	p := &picking{m: m, pod: pod, container: container, name: name, required: required, needed: required, picked: sets.Set[string]{}}
	if has := m.pods.container(pod, container, name); has != nil {
		if p.needed -= len(has); p.needed != 0 {
			return nil, fmt.Errorf("pod %q container %q changed request for resource %q from %d to %d", pod, container, name, len(has), required)
		}
	}
	// What ran while another kubelet was at work has what it needs. After a boot nothing
	// does, and plugins may not be back yet.
	if !m.c.SourcesReady() && m.c.Running(pod, container) {
		return nil, nil
	}
	r := m.resources[name]
	switch {
	case r == nil:
		return nil, fmt.Errorf("cannot allocate unregistered device %s", name)
	case len(r.healthy) == 0:
		return nil, fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", name)
	case !r.healthy.IsSuperset(m.pods.container(pod, container, name)):
		return nil, fmt.Errorf("previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", name)
	case p.needed == 0:
		return nil, nil
	}
	p.r = r
	if err := p.fill(ctx); err != nil {
		return nil, err
	}
	return p.picked, nil
}

// picking is the choice of devices for one container.
type picking struct {
	m                *Manager
	pod              types.UID
	container, name  string
	r                *resource
	required, needed int
	picked           sets.Set[string]
}

// from picks of devices until it has enough, which it reports.
func (p *picking) from(devices sets.Set[string]) bool {
	for _, id := range sets.List(devices.Difference(p.picked)) {
		if p.m.allocated[p.name] == nil {
			p.m.allocated[p.name] = sets.Set[string]{}
		}
		p.m.allocated[p.name].Insert(id)
		p.picked.Insert(id)
		if p.needed--; p.needed == 0 {
			return true
		}
	}
	return false
}

// fill picks devices: those of the pod's init containers, then those that are where the
// topology manager wants them, then any; of several the plugin may say which.
func (p *picking) fill(ctx context.Context) error {
	if p.from(p.m.reuse.devices[p.name]) {
		return nil
	}
	available := p.r.healthy.Difference(p.m.allocated[p.name])
	if len(available) < p.needed {
		return fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", p.name, p.needed, len(available))
	}
	aligned, unaligned, anywhere := p.byAffinity(available)
	choice, rest := aligned, []sets.Set[string]{aligned}
	if p.needed >= len(aligned) {
		if p.from(aligned) {
			return nil
		}
		choice, rest = available, []sets.Set[string]{unaligned, anywhere}
	}
	preferred, err := p.preferred(ctx, choice.Union(p.picked))
	if err != nil {
		return err
	}
	if p.from(preferred.Intersection(choice)) || slices.ContainsFunc(rest, p.from) {
		return nil
	}
	return fmt.Errorf("unexpectedly allocated less resources than required. Requested: %d, Got: %d", p.required, p.required-p.needed)
}

// preferred asks the plugin which devices it would choose, if it wants to be asked.
func (p *picking) preferred(ctx context.Context, available sets.Set[string]) (sets.Set[string], error) {
	if !p.r.options.GetGetPreferredAllocationAvailable() {
		return nil, nil
	}
	plugin, err := p.r.connected(p.name)
	var resp *pluginapi.PreferredAllocationResponse
	if err == nil {
		resp, err = plugin.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: sets.List(available), MustIncludeDeviceIDs: sets.List(p.picked), AllocationSize: int32(p.required)}}})
	}
	if err != nil {
		return nil, fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
	}
	if len(resp.GetContainerResponses()) == 0 {
		return nil, nil
	}
	return sets.New(resp.ContainerResponses[0].DeviceIDs...), nil
}

// byAffinity parts devices into those near the NUMA nodes of the topology manager's hint,
// those near others, and those near none (filterByAffinity).
func (p *picking) byAffinity(available sets.Set[string]) (aligned, unaligned, anywhere sets.Set[string]) {
	hint := p.m.c.Affinity(p.container)
	if hint.Affinity == 0 || !p.r.hasTopology() {
		return nil, nil, available
	}
	perNode := map[int]int{}
	for id := range available { //drydock:unordered counts
		for _, n := range p.r.nodesOf(id) {
			perNode[n]++
		}
	}
	nodes := sets.List(sets.KeySet(perNode))
	slices.SortStableFunc(nodes, func(a, b int) int {
		if x, y := hint.Affinity.Has(a), hint.Affinity.Has(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(perNode[a], perNode[b])
	})
	aligned, unaligned, anywhere = sets.Set[string]{}, sets.Set[string]{}, sets.Set[string]{}
	for id := range available { //drydock:unordered fills sets
		near := p.r.nodesOf(id)
		i := slices.IndexFunc(nodes, func(n int) bool { return slices.Contains(near, n) })
		switch {
		case i < 0:
			anywhere.Insert(id)
		case hint.Affinity.Has(nodes[i]):
			aligned.Insert(id)
		default:
			unaligned.Insert(id)
		}
	}
	return aligned, unaligned, anywhere
}

// hasTopology reports whether any of the devices says where it is.
func (r *resource) hasTopology() bool {
	for id := range r.devices { //drydock:unordered looks for any
		if len(r.nodesOf(id)) > 0 {
			return true
		}
	}
	return false
}

// preStartTimeout is how long PreStartContainer may take.
const preStartTimeout = pluginapi.KubeletPreStartContainerRPCTimeoutInSecs * time.Second

// PreStart readies a container's devices for a start, and has them allocated if the
// kubelet has forgotten them (GetDeviceRunContainerOptions).
func (m *Manager) PreStart(ctx context.Context, pod *v1.Pod, c *v1.Container) error {
	if !m.Active() {
		return nil
	}
	again := false
	for _, name := range m.names(c) {
		if q := c.Resources.Limits[v1.ResourceName(name)]; q.IsZero() {
			continue
		}
		if err := m.preStart(ctx, pod.UID, c.Name, name); err != nil {
			return err
		}
		active := slices.ContainsFunc(m.c.ActivePods(), func(p *v1.Pod) bool { return p.UID == pod.UID })
		again = again || active && m.pods.container(pod.UID, c.Name, name) == nil
	}
	if again {
		return m.Allocate(ctx, pod, c)
	}
	return nil
}

func (m *Manager) preStart(ctx context.Context, pod types.UID, container, name string) error {
	r := m.resources[name]
	if r == nil {
		return fmt.Errorf("endpoint not found in cache for a registered resource: %s", name)
	}
	if !r.options.GetPreStartRequired() {
		return nil
	}
	devices := m.pods.container(pod, container, name)
	if devices == nil {
		return fmt.Errorf("no devices found allocated in local cache for pod %s, container %s, resource %s", pod, container, name)
	}
	plugin, err := r.connected(name)
	if err == nil {
		ctx, cancel := loop.WithTimeout(ctx, preStartTimeout)
		defer cancel()
		_, err = plugin.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: sets.List(devices)})
	}
	if err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}
