package kuberuntime

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// Allocation is what the manager asks of, and tells, the allocation manager.
type Allocation interface {
	// State has the pods whose resources are not those of their spec.
	State() *state.State
	// Actuated says what a container was given; ActuatedPod what the pod was.
	Actuated(pod *v1.Pod, container string, r v1.ResourceRequirements)
	ActuatedPod(pod *v1.Pod, r *v1.ResourceRequirements)
}

// resizer are the calls of the CRI's runtime service that resizes need.
type resizer interface {
	UpdateContainerResources(ctx context.Context, containerID string, resources *runtimeapi.ContainerResources) error
	UpdatePodSandboxResources(ctx context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error)
	ContainerStats(ctx context.Context, containerID string) (*runtimeapi.ContainerStats, error)
}

// entry is what is kept of a pod's resources; nil if they are its spec's.
func (m *Manager) entry(pod *v1.Pod) *state.Entry {
	if m.o.Allocation == nil {
		return nil
	}
	return m.o.Allocation.State().Get(pod.UID)
}

// actuated says that a container was started with the resources of its spec.
func (m *Manager) actuated(pod *v1.Pod, c *v1.Container) {
	if m.entry(pod) != nil {
		m.o.Allocation.Actuated(pod, c.Name, c.Resources)
	}
}

// resizing is one resize in place.
// desired and current are the pod's cgroup as it is to be and as it is; current
// moves with each step that succeeds, so that a resize that fails half-way
// knows where it stands.
type resizing struct {
	m         *Manager
	rt        resizer
	pod       *v1.Pod
	status    *kubecontainer.PodStatus
	sandboxID string
	entry     *state.Entry
	do        *actions.Resizes
	desired   cm.PodCgroup
	current   cm.PodCgroup
}

// resize gives running containers and the pod's cgroup their new resources;
// the result says what came of it (upstream doPodResizeAction).
// However it ends, the pod is inspected again: the runtime reports the new
// values, and no event says so.
func (s *podSync) resize(ctx context.Context) {
	m := s.m
	r := &kubecontainer.SyncResult{Action: kubecontainer.ResizePodInPlace, Target: kubecontainer.PodDesc(s.pod)}
	s.result.Add(r)
	if m.o.Reinspect != nil {
		defer m.o.Reinspect(s.pod.UID)
	}
	rt, ok := m.o.RuntimeService.(resizer)
	e := m.entry(s.pod)
	if !ok || e == nil {
		r.Fail(kubecontainer.ErrResizePodInPlace, "the runtime cannot change resources")
		return
	}
	z := &resizing{m: m, rt: rt, pod: s.pod, status: s.status, sandboxID: s.sandboxID, entry: e, do: s.actions.Resizes}
	if err := z.run(ctx); err != nil {
		r.Fail(kubecontainer.ErrResizePodInPlace, err.Error())
	}
}

// run changes memory, then CPU. Memory can fail, by being below what is used,
// so it comes while nothing has changed yet.
func (z *resizing) run(ctx context.Context) error {
	z.desired = cm.ForPod(z.pod)
	z.current = z.cgroup()
	if err := z.checkMemory(ctx); err != nil {
		return err
	}
	if z.touches(z.do.Memory) {
		if err := z.memory(ctx); err != nil {
			return err
		}
	}
	if z.touches(z.do.CPU) {
		if err := z.cpu(ctx); err != nil {
			return err
		}
	}
	if z.do.Pod {
		z.m.o.Allocation.ActuatedPod(z.pod, z.pod.Spec.Resources)
	}
	return nil
}

// touches reports whether the pod's cgroup may have to change for one resource.
// A container that restarts changes it, too, with no update of its own.
func (z *resizing) touches(updates []actions.Update) bool {
	return len(updates) > 0 || z.do.Restarts || z.do.Pod
}

// cgroup is the pod's cgroup as it is: that of the resources last actuated.
func (z *resizing) cgroup() cm.PodCgroup {
	if z.m.o.Cgroups != nil && z.m.o.Cgroups.Known(z.pod.UID) {
		return z.m.o.Cgroups.Get(z.pod)
	}
	was := state.Entry{Allocated: z.entry.Actuated}
	pod, _ := was.Substitute(z.pod)
	return cm.ForPod(pod)
}

// memory changes the memory limits: of the pod first if it grows, of the
// containers, of the pod last if it shrinks.
// So the pod's limit is never below the sum of its containers'.
func (z *resizing) memory(ctx context.Context) error {
	set := func() error {
		return z.setPod(ctx, v1.ResourceMemory, cm.PodCgroup{MemoryLimit: z.desired.MemoryLimit})
	}
	grows := z.desired.MemoryLimit > z.current.MemoryLimit && z.current.MemoryLimit != 0
	shrinks := z.desired.MemoryLimit != 0 && (z.desired.MemoryLimit < z.current.MemoryLimit || z.current.MemoryLimit == 0)
	if grows {
		if err := set(); err != nil {
			return err
		}
	}
	if err := z.updateContainers(ctx, v1.ResourceMemory, z.do.Memory); err != nil {
		return err
	}
	if shrinks {
		return set()
	}
	return nil
}

// cpu changes quotas and shares in the same way.
// Requests are shares, which nothing enforces, yet they follow the same order.
func (z *resizing) cpu(ctx context.Context) error {
	limit := func() error {
		return z.setPod(ctx, v1.ResourceCPU, cm.PodCgroup{MilliCPULimit: z.desired.MilliCPULimit})
	}
	request := func() error { return z.setPod(ctx, v1.ResourceCPU, cm.PodCgroup{MilliCPU: z.desired.MilliCPU}) }
	d, c := &z.desired, z.current
	steps := [...]struct {
		when bool
		do   func() error
	}{
		{d.MilliCPULimit > c.MilliCPULimit && c.MilliCPULimit != 0, limit},
		{d.MilliCPU > c.MilliCPU, request},
		{true, func() error { return z.updateContainers(ctx, v1.ResourceCPU, z.do.CPU) }},
		{d.MilliCPU < c.MilliCPU && d.MilliCPU != 0, request},
		{d.MilliCPULimit != 0 && (d.MilliCPULimit < c.MilliCPULimit || c.MilliCPULimit == 0), limit},
	}
	for _, s := range steps {
		if !s.when {
			continue
		}
		if err := s.do(); err != nil {
			return err
		}
	}
	return nil
}

// setPod lays what is not 0 in change over the pod's cgroup: it tells the
// runtime, which may take note, and sets the cgroup.
// If the cgroup can't be set the runtime is told of the old values again.
func (z *resizing) setPod(ctx context.Context, name v1.ResourceName, change cm.PodCgroup) error {
	next := z.current
	if change.MilliCPU != 0 {
		next.MilliCPU = change.MilliCPU
	}
	if change.MilliCPULimit != 0 {
		next.MilliCPULimit = change.MilliCPULimit
	}
	if change.MemoryLimit != 0 {
		next.MemoryLimit = change.MemoryLimit
	}
	if err := z.tellSandbox(ctx, next); err != nil {
		return fmt.Errorf("failed to notify runtime for UpdatePodSandboxResources (resource=%s); resize rejected: %w", name, err)
	}
	if z.m.o.Cgroups != nil {
		if err := z.m.o.Cgroups.Set(ctx, z.pod, next); err != nil {
			_ = z.tellSandbox(ctx, z.current)
			return fmt.Errorf("failed to set pod cgroup config for resource=%s: %w", name, err)
		}
	}
	z.current = next
	return nil
}

// tellSandbox has the runtime note the pod's resources; one that cannot is
// none of ours.
// A runtime that doesn't know the call is no reason to refuse a resize.
func (z *resizing) tellSandbox(ctx context.Context, g cm.PodCgroup) error {
	n, over := z.m.resources, z.pod.Spec.Overhead
	req := &runtimeapi.UpdatePodSandboxResourcesRequest{
		PodSandboxId: z.sandboxID,
		Overhead:     n.Of(over, over),
		Resources: n.Amounts(max(g.MilliCPU-over.Cpu().MilliValue(), 0), max(g.MilliCPULimit-over.Cpu().MilliValue(), 0),
			max(g.MemoryLimit-over.Memory().Value(), 0)),
	}
	_, err := within(ctx, z.m.rt, metrics.UpdatePodSandbox, z.m.rt.timeout, func(ctx context.Context) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		return z.rt.UpdatePodSandboxResources(ctx, req)
	})
	switch code := grpcstatus.Code(err); {
	case code == codes.Unimplemented, code == codes.Unknown && strings.Contains(strings.ToLower(err.Error()), "not implemented"):
		return nil
	}
	return err
}

// updateContainers gives containers the new values of one resource; those of
// the other stay as they were actuated.
// Each container that was updated is noted at once: a failure of the next must
// not have it updated twice.
func (z *resizing) updateContainers(ctx context.Context, name v1.ResourceName, list []actions.Update) error {
	for i := range list {
		u := &list[i]
		had, ok := z.entry.Actuated.Containers[u.Container.Name]
		if !ok {
			had = u.Container.Resources
		}
		c := *u.Container
		c.Resources = mixed(&u.Container.Resources, &had, name)
		linux := z.m.resources.Container(z.pod, &c)
		if a := z.m.o.Affinity; a != nil && a.NoQuota(z.pod, c.Name) {
			linux.CpuQuota = noQuota(linux)
		}
		err := z.m.rt.do(ctx, metrics.UpdateContainer, z.m.rt.timeout, func(ctx context.Context) error {
			return z.rt.UpdateContainerResources(ctx, u.ID, &runtimeapi.ContainerResources{Linux: linux})
		})
		if err != nil {
			return fmt.Errorf("updating %s of container %s: %w", name, u.Container.Name, err)
		}
		z.m.o.Allocation.Actuated(z.pod, u.Container.Name, c.Resources)
		z.entry.Actuate(u.Container.Name, c.Resources) // the entry may have been dropped
	}
	return nil
}

// mixed is had with another value of one resource; what has no limit any more
// keeps the one it had.
// So a change of CPU doesn't carry a change of memory with it that has not been
// checked yet.
func mixed(want, had *v1.ResourceRequirements, name v1.ResourceName) v1.ResourceRequirements {
	take := func(have, from v1.ResourceList) v1.ResourceList {
		q, ok := from[name]
		if !ok {
			return have
		}
		out := make(v1.ResourceList, len(have)+1)
		maps.Copy(out, have)
		out[name] = q
		return out
	}
	return v1.ResourceRequirements{Requests: take(had.Requests, want.Requests), Limits: take(had.Limits, want.Limits), Claims: want.Claims}
}

// checkMemory refuses memory limits below what is used now: the kernel would
// kill what no longer fits, so such a resize waits until less is used.
func (z *resizing) checkMemory(ctx context.Context) error {
	lowers := func(limit, had int64) bool { return limit != 0 && (had == 0 || limit < had) }
	podLowered := z.touches(z.do.Memory) && lowers(z.desired.MemoryLimit, z.current.MemoryLimit)
	lowered := podLowered
	for i := range z.do.Memory {
		lowered = lowered || lowers(z.do.Memory[i].Desired.MemoryLimit, z.do.Memory[i].Actuated.MemoryLimit)
	}
	if !lowered {
		return nil
	}
	used, total, err := z.memoryUsage(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if podLowered && total >= z.desired.MemoryLimit {
		errs = append(errs, fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", z.desired.MemoryLimit, total))
	}
	for i := range z.do.Memory {
		u := &z.do.Memory[i]
		if !lowers(u.Desired.MemoryLimit, u.Actuated.MemoryLimit) {
			continue
		}
		usage, ok := used[u.ID]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("missing container %q memory usage", u.Container.Name))
		case usage >= u.Desired.MemoryLimit: // the pod's usage is what upstream tells
			errs = append(errs, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", u.Container.Name, u.Desired.MemoryLimit, total))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("cannot decrease memory limits: %w", utilerrors.NewAggregate(errs))
	}
	return nil
}

// memoryUsage reads what the pod's running containers use, by their IDs, and
// the sum, in bytes.
func (z *resizing) memoryUsage(ctx context.Context) (used map[string]int64, total int64, err error) {
	used = map[string]int64{}
	for _, s := range z.status.ContainerStatuses {
		if s.State != kubecontainer.StateRunning {
			continue
		}
		stats, err := within(ctx, z.m.rt, metrics.ContainerStats, z.m.rt.timeout, func(ctx context.Context) (*runtimeapi.ContainerStats, error) {
			return z.rt.ContainerStats(ctx, s.ID)
		})
		if err != nil {
			return nil, 0, fmt.Errorf("unable to read memory usage for pod %q", kubecontainer.PodDesc(z.pod))
		}
		if b := stats.GetMemory().GetUsageBytes(); b != nil {
			used[s.ID] = int64(b.Value)
			total += int64(b.Value)
		}
	}
	return used, total, nil
}

// reportsResources reports whether what the runtime reports of a pod's resources
// may differ from its spec.
func (m *Manager) reportsResources(uid types.UID) bool {
	return m.o.Allocation != nil && m.o.Allocation.State().Get(uid) != nil
}
