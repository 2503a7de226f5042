package running

import (
	"cmp"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/drydock-sim/drydock/scenarios/expect"
)

// PodResources is for use between runs, when no node's loop is running. Pods are in the order of
// their names. The kubelet is only looked at: what the API has it forget first is not forgotten.
func (s *state) PodResources(name string) []*expect.PodResources {
	n := s.cluster.Node(name)
	if n == nil || n.Kubelet() == nil || n.Kubelet().PodResources() == nil {
		return nil
	}
	var out []*expect.PodResources
	for _, p := range n.Kubelet().PodResources().Look() {
		x := &expect.PodResources{Namespace: p.Namespace, Name: p.Name}
		for _, c := range p.Containers {
			x.Containers = append(x.Containers, exclusive(c))
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *expect.PodResources) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func exclusive(c *podresources.ContainerResources) expect.ContainerExclusive {
	x := expect.ContainerExclusive{Name: c.Name, CPUIDs: c.CpuIds}
	for _, d := range c.Devices {
		for _, id := range d.DeviceIds {
			x.Devices = append(x.Devices, expect.ContainerDevice{Resource: d.ResourceName, ID: id, NUMANodes: nodesOf(d.Topology)})
		}
	}
	for _, m := range c.Memory {
		x.Memory = append(x.Memory, expect.ContainerMemory{Type: m.MemoryType, Size: int64(m.Size), NUMANodes: nodesOf(m.Topology)})
	}
	for _, r := range c.DynamicResources {
		for _, d := range r.ClaimResources {
			has := expect.ClaimDevice{ClaimNamespace: r.ClaimNamespace, ClaimName: r.ClaimName, Driver: d.DriverName, Pool: d.PoolName, Device: d.DeviceName}
			for _, cdi := range d.CdiDevices {
				has.CDIDevices = append(has.CDIDevices, cdi.Name)
			}
			x.ClaimDevices = append(x.ClaimDevices, has)
		}
	}
	return x
}

func nodesOf(t *podresources.TopologyInfo) []int64 {
	var out []int64
	for _, n := range t.GetNodes() {
		out = append(out, n.ID)
	}
	return out
}
