package devicemanager

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
)

// GetTopologyHints implements topologymanager.HintProvider.
func (m *Manager) GetTopologyHints(pod *v1.Pod, c *v1.Container) []topologymanager.Hints {
	if !m.Active() {
		return nil
	}
	m.RemoveStale()
	var out []topologymanager.Hints
	for _, name := range m.names(c) {
		q := c.Resources.Limits[v1.ResourceName(name)]
		reusable := sets.Set[string](nil)
		if m.reuse.pod == pod.UID {
			reusable = m.reuse.devices[name]
		}
		out = append(out, m.hints(name, int(q.Value()), m.pods.container(pod.UID, c.Name, name), reusable))
	}
	return out
}

// GetPodTopologyHints implements topologymanager.HintProvider. Of init containers that
// end, the one that asks for most counts.
func (m *Manager) GetPodTopologyHints(pod *v1.Pod) []topologymanager.Hints {
	if !m.Active() {
		return nil
	}
	m.RemoveStale()
	want := m.podRequests(pod)
	var out []topologymanager.Hints
	for _, name := range sets.List(sets.KeySet(want)) {
		out = append(out, m.hints(name, want[name], m.pods.pod(pod.UID, name), nil))
	}
	return out
}

// podRequests are what a pod needs at once of each resource (getPodDeviceRequest).
func (m *Manager) podRequests(pod *v1.Pod) map[string]int {
	beside, most, out := map[string]int{}, map[string]int{}, map[string]int{}
	asked := func(c *v1.Container, fn func(name string, n int)) {
		for _, name := range m.names(c) {
			q := c.Resources.Limits[v1.ResourceName(name)]
			fn(name, int(q.Value()))
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		asked(c, func(name string, n int) {
			if !endsBeforeOthers(pod, c) {
				beside[name] += n
				n = 0
			}
			most[name] = max(most[name], beside[name]+n)
		})
	}
	for i := range pod.Spec.Containers {
		asked(&pod.Spec.Containers[i], func(name string, n int) { beside[name] += n })
	}
	for _, from := range [...]map[string]int{beside, most} {
		for name, n := range from { //drydock:unordered takes the most
			out[name] = max(out[name], n)
		}
	}
	return out
}

// hints are where so many devices of a resource could come from, for who has some of
// them already.
func (m *Manager) hints(name string, n int, has, reusable sets.Set[string]) topologymanager.Hints {
	out := topologymanager.Hints{Resource: name}
	r := m.resources[name]
	if r == nil || !r.hasTopology() {
		return out // anywhere
	}
	available := r.healthy.Difference(m.allocated[name])
	switch {
	case len(has) > 0:
		if len(has) != n {
			out.List = []topologymanager.Hint{}
			return out
		}
		available, reusable = has, nil
	case len(available.Union(reusable)) < n:
		out.List = []topologymanager.Hint{}
		return out
	}
	out.List = r.hints(m.c.NUMANodes, available, reusable, n)
	return out
}

// hints are the groups of NUMA nodes that have enough, which must have all that are to
// be used again; preferred are those of as few nodes as any could be that are not in use
// (generateDeviceTopologyHints).
func (r *resource) hints(nodes []int, available, reusable sets.Set[string], n int) []topologymanager.Hint {
	near := map[string]topologymanager.Mask{}
	var all topologymanager.Mask
	for id := range r.devices { //drydock:unordered fills a map
		near[id] = topologymanager.NewMask(r.nodesOf(id)...)
		all |= near[id]
	}
	known := all & topologymanager.NewMask(nodes...)
	if known != 0 {
		nodes = known.Bits()
	}
	fewest, out := len(nodes), []topologymanager.Hint{}
	topologymanager.Masks(nodes, func(mask topologymanager.Mask) {
		within := func(ids sets.Set[string]) (n int) {
			for id := range ids { //drydock:unordered counts
				if near[id]&mask != 0 {
					n++
				}
			}
			return n
		}
		if within(sets.KeySet(r.devices)) >= n {
			fewest = min(fewest, mask.Count())
		}
		again := 0
		for id := range reusable { //drydock:unordered counts
			switch {
			case near[id] == 0:
			case near[id]&mask == 0:
				return
			default:
				again++
			}
		}
		if again+within(available) >= n {
			out = append(out, topologymanager.Hint{Affinity: mask})
		}
	})
	for i := range out {
		out[i].Preferred = out[i].Affinity.Count() == fewest
	}
	return out
}
