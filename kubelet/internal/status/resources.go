package status

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// What a container gets at least, so that a reading of it says nothing.
const (
	minMilliCPULimit   = 10
	minMilliCPURequest = 2 // of MinShares
)

// resources are a container's resources as its status shows them: the allocated
// ones, with what the runtime reports of a running one in their place (upstream
// convertContainerStatusResources).
// What the runtime reports wins only while a resize may be under way: else it
// is what the kubelet told it, rounded by the units of cgroups.
func (g *generation) resources(c *v1.Container, k kind, cs *kubecontainer.Status, id string, prev *v1.ContainerStatus) *v1.ResourceRequirements {
	if cs.State != kubecontainer.StateRunning || cs.Resources == nil && (prev == nil || !g.Resizing) {
		return &c.Resources
	}
	if !g.Resizing && g.Pod.Spec.Resources == nil {
		return &c.Resources // what it was given is what the runtime reports
	}
	var before v1.ResourceRequirements
	if prev != nil && prev.Resources != nil && prev.State.Running != nil && prev.ContainerID == id {
		before = *prev.Resources
	}
	r := cs.Resources
	if r == nil {
		r = &kubecontainer.Resources{}
	}
	out := v1.ResourceRequirements{Limits: c.Resources.Limits, Requests: c.Resources.Requests, Claims: c.Resources.Claims}
	l := overlay{list: out.Limits, before: before.Limits}
	l.set(v1.ResourceCPU, r.MilliCPULimit, minMilliCPULimit)
	l.set(v1.ResourceMemory, r.MemoryLimit, -1)
	out.Limits = l.list
	l = overlay{list: out.Requests, before: before.Requests}
	l.set(v1.ResourceCPU, r.MilliCPURequest, minMilliCPURequest)
	if g.ActuatedMemoryRequest != nil && k != ephemeral {
		l.set(v1.ResourceMemory, g.ActuatedMemoryRequest(c.Name), -1)
	} else {
		l.set(v1.ResourceMemory, 0, -1)
	}
	out.Requests = l.list
	if prev != nil && prev.Resources != nil && resourcesEqual(prev.Resources, &out) {
		return prev.Resources
	}
	if resourcesEqual(&c.Resources, &out) {
		return &c.Resources
	}
	return &out
}

// overlay is a list of quantities of which some are replaced, in a copy.
// A list of the spec is shared, so it is copied before the first replacement.
type overlay struct {
	list, before v1.ResourceList
	copied       bool
}

// set replaces a quantity by a reading (cpu in millicores; 0: none), or without
// one by what the status said before. A list that there is not gets nothing; if
// neither reading nor quantity is above least, the quantity stays.
// cgroups can't express less than least, so a reading at the bottom stands for
// whatever is asked for below.
func (o *overlay) set(name v1.ResourceName, reading, least int64) {
	if o.list == nil {
		return
	}
	have := o.list[name]
	var q resource.Quantity
	switch {
	case reading == 0:
		was, ok := o.before[name]
		if !ok {
			return
		}
		q = was
	case name == v1.ResourceCPU:
		if reading <= least && have.MilliValue() <= least || have.MilliValue() == reading {
			return
		}
		q = *resource.NewMilliQuantity(reading, resource.DecimalSI)
	case have.Value() == reading:
		return
	default:
		q = *resource.NewQuantity(reading, resource.BinarySI)
	}
	if !o.copied {
		list := make(v1.ResourceList, len(o.list)+1)
		maps.Copy(list, o.list)
		o.list, o.copied = list, true
	}
	o.list[name] = q
}

// PodTotals are a pod's resources in sum, as its status shows them.
type PodTotals struct {
	// Requests are status.allocatedResources.
	Requests v1.ResourceList
	// Resources are status.resources, also of a pod that sets no pod-level ones.
	// Running are those of one that runs: then cgroups are read, which know cpu
	// and memory only.
	Resources, Running *v1.ResourceRequirements

	of *v1.Container
	in *v1.ResourceRequirements
}

// TotalsMemo remembers the totals of the last few specs, which replicas share.
// Sums over containers are the dearest part of a status, and a node runs few
// different specs.
type TotalsMemo struct {
	last [4]*PodTotals
	n    int
}

// Of returns the totals of a pod's spec. They are shared.
func (m *TotalsMemo) Of(pod *v1.Pod) *PodTotals {
	if len(pod.Spec.Containers) == 0 {
		return &PodTotals{}
	}
	first := &pod.Spec.Containers[0]
	for _, t := range m.last {
		if t != nil && t.of == first && t.in == pod.Spec.Resources {
			return t
		}
	}
	t := &PodTotals{of: first, in: pod.Spec.Resources}
	o := resourcehelper.PodResourcesOptions{}
	if t.Requests = resourcehelper.PodRequests(pod, o); len(t.Requests) == 0 {
		t.Requests = nil
	}
	t.Resources = &v1.ResourceRequirements{Requests: t.Requests}
	if l := resourcehelper.PodLimits(pod, o); len(l) > 0 {
		t.Resources.Limits = l
	}
	t.Running = t.Resources
	if pod.Spec.Resources == nil {
		if r, l := cpuAndMemory(t.Resources.Requests), cpuAndMemory(t.Resources.Limits); len(r) < len(t.Resources.Requests) || len(l) < len(t.Resources.Limits) {
			t.Running = &v1.ResourceRequirements{Requests: r, Limits: l}
		}
	}
	m.last[m.n%len(m.last)] = t
	m.n++
	return t
}

// cpuAndMemory returns what a list has of the two, nil for nothing.
func cpuAndMemory(list v1.ResourceList) v1.ResourceList {
	var out v1.ResourceList
	for _, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if q, ok := list[name]; ok {
			if out == nil {
				out = make(v1.ResourceList, 2)
			}
			out[name] = q
		}
	}
	return out
}

// podResources sets the pod-level resources of a status. Those of a running pod
// are those of its cgroup.
func (g *generation) podResources(s *v1.PodStatus) {
	if g.Env.Totals == nil {
		return
	}
	t := g.Env.Totals.Of(g.Pod)
	s.AllocatedResources, s.Resources = t.Requests, t.Resources
	if resourceListEqual(t.Requests, g.old.AllocatedResources) {
		s.AllocatedResources = g.old.AllocatedResources
	}
	if g.Pod.Status.Phase != v1.PodRunning {
		return
	}
	s.Resources = t.Running
	if t.Running == nil || g.PodCgroup == nil {
		return
	}
	milliRequest, milliLimit, memory := g.PodCgroup()
	out := *t.Running
	l := overlay{list: out.Limits}
	l.set(v1.ResourceCPU, milliLimit, minMilliCPULimit)
	l.set(v1.ResourceMemory, memory, -1)
	out.Limits = l.list
	l = overlay{list: out.Requests}
	l.set(v1.ResourceCPU, milliRequest, minMilliCPURequest)
	out.Requests = l.list
	if !resourcesEqual(&out, t.Running) {
		s.Resources = &out
	}
}
