package kuberuntime

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
)

// GCPolicy says which dead containers stay. A negative number means no bound.
type GCPolicy struct {
	// MinAge is how old a container must be to be removed.
	MinAge time.Duration
	// MaxPerPodContainer is how many dead ones each container keeps.
	MaxPerPodContainer int
	// MaxContainers is how many dead ones the node keeps.
	MaxContainers int
}

// DefaultGCPolicy is the kubelet's unless told otherwise.
func DefaultGCPolicy() GCPolicy { return GCPolicy{MaxPerPodContainer: 1, MaxContainers: -1} }

// GarbageCollect removes dead containers beyond the policy, sandboxes that
// nothing needs, and the log directories of pods that are gone. Removals that
// fail are logged only; the error is that of listings. all, as eviction asks
// for it, removes what is left of every pod that is terminated (upstream
// kuberuntime_gc.go).
// Containers go before sandboxes, since a sandbox with a container stays.
func (m *Manager) GarbageCollect(ctx context.Context, policy GCPolicy, allSourcesReady, all bool) error {
	gc := &collector{m: m, policy: policy, allSourcesReady: allSourcesReady, all: all}
	return utilerrors.NewAggregate([]error{gc.containers(ctx), gc.sandboxes(ctx), gc.logs(ctx)})
}

// collector is one garbage collection.
type collector struct {
	m               *Manager
	policy          GCPolicy
	allSourcesReady bool
	all             bool
}

// gone reports whether nothing of the pod has to stay.
// Eviction doesn't wait for the pod's deletion: a terminated pod's remains take
// room, too.
func (gc *collector) gone(id types.UID) bool {
	states := gc.m.o.PodStates
	if states == nil {
		return false
	}
	return states.ShouldPodContentBeRemoved(id) || gc.all && states.ShouldPodRuntimeBeRemoved(id)
}

// deadContainer is one that does not run.
type deadContainer struct {
	id, name  string
	pod       types.UID
	createdAt int64 // ns since the Unix epoch
	unknown   bool  // the runtime lost track of it
}

// deadGroup are the dead of one container of one pod, newest first.
type deadGroup struct {
	uid  types.UID
	name string
	dead []deadContainer
}

// containers removes dead containers: all of pods that are gone, then those
// beyond each container's number, then those beyond the node's.
func (gc *collector) containers(ctx context.Context) error {
	dead, err := gc.dead(ctx)
	if err != nil {
		return err
	}
	groups := group(dead)
	if gc.allSourcesReady {
		kept := groups[:0]
		for _, g := range groups {
			if gc.gone(g.uid) {
				gc.keep(ctx, &g, 0)
			} else {
				kept = append(kept, g)
			}
		}
		groups = kept
	}
	if gc.policy.MaxPerPodContainer >= 0 {
		for i := range groups {
			gc.keep(ctx, &groups[i], gc.policy.MaxPerPodContainer)
		}
	}
	if gc.policy.MaxContainers >= 0 && total(groups) > gc.policy.MaxContainers {
		gc.bound(ctx, groups)
	}
	return nil
}

// dead lists the containers that do not run and are old enough.
// A young container is left alone: it may be about to start.
func (gc *collector) dead(ctx context.Context) (dead []deadContainer, err error) {
	newest := gc.m.o.Loop.Now().Add(-gc.policy.MinAge).UnixNano()
	pods, told, err := gc.m.listContainerChanges(ctx)
	if err != nil {
		return nil, err
	}
	if told {
		for _, pod := range pods {
			for _, c := range pod.Containers {
				if c.State != kubecontainer.StateRunning && c.CreatedAt <= newest {
					dead = append(dead, deadContainer{c.ID, c.Name, pod.ID, c.CreatedAt, c.State == kubecontainer.StateUnknown})
				}
			}
		}
		return dead, nil
	}
	listed, err := gc.m.rt.ListContainers(ctx, nil)
	for _, c := range listed {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING && c.CreatedAt <= newest {
			unknown := c.State == runtimeapi.ContainerState_CONTAINER_UNKNOWN
			dead = append(dead, deadContainer{c.Id, c.GetMetadata().GetName(), uid(c.Labels[labelPodUID]), c.CreatedAt, unknown})
		}
	}
	return dead, err
}

// group sorts what can be removed by pod and container.
// The groups share one list's memory.
func group(dead []deadContainer) []deadGroup {
	slices.SortFunc(dead, func(a, b deadContainer) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.name, b.name), cmp.Compare(b.createdAt, a.createdAt), cmp.Compare(a.id, b.id))
	})
	var groups []deadGroup
	for i, c := range dead {
		if n := len(groups); n > 0 && groups[n-1].uid == c.pod && groups[n-1].name == c.name {
			g := &groups[n-1]
			g.dead = g.dead[:len(g.dead)+1] // they lie side by side
			continue
		}
		groups = append(groups, deadGroup{uid: c.pod, name: c.name, dead: dead[i : i+1]})
	}
	return groups
}

// total is how many dead containers there are.
func total(groups []deadGroup) int {
	n := 0
	for i := range groups {
		n += len(groups[i].dead)
	}
	return n
}

// keep removes all but the newest n of a group, the oldest first.
func (gc *collector) keep(ctx context.Context, g *deadGroup, n int) {
	for i := len(g.dead) - 1; i >= n; i-- {
		gc.remove(ctx, g.dead[i])
	}
	g.dead = g.dead[:min(n, len(g.dead))]
}

// bound keeps the dead of the whole node within the policy.
// Each container first gives up what is beyond its fair share; only then the
// oldest of the node go, whatever pod they are of.
func (gc *collector) bound(ctx context.Context, groups []deadGroup) {
	limit := gc.policy.MaxContainers
	each := max(1, limit/len(groups))
	var flat []deadContainer
	for i := range groups {
		gc.keep(ctx, &groups[i], each)
		flat = append(flat, groups[i].dead...)
	}
	slices.SortStableFunc(flat, func(a, b deadContainer) int {
		return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), cmp.Compare(a.id, b.id))
	})
	for i := 0; len(flat)-i > limit; i++ {
		gc.remove(ctx, flat[i])
	}
}

// remove removes a container. What the runtime lost track of may still run, so
// it is stopped before.
func (gc *collector) remove(ctx context.Context, c deadContainer) {
	if c.unknown {
		if err := gc.killUnknown(ctx, c.id); err != nil {
			gc.m.o.Log("gc: failed to stop container %s: %v", c.id, err)
			return
		}
	}
	if err := gc.m.RemoveContainer(ctx, c.id); err != nil {
		gc.m.o.Log("gc: failed to remove container %s: %v", c.id, err)
	}
}

// killUnknown stops a container of which the runtime lost track; what the kill
// has to know is read from its labels and annotations.
// Its pod may be gone from the kubelet, hence the annotations.
func (gc *collector) killUnknown(ctx context.Context, id string) error {
	resp, err := gc.m.rt.ContainerStatus(ctx, id)
	if err != nil {
		return err
	}
	s := resp.GetStatus()
	if s == nil {
		return errors.New("container status is nil")
	}
	name := s.Labels[labelContainerName]
	return gc.m.killContainer(ctx, kill{
		pod: podOf(name, s.Labels, s.Annotations), id: id, name: name,
		message: "Container is in unknown state, try killing it before removal", reason: actions.ReasonUnknown,
	})
}

// listedBox is a sandbox of a listing.
type listedBox struct {
	id          string
	pod         types.UID
	createdAt   int64 // ns since the Unix epoch
	ready, used bool  // used: it has a container
}

// sandboxes removes those that are not READY and have no container, but the
// newest of each pod that is still there.
func (gc *collector) sandboxes(ctx context.Context) error {
	list, err := gc.boxes(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b listedBox) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(b.createdAt, a.createdAt), cmp.Compare(a.id, b.id))
	})
	for from := 0; from < len(list); {
		id := list[from].pod
		to := from + 1
		for to < len(list) && list[to].pod == id {
			to++
		}
		last := from + 1 // the newest stays
		if gc.gone(id) {
			last = from
		}
		for i := to - 1; i >= last; i-- {
			if s := list[i]; !s.ready && !s.used {
				gc.removeSandbox(ctx, s.id)
			}
		}
		from = to
	}
	return nil
}

// boxes lists the sandboxes; it may leave out those of pods that have none but
// READY ones.
func (gc *collector) boxes(ctx context.Context) (list []listedBox, err error) {
	before, told, err := gc.m.listContainerChanges(ctx)
	if err != nil {
		return nil, err
	}
	if told {
		pods, told, err := gc.m.listSandboxChanges(ctx)
		if told || err != nil {
			return pictured(pods, before), err
		}
	}
	containers, err := gc.m.rt.ListContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	listed, err := gc.m.rt.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool, len(containers))
	for _, c := range containers {
		used[c.PodSandboxId] = true
	}
	for _, s := range listed {
		ready := s.State == runtimeapi.PodSandboxState_SANDBOX_READY
		list = append(list, listedBox{s.Id, uid(s.GetMetadata().GetUid()), s.CreatedAt, ready, used[s.Id]})
	}
	return list, nil
}

// pictured is boxes by the pictures of the pods, and by those from when the
// containers were listed.
func pictured(pods, before []*kubecontainer.Pod) (list []listedBox) {
	for _, pod := range pods {
		if !slices.ContainsFunc(pod.Sandboxes, func(s *kubecontainer.Container) bool { return s.State != kubecontainer.StateRunning }) {
			continue
		}
		var containers []*kubecontainer.Container
		if was := findPod(before, pod.ID); was != nil {
			containers = was.Containers
		}
		for _, s := range pod.Sandboxes {
			used := slices.ContainsFunc(containers, func(c *kubecontainer.Container) bool { return c.PodSandboxID == s.ID })
			list = append(list, listedBox{s.ID, pod.ID, s.CreatedAt, s.State == kubecontainer.StateRunning, used})
		}
	}
	return list
}

// removeSandbox stops a sandbox before it removes it: its network is torn down
// only by that.
func (gc *collector) removeSandbox(ctx context.Context, id string) {
	if err := gc.m.rt.StopPodSandbox(ctx, id); err != nil {
		gc.m.o.Log("gc: failed to stop sandbox %s before its removal: %v", id, err)
		return
	}
	if err := gc.m.rt.RemovePodSandbox(ctx, id); err != nil {
		gc.m.o.Log("gc: failed to remove sandbox %s: %v", id, err)
	}
}

// logs removes the log directories of pods that are gone, and links to logs that
// are not there.
func (gc *collector) logs(ctx context.Context) error {
	if !gc.allSourcesReady || gc.m.o.FS == nil || gc.m.o.PodStates == nil {
		return nil
	}
	entries, err := gc.m.o.FS.ReadDir(gc.m.o.PodLogsDir)
	if err != nil {
		return nil //nolint:nilerr // there is no such directory yet
	}
	for _, e := range entries {
		name := e.Name()
		id := name[strings.LastIndexByte(name, '_')+1:]
		if !gc.m.o.PodStates.ShouldPodContentBeRemoved(uid(id)) {
			continue
		}
		if err := gc.m.o.FS.RemoveAll(gc.m.o.PodLogsDir + "/" + name); err != nil {
			gc.m.o.Log("gc: failed to remove log directory %s: %v", name, err)
		}
	}
	gc.m.logs.removeDeadLinks(ctx, gc.m.rt)
	return nil
}
