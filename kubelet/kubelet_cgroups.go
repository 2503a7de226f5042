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

// systemdCgroups are cgroups that systemd can make.
type systemdCgroups interface {
	// Systemd returns them as that driver has them.
	Systemd(ctx context.Context) (cm.Cgroups, error)
}

// useSystemd has systemd make the pods' cgroups, if they are for this kubelet to make.
func (kl *Kubelet) useSystemd(ctx context.Context) {
	kl.systemdCgroups = true
	files, ok := kl.opts.Cgroups.(systemdCgroups)
	if !ok {
		return
	}
	slices, err := files.Systemd(ctx)
	if err != nil {
		kl.logf("The cgroups of pods are left to the runtime: %v", err)
		kl.opts.Cgroups = nil
		return
	}
	kl.opts.Cgroups = slices
}

// nodeCgroups are the machine's; nil if nobody makes any above the pods'.
func (m *containerManager) nodeCgroups() cm.NodeCgroups {
	if !ptr.Deref(m.cfg.CgroupsPerQOS, true) {
		return nil
	}
	return m.opts.Cgroups
}

// machineCgroups are those of the machine's cgroups that are for this kubelet to
// make; nil if the runtime makes the pods'.
func (m *containerManager) machineCgroups() cm.Cgroups {
	c, _ := m.nodeCgroups().(cm.Cgroups)
	return c
}

// startCgroups makes the cgroups above the pods', and keeps their values right
// (setupNode at upstream's pkg/kubelet/cm/container_manager_linux.go). An error
// makes the kubelet exit.
func (m *containerManager) startCgroups(ctx context.Context) error {
	n := m.nodeCgroups()
	if n == nil {
		return nil
	}
	m.enforcePods(ctx, n)
	if c := m.machineCgroups(); c != nil {
		m.cgroups.Machine = func(ctx context.Context, pod *v1.Pod, g cm.PodCgroup) error {
			return m.setPodCgroup(ctx, c, pod, g)
		}
		m.g.Until("qos-cgroups", cgroupUpdatePeriod, 0, func(ctx context.Context) { m.updateClassCgroups(ctx, c) })
	}
	return m.enforceReserved(ctx, n)
}

// enforcePods gives all pods together what enforceNodeAllocatable says. What a
// machine refuses, since its pods use more already, is tried again.
// It mirrors upstream's enforceNodeAllocatableCgroups
// (pkg/kubelet/cm/node_container_manager_linux.go).
func (m *containerManager) enforcePods(ctx context.Context, c cm.NodeCgroups) {
	v := m.rootCgroup(ctx)
	try := func(ctx context.Context) bool {
		if err := c.SetRoot(ctx, v); err != nil {
			m.nodeEvent(v1.EventTypeWarning, events.FailedNodeAllocatableEnforcement,
				fmt.Sprintf("Failed to update Node Allocatable Limits %q: %v", m.cgroupNames().Components(), err))
			return false
		}
		m.nodeEvent(v1.EventTypeNormal, events.NodeAllocatableEnforced, "Updated Node Allocatable limit across pods")
		return true
	}
	if try(ctx) {
		return
	}
	m.g.Go("node-allocatable", func(ctx context.Context) {
		for m.l.Sleep(ctx, cgroupUpdatePeriod) == nil && !try(ctx) {
		}
	})
}

// rootCgroup are the values of the cgroup of all pods.
func (m *containerManager) rootCgroup(ctx context.Context) cm.NodeCgroup {
	res := maps.Clone(m.settings.resources.all.Capacity)
	if n := m.maxPIDs(ctx); n > 0 {
		res[cm.PIDs] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	if slices.Contains(m.cfg.EnforceNodeAllocatable, cm.EnforcePods) {
		res = m.settings.reserved.Enforceable(res)
	}
	out := cm.ForNode(res, false)
	out.AllCPUs = m.sharesAllCPUs()
	return out
}

// sharesAllCPUs reports whether no container has CPUs of its own.
func (m *containerManager) sharesAllCPUs() bool {
	return m.cfg.CPUManagerPolicy == "" || m.cfg.CPUManagerPolicy == "none"
}

// maxPIDs is how many processes the machine can have; 0 if nobody knows.
func (m *containerManager) maxPIDs(ctx context.Context) int64 {
	if m.opts.MachineStats == nil {
		return 0
	}
	r, err := m.opts.MachineStats.PIDs(ctx)
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

func (m *containerManager) reservedCgroups() []reservedCgroup {
	system, kube := m.cfg.SystemReservedCgroup, m.cfg.KubeReservedCgroup
	return []reservedCgroup{
		{cm.EnforceSystemReserved, system, "System Reserved", "system reserved", m.settings.reserved.System, false},
		{cm.EnforceKubeReserved, kube, "Kube Reserved", "kube reserved", m.settings.reserved.Kube, false},
		{cm.EnforceSystemReservedCompressible, system, "System Reserved Compressible", "system reserved", m.settings.reserved.System, true},
		{cm.EnforceKubeReservedCompressible, kube, "Kube Reserved Compressible", "kube reserved", m.settings.reserved.Kube, true},
	}
}

// values are what the cgroup is given.
func (m *containerManager) reservedValues(r *reservedCgroup) cm.NodeCgroup {
	v := cm.ForNode(r.res, r.compressible)
	v.AllCPUs = m.sharesAllCPUs()
	if m.settings.gates.Enabled(features.MemoryQoS) {
		v.MemoryMin = v.MemoryLimit
	}
	return v
}

// enforceReserved limits the system and the node's daemons.
func (m *containerManager) enforceReserved(ctx context.Context, c cm.NodeCgroups) error {
	for _, r := range m.reservedCgroups() {
		if !slices.Contains(m.cfg.EnforceNodeAllocatable, r.key) {
			continue
		}
		var err error
		if r.res == nil {
			err = fmt.Errorf("%q cgroup is not configured properly", strings.Split(strings.Trim(r.name, "/"), "/"))
		} else {
			err = c.SetReserved(ctx, r.name, m.reservedValues(&r))
		}
		if err != nil {
			text := fmt.Sprintf("Failed to enforce %s Cgroup Limits on %q: %v", r.kind, r.name, err)
			m.nodeEvent(v1.EventTypeWarning, events.FailedNodeAllocatableEnforcement, text)
			return errors.New(text)
		}
		m.nodeEvent(v1.EventTypeNormal, events.NodeAllocatableEnforced, fmt.Sprintf("Updated limits on %s cgroup %v", r.what, r.name))
	}
	return nil
}

// qosPolicy is how the classes' cgroups follow from the pods.
func (m *containerManager) qosPolicy() cm.QOSPolicy {
	out := cm.QOSPolicy{ReservedMemory: -1, MemoryQoS: m.memoryQoS(), Tiered: m.tieredMemory()}
	if p, ok := m.cfg.QOSReserved["memory"]; ok && m.settings.gates.Enabled(features.QOSReserved) {
		if n, err := strconv.ParseInt(strings.TrimSuffix(p, "%"), 10, 64); err == nil { // New has judged it
			out.ReservedMemory = n
			mem := m.settings.reserved.Enforceable(m.settings.resources.all.Capacity)[v1.ResourceMemory]
			out.Allocatable = mem.Value()
		}
	}
	return out
}

// memoryQoS reports whether memory.min and its like are set.
func (m *containerManager) memoryQoS() bool {
	return m.settings.gates.Enabled(features.MemoryQoS) && !m.opts.CgroupV1
}

func (m *containerManager) tieredMemory() bool {
	return m.memoryQoS() && m.cfg.MemoryReservationPolicy == "TieredReservation"
}

// requests are what the active pods ask for.
func (m *containerManager) requests() cm.Requests {
	var r cm.Requests
	for _, pod := range m.allocatedPods() {
		r.Add(pod)
	}
	return r
}

// updateClassCgroups gives the classes what their pods ask for. A limit below
// what is used already becomes what is used.
// It mirrors upstream's UpdateCgroups
// (pkg/kubelet/cm/qos_container_manager_linux.go).
func (m *containerManager) updateClassCgroups(ctx context.Context, c cm.Cgroups) {
	r, p := m.requests(), m.qosPolicy()
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
			m.logf("Failed to update the cgroup of %s pods: %v", class.class, err)
		}
	}
	if min := p.RootMemoryMin(&r); min != nil {
		if err := c.SetRoot(ctx, cm.NodeCgroup{MemoryMin: min}); err != nil {
			m.logf("Failed to update the cgroup of all pods: %v", err)
		}
	}
}

// setPodCgroup makes a pod's cgroup, or changes it.
func (m *containerManager) setPodCgroup(ctx context.Context, c cm.Cgroups, pod *v1.Pod, g cm.PodCgroup) error {
	return c.SetPod(ctx, qos.Class(pod), pod.UID, m.podCgroup(pod, g))
}

// podCgroup is what a pod's cgroup gets: no quota if it has CPUs for itself, and
// what of its memory is protected.
func (m *containerManager) podCgroup(pod *v1.Pod, g cm.PodCgroup) cm.PodCgroup {
	m.protectMemory(pod, &g)
	if a := m.affinity(); a != nil && a.NoQuota(pod, "") {
		g.MilliCPULimit = 0
	}
	return g
}

// protectMemory adds what of a pod's memory is not reclaimed.
func (m *containerManager) protectMemory(pod *v1.Pod, g *cm.PodCgroup) {
	if !m.tieredMemory() {
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
func (m *containerManager) ensureCgroup(ctx context.Context, pod *v1.Pod) error {
	c := m.machineCgroups()
	if c == nil || m.workers.IsPodTerminationRequested(pod.UID) || c.PodExists(qos.Class(pod), pod.UID) {
		return nil
	}
	// An error has the sync retried, by when the removal may be over.
	if m.orphans[pod.UID] {
		return fmt.Errorf("the cgroup of an earlier pod %s is being removed", pod.UID)
	}
	m.updateClassCgroups(ctx, c)
	if err := m.setPodCgroup(ctx, c, pod, m.cgroups.Get(pod)); err != nil {
		m.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToCreatePodContainer, fmt.Sprintf("unable to ensure pod container exists: %v", err))
		return fmt.Errorf("failed to ensure that the pod: %s cgroups exist and are correctly applied: %w", pod.UID, err)
	}
	return nil
}

// removeCgroup removes the cgroup of a pod that has ended.
func (m *containerManager) removeCgroup(ctx context.Context, uid types.UID) error {
	if c := m.machineCgroups(); c != nil {
		return c.RemovePod(ctx, uid)
	}
	return nil
}

// cleanUpCgroups removes the cgroups of pods that are neither wanted nor
// running; while one still has volumes it gets as little CPU as can be.
// It mirrors upstream's cleanupOrphanedPodCgroups (pkg/kubelet/kubelet_pods.go).
func (m *containerManager) cleanUpCgroups(running []*kubecontainer.Pod, hasVolumes func(types.UID) bool) {
	c := m.machineCgroups()
	if c == nil {
		return
	}
	for _, uid := range c.Pods() {
		if _, ok := m.pods.GetPodByUID(uid); ok || runs(running, uid) || m.workers.Known(uid) || m.orphans[uid] {
			continue
		}
		if m.orphans == nil {
			m.orphans = map[types.UID]bool{}
		}
		m.orphans[uid] = true
		// Removing a cgroup kills what is left in it, which takes time that
		// housekeeping has not.
		m.g.Go("orphaned-cgroup", func(ctx context.Context) {
			defer delete(m.orphans, uid)
			var err error
			if hasVolumes(uid) {
				err = c.ShrinkPod(ctx, uid)
			} else {
				err = c.RemovePod(ctx, uid)
			}
			if err != nil {
				m.logf("Failed to clean up the cgroup of orphaned pod podUID=%s: %v", uid, err)
			}
		})
	}
}

// tree returns the node's cgroups above those of containers, as the pods, the
// machine and the configuration make them now: that of all pods, those of the
// classes, the pods' by UID, at last those reserved. nil: there are none.
// Where nobody makes cgroups, nothing is kept of them: they are computed here.
//
// Upstream writes the classes' values up to a minute, or a pod's creation, later.
func (m *containerManager) tree(ctx context.Context) []cm.Cgroup {
	if m.nodeCgroups() == nil {
		return nil
	}
	t := cm.Tree{Names: m.cgroupNames(), CFSPeriod: m.cfsPeriod().Microseconds(), PodPids: ptr.Deref(m.cfg.PodPidsLimit, -1), NoCPUQuota: !ptr.Deref(m.cfg.CPUCFSQuota, true)}
	r, p := m.requests(), m.qosPolicy()
	root := m.rootCgroup(ctx)
	root.MemoryMin = p.RootMemoryMin(&r)
	t.Node(t.Names.Pods(), root)
	t.AddClass(v1.PodQOSBurstable, p.Burstable(&r))
	t.AddClass(v1.PodQOSBestEffort, p.BestEffort(&r))
	for _, pod := range m.workers.Started() {
		pod, _ := m.allocation.UpdatePodFromAllocation(pod)
		t.AddPod(qos.Class(pod), pod.UID, m.podCgroup(pod, m.cgroups.Get(pod)))
	}
	for _, r := range m.reservedCgroups() {
		if slices.Contains(m.cfg.EnforceNodeAllocatable, r.key) {
			t.Node(r.name, m.reservedValues(&r))
		}
	}
	return t.List()
}

// cfsPeriod is 100 ms unless configured, as the kernel's own default.
func (m *containerManager) cfsPeriod() time.Duration {
	if p := m.cfg.CPUCFSQuotaPeriod; p != nil && p.Duration > 0 {
		return p.Duration
	}
	return cm.DefaultCFSPeriod
}
