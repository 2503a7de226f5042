package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/cm"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// cgroupUpdatePeriod is that of the classes' cgroups and, while the root's
// can't be set, of the tries.
const cgroupUpdatePeriod = time.Minute

// cgroupNames are the paths of this node's cgroups.
func (kl *Kubelet) cgroupNames() cm.Names {
	return cm.Names{Root: kl.cfg.CgroupRoot, Systemd: kl.systemdCgroups}
}

// nodeCgroups are the machine's; nil if nobody makes any above the pods'. Those
// of the systemd driver are left to the runtime where the kubelet would have to
// make all of them.
func (kl *Kubelet) nodeCgroups() cm.NodeCgroups {
	if !ptr.Deref(kl.cfg.CgroupsPerQOS, true) {
		return nil
	}
	if _, all := kl.opts.Cgroups.(cm.Cgroups); all && kl.systemdCgroups {
		return nil
	}
	return kl.opts.Cgroups
}

// machineCgroups are those of the machine's cgroups that are for this kubelet to
// make; nil if the runtime makes the pods'.
func (kl *Kubelet) machineCgroups() cm.Cgroups {
	c, _ := kl.nodeCgroups().(cm.Cgroups)
	return c
}

// startCgroups makes the cgroups above the pods', and keeps their values right
// (setupNode at upstream's pkg/kubelet/cm/container_manager_linux.go). An error
// makes the kubelet exit.
func (kl *Kubelet) startCgroups(ctx context.Context) error {
	n := kl.nodeCgroups()
	if n == nil {
		return nil
	}
	kl.enforcePods(ctx, n)
	if c := kl.machineCgroups(); c != nil {
		kl.cgroups.Machine = func(ctx context.Context, pod *v1.Pod, g cm.PodCgroup) error {
			return kl.setPodCgroup(ctx, c, pod, g)
		}
		kl.g.Until("qos-cgroups", cgroupUpdatePeriod, 0, func(ctx context.Context) { kl.updateClassCgroups(ctx, c) })
	}
	return kl.enforceReserved(ctx, n)
}

// enforcePods gives all pods together what enforceNodeAllocatable says. What a
// machine refuses, since its pods use more already, is tried again.
// It mirrors upstream's enforceNodeAllocatableCgroups
// (pkg/kubelet/cm/node_container_manager_linux.go).
func (kl *Kubelet) enforcePods(ctx context.Context, c cm.NodeCgroups) {
	v := kl.rootCgroup(ctx)
	try := func(ctx context.Context) bool {
		if err := c.SetRoot(ctx, v); err != nil {
			kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.FailedNodeAllocatableEnforcement,
				fmt.Sprintf("Failed to update Node Allocatable Limits %q: %v", kl.cgroupNames().Components(), err))
			return false
		}
		kl.recorder.Event(kl.node.ref, v1.EventTypeNormal, events.NodeAllocatableEnforced, "Updated Node Allocatable limit across pods")
		return true
	}
	if try(ctx) {
		return
	}
	kl.g.Go("node-allocatable", func(ctx context.Context) {
		for kl.l.Sleep(ctx, cgroupUpdatePeriod) == nil && !try(ctx) {
		}
	})
}

// rootCgroup are the values of the cgroup of all pods.
func (kl *Kubelet) rootCgroup(ctx context.Context) cm.NodeCgroup {
	res := maps.Clone(kl.settings.resources.all.Capacity)
	if n := kl.maxPIDs(ctx); n > 0 {
		res[cm.PIDs] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	if slices.Contains(kl.cfg.EnforceNodeAllocatable, cm.EnforcePods) {
		res = kl.reserved.Enforceable(res)
	}
	out := cm.ForNode(res, false)
	out.AllCPUs = kl.sharesAllCPUs()
	return out
}

// sharesAllCPUs reports whether no container has CPUs of its own.
func (kl *Kubelet) sharesAllCPUs() bool {
	return kl.cfg.CPUManagerPolicy == "" || kl.cfg.CPUManagerPolicy == "none"
}

// maxPIDs is how many processes the machine can have; 0 if nobody knows.
func (kl *Kubelet) maxPIDs(ctx context.Context) int64 {
	if kl.opts.MachineStats == nil {
		return 0
	}
	r, err := kl.opts.MachineStats.PIDs(ctx)
	if err != nil || r == nil || r.MaxPID == nil {
		return 0
	}
	return *r.MaxPID
}

// reservedCgroup is a cgroup outside the pods' with what enforceNodeAllocatable
// has it keep to.
type reservedCgroup struct {
	key, name string
	// kind and what are how the events name it.
	kind, what   string
	res          v1.ResourceList
	compressible bool
}

func (kl *Kubelet) reservedCgroups() []reservedCgroup {
	system, kube := kl.cfg.SystemReservedCgroup, kl.cfg.KubeReservedCgroup
	return []reservedCgroup{
		{cm.EnforceSystemReserved, system, "System Reserved", "system reserved", kl.reserved.System, false},
		{cm.EnforceKubeReserved, kube, "Kube Reserved", "kube reserved", kl.reserved.Kube, false},
		{cm.EnforceSystemReservedCompressible, system, "System Reserved Compressible", "system reserved", kl.reserved.System, true},
		{cm.EnforceKubeReservedCompressible, kube, "Kube Reserved Compressible", "kube reserved", kl.reserved.Kube, true},
	}
}

// values are what the cgroup is given.
func (kl *Kubelet) reservedValues(r *reservedCgroup) cm.NodeCgroup {
	v := cm.ForNode(r.res, r.compressible)
	v.AllCPUs = kl.sharesAllCPUs()
	if kl.gates.Enabled(features.MemoryQoS) {
		v.MemoryMin = v.MemoryLimit
	}
	return v
}

// enforceReserved limits the system and the node's daemons.
func (kl *Kubelet) enforceReserved(ctx context.Context, c cm.NodeCgroups) error {
	for _, r := range kl.reservedCgroups() {
		if !slices.Contains(kl.cfg.EnforceNodeAllocatable, r.key) {
			continue
		}
		var err error
		if r.res == nil {
			err = fmt.Errorf("%q cgroup is not configured properly", strings.Split(strings.Trim(r.name, "/"), "/"))
		} else {
			err = c.SetReserved(ctx, r.name, kl.reservedValues(&r))
		}
		if err != nil {
			text := fmt.Sprintf("Failed to enforce %s Cgroup Limits on %q: %v", r.kind, r.name, err)
			kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.FailedNodeAllocatableEnforcement, text)
			return errors.New(text)
		}
		kl.recorder.Event(kl.node.ref, v1.EventTypeNormal, events.NodeAllocatableEnforced, fmt.Sprintf("Updated limits on %s cgroup %v", r.what, r.name))
	}
	return nil
}

// qosPolicy is how the classes' cgroups follow from the pods.
func (kl *Kubelet) qosPolicy() cm.QOSPolicy {
	out := cm.QOSPolicy{ReservedMemory: -1, MemoryQoS: kl.memoryQoS(), Tiered: kl.tieredMemory()}
	if p, ok := kl.cfg.QOSReserved["memory"]; ok && kl.gates.Enabled(features.QOSReserved) {
		if n, err := strconv.ParseInt(strings.TrimSuffix(p, "%"), 10, 64); err == nil { // New has judged it
			out.ReservedMemory = n
			mem := kl.reserved.Enforceable(kl.settings.resources.all.Capacity)[v1.ResourceMemory]
			out.Allocatable = mem.Value()
		}
	}
	return out
}

// memoryQoS reports whether memory.min and its like are set.
func (kl *Kubelet) memoryQoS() bool {
	return kl.gates.Enabled(features.MemoryQoS) && !kl.opts.CgroupV1
}

func (kl *Kubelet) tieredMemory() bool {
	return kl.memoryQoS() && kl.cfg.MemoryReservationPolicy == "TieredReservation"
}

// requests are what the active pods ask for.
func (kl *Kubelet) requests() cm.Requests {
	var r cm.Requests
	for _, pod := range kl.allocatedPods() {
		r.Add(pod)
	}
	return r
}

// updateClassCgroups gives the classes what their pods ask for. A limit below
// what is used already becomes what is used.
// It mirrors upstream's UpdateCgroups
// (pkg/kubelet/cm/qos_container_manager_linux.go).
func (kl *Kubelet) updateClassCgroups(ctx context.Context, c cm.Cgroups) {
	r, p := kl.requests(), kl.qosPolicy()
	for _, class := range [...]struct {
		class v1.PodQOSClass
		v     cm.ClassCgroup
	}{{v1.PodQOSBestEffort, p.BestEffort(&r)}, {v1.PodQOSBurstable, p.Burstable(&r)}} {
		err := c.SetClass(ctx, class.class, class.v)
		// The kernel refuses a limit that it can't reclaim down to.
		if err != nil && class.v.MemoryLimit != nil {
			if used, e := c.ClassMemory(ctx, class.class); e == nil && used > *class.v.MemoryLimit {
				class.v.MemoryLimit = &used
			}
			err = c.SetClass(ctx, class.class, class.v)
		}
		if err != nil {
			kl.logf("Failed to update the cgroup of %s pods: %v", class.class, err)
		}
	}
	if min := p.RootMemoryMin(&r); min != nil {
		if err := c.SetRoot(ctx, cm.NodeCgroup{MemoryMin: min}); err != nil {
			kl.logf("Failed to update the cgroup of all pods: %v", err)
		}
	}
}

// setPodCgroup makes a pod's cgroup, or changes it.
func (kl *Kubelet) setPodCgroup(ctx context.Context, c cm.Cgroups, pod *v1.Pod, g cm.PodCgroup) error {
	return c.SetPod(ctx, qos.Class(pod), pod.UID, kl.podCgroup(pod, g))
}

// podCgroup is what a pod's cgroup gets: no quota if it has CPUs for itself, and
// what of its memory is protected.
func (kl *Kubelet) podCgroup(pod *v1.Pod, g cm.PodCgroup) cm.PodCgroup {
	kl.protectMemory(pod, &g)
	if a := kl.affinity(); a != nil && a.NoQuota(pod, "") {
		g.MilliCPULimit = 0
	}
	return g
}

// protectMemory adds what of a pod's memory is not reclaimed.
func (kl *Kubelet) protectMemory(pod *v1.Pod, g *cm.PodCgroup) {
	if !kl.tieredMemory() {
		return
	}
	var r cm.Requests
	r.Add(pod)
	g.MemoryMin, g.MemoryLow = r.GuaranteedMemory, r.BurstableMemory
}

// ensureCgroup makes a pod's cgroup before its sandbox. Unlike upstream it
// leaves containers alone that a runtime put into a cgroup of its own making
// (cgroupsPerQOS was switched on, or was not permitted).
// Otherwise it mirrors upstream's EnsureExists
// (pkg/kubelet/cm/pod_container_manager_linux.go).
func (kl *Kubelet) ensureCgroup(ctx context.Context, pod *v1.Pod) error {
	c := kl.machineCgroups()
	if c == nil || kl.workers.IsPodTerminationRequested(pod.UID) || c.PodExists(qos.Class(pod), pod.UID) {
		return nil
	}
	// An error has the sync retried, by when the removal may be over.
	if kl.orphanCgroups[pod.UID] {
		return fmt.Errorf("the cgroup of an earlier pod %s is being removed", pod.UID)
	}
	kl.updateClassCgroups(ctx, c)
	if err := kl.setPodCgroup(ctx, c, pod, kl.cgroups.Get(pod)); err != nil {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToCreatePodContainer, fmt.Sprintf("unable to ensure pod container exists: %v", err))
		return fmt.Errorf("failed to ensure that the pod: %s cgroups exist and are correctly applied: %w", pod.UID, err)
	}
	return nil
}

// removeCgroup removes the cgroup of a pod that has ended.
func (kl *Kubelet) removeCgroup(ctx context.Context, uid types.UID) error {
	if c := kl.machineCgroups(); c != nil {
		return c.RemovePod(ctx, uid)
	}
	return nil
}

// cleanUpCgroups removes the cgroups of pods that are neither wanted nor
// running; while one still has volumes it gets as little CPU as can be.
// It mirrors upstream's cleanupOrphanedPodCgroups (pkg/kubelet/kubelet_pods.go).
func (kl *Kubelet) cleanUpCgroups(running []*kubecontainer.Pod) {
	c := kl.machineCgroups()
	if c == nil {
		return
	}
	for _, uid := range c.Pods() {
		if _, ok := kl.pods.GetPodByUID(uid); ok || runs(running, uid) || kl.workers.Known(uid) || kl.orphanCgroups[uid] {
			continue
		}
		if kl.orphanCgroups == nil {
			kl.orphanCgroups = map[types.UID]bool{}
		}
		kl.orphanCgroups[uid] = true
		// Removing a cgroup kills what is left in it, which takes time that
		// housekeeping has not.
		kl.g.Go("orphaned-cgroup", func(ctx context.Context) {
			defer delete(kl.orphanCgroups, uid)
			var err error
			if kl.podVolumesExist(uid, kl.volumePathsOnDisk(uid)) {
				err = c.ShrinkPod(ctx, uid)
			} else {
				err = c.RemovePod(ctx, uid)
			}
			if err != nil {
				kl.logf("Failed to clean up the cgroup of orphaned pod podUID=%s: %v", uid, err)
			}
		})
	}
}

// Cgroups returns the node's cgroups above those of containers, as the pods, the
// machine and the configuration make them now: that of all pods, those of the
// classes, the pods' by UID, at last those reserved. nil while there are none.
// Where nobody makes cgroups, nothing is kept of them: they are computed here.
//
// Upstream writes the classes' values up to a minute, or a pod's creation, later.
func (kl *Kubelet) Cgroups(ctx context.Context) []cm.Cgroup {
	if kl.nodeCgroups() == nil || !kl.runtimeUp.once {
		return nil
	}
	t := cm.Tree{Names: kl.cgroupNames(), CFSPeriod: kl.cfsPeriod().Microseconds(), PodPids: ptr.Deref(kl.cfg.PodPidsLimit, -1), NoCPUQuota: !ptr.Deref(kl.cfg.CPUCFSQuota, true)}
	r, p := kl.requests(), kl.qosPolicy()
	root := kl.rootCgroup(ctx)
	root.MemoryMin = p.RootMemoryMin(&r)
	t.Node(t.Names.Pods(), root)
	t.AddClass(v1.PodQOSBurstable, p.Burstable(&r))
	t.AddClass(v1.PodQOSBestEffort, p.BestEffort(&r))
	running := kl.workers.records.sorted(func(s *podState) bool { return s.active.Pod != nil && s.started() && !s.finished })
	for _, s := range running {
		pod, _ := kl.allocation.UpdatePodFromAllocation(s.active.Pod)
		t.AddPod(qos.Class(pod), pod.UID, kl.podCgroup(pod, kl.cgroups.Get(pod)))
	}
	for _, r := range kl.reservedCgroups() {
		if slices.Contains(kl.cfg.EnforceNodeAllocatable, r.key) {
			t.Node(r.name, kl.reservedValues(&r))
		}
	}
	return t.List()
}

// cfsPeriod is 100 ms unless configured, as the kernel's own default.
func (kl *Kubelet) cfsPeriod() time.Duration {
	if p := kl.cfg.CPUCFSQuotaPeriod; p != nil && p.Duration > 0 {
		return p.Duration
	}
	return cm.DefaultCFSPeriod
}
