package kubelet

import (
	"context"
	"fmt"
	"path"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/devicemanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/dra"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// topologyMachine is a machine that knows where its CPUs and memory are.
type topologyMachine interface{ Topology() *cm.Topology }

// topology is the machine's; one that does not tell has all in one NUMA node, a
// core for each CPU.
func (b *base) topology() *cm.Topology {
	cfg := b.cfg
	if cfg.CPUManagerPolicy == cpumanager.PolicyNone && cfg.MemoryManagerPolicy == memorymanager.PolicyNone && cfg.TopologyManagerPolicy == topologymanager.PolicyNone {
		return &cm.Topology{} // nobody asks
	}
	if m, ok := b.opts.Machine.(topologyMachine); ok {
		if t := m.Topology(); t != nil {
			return t
		}
	}
	// What can't be asked for is laid out as the plainest machine.
	return cm.FlatTopology(b.opts.Machine.Capacity())
}

// containerManager has what containers get of the machine: cgroups, CPUs, memory.
// It mirrors upstream's pkg/kubelet/cm.
type containerManager struct {
	*base
	*knownPods
	cgroups         *cm.PodCgroups
	topologyManager *topologymanager.Manager
	cpuManager      *cpumanager.Manager
	memoryManager   *memorymanager.Manager
	deviceManager   *devicemanager.Manager
	draManager      *dra.Manager // nil until it is needed: see claims
	// ranBefore are the containers that ran when this kubelet started; nil: nobody asks.
	ranBefore map[ranBefore]bool
	// started is when the managers were.
	started time.Time
	// draPlugins are the DRA drivers that register; nil: none do.
	draPlugins *dra.Plugins
	// deviceHealth is told of pods whose devices changed, before their syncs.
	deviceHealth func(uid types.UID)
	// staleHealth is told of pods whose devices' health nobody vouches for any more, and
	// who are not synced for that.
	staleHealth func(uid types.UID)
	// devicesChanged is told when the node's devices are not what they were.
	devicesChanged func()
	// reconcile is one pass of the CPU manager. It reports whether all containers
	// run on their CPUs.
	reconcile func(ctx context.Context) (settled bool)
	// orphans are the pods whose cgroups are being cleaned up; nil: none were yet.
	orphans map[types.UID]bool
}

// newContainerManager makes what gives out CPUs and memory, and lines them up, in
// the order in which upstream's container manager does. An error makes the kubelet
// exit.
func newContainerManager(b *base, known *knownPods) (*containerManager, error) {
	m := &containerManager{base: b, knownPods: known, cgroups: &cm.PodCgroups{}}
	cfg := m.cfg
	topo := m.topology()
	var to topologymanager.Options
	var err error
	if cfg.TopologyManagerPolicy != topologymanager.PolicyNone {
		if to, err = topologymanager.ParseOptions(cfg.TopologyManagerPolicyOptions); err != nil {
			return nil, err
		}
	}
	if m.topologyManager, err = topologymanager.New(topo, cfg.TopologyManagerPolicy, cfg.TopologyManagerScope, to); err != nil {
		return nil, err
	}
	reserved := m.settings.withheld
	cc := cpumanager.Config{
		Topology: topo, Policy: cfg.CPUManagerPolicy, ReservedMilliCPU: reserved.Cpu().MilliValue(),
		TopologyPolicy: cfg.TopologyManagerPolicy, Affinity: m.topologyManager.GetAffinity,
		FS: m.fs, Dir: m.opts.RootDir,
		ActivePods: m.activePods, SourcesReady: m.podConfig.AllReady, PodStatus: m.statusManager.GetPodStatus,
		Update: m.updateCPUs, Log: m.log,
	}
	if cc.Options, err = cpumanager.ParseOptions(cfg.CPUManagerPolicy, cfg.CPUManagerPolicyOptions, m.settings.gates); err != nil {
		return nil, fmt.Errorf("new %s policy error: %w", cfg.CPUManagerPolicy, err)
	}
	if cfg.ReservedSystemCPUs != "" {
		if cc.ReservedCPUs, err = cm.ParseCPUs(cfg.ReservedSystemCPUs); err != nil {
			return nil, err
		}
	}
	if m.cpuManager, err = cpumanager.New(cc); err != nil {
		return nil, err
	}
	m.memoryManager, err = memorymanager.New(memorymanager.Config{
		Topology: topo, Policy: cfg.MemoryManagerPolicy, ReservedMemory: cfg.ReservedMemory, NodeReserved: reserved,
		Affinity: m.topologyManager.GetAffinity, FS: m.fs, Dir: m.opts.RootDir,
		ActivePods: m.activePods, SourcesReady: m.podConfig.AllReady, Log: m.log,
	})
	if err != nil {
		return nil, err
	}
	m.draPlugins = newDRAPlugins(m)
	// Who gives out nothing has no hints to offer.
	if m.opts.DevicePlugins != nil {
		m.deviceManager = newDeviceManager(m, topo)
		m.topologyManager.AddHintProvider(m.deviceManager)
	}
	if m.cpuManager.Static() {
		m.topologyManager.AddHintProvider(m.cpuManager)
	}
	if m.memoryManager.Static() {
		m.topologyManager.AddHintProvider(m.memoryManager)
	}
	m.reconcile, m.deviceHealth, m.staleHealth = m.cpuManager.Reconcile, func(types.UID) {}, func(types.UID) {}
	return m, nil
}

// startManagers takes over what an earlier kubelet gave out, and keeps the CPUs
// of running containers right. An error makes the kubelet exit.
func (m *containerManager) startManagers(ctx context.Context, skip func() bool) error {
	if err := m.cpuManager.Start(); err != nil {
		return err
	}
	if err := m.memoryManager.Start(); err != nil {
		return err
	}
	m.startDevices(ctx)
	m.started = m.l.Now()
	if dra.HasState(m.fs, m.opts.RootDir) {
		if _, err := m.claims(); err != nil {
			return err
		}
	}
	if m.cpuManager.Static() {
		m.g.Until("cpu-manager", m.cfg.CPUManagerReconcilePeriod.Duration, 0, func(ctx context.Context) { m.reconcile(ctx) }).Elide(loop.Skip(skip))
	}
	return nil
}

// updateCPUs has a running container run on other CPUs.
// Only the cpuset is set: what else a container was given stays, because the CRI
// leaves fields that are not set alone.
func (m *containerManager) updateCPUs(ctx context.Context, containerID, cpus string) error {
	ctx, cancel := loop.WithTimeout(ctx, m.cfg.RuntimeRequestTimeout.Duration)
	defer cancel()
	return m.opts.RuntimeService.UpdateContainerResources(ctx, containerID, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: cpus}})
}

// containerAffinity tells the runtime manager what containers have for
// themselves.
type containerAffinity struct {
	*containerManager
	noQuota bool // the feature gate DisableCPUQuotaWithExclusiveCPUs
}

// affinity is nil if nobody gives out anything.
func (m *containerManager) affinity() kuberuntime.Affinity {
	if !m.cpuManager.Static() && !m.memoryManager.Static() {
		return nil
	}
	return containerAffinity{m, m.settings.gates.Enabled(features.DisableCPUQuotaWithExclusiveCPUs)}
}

// CPUs implements kuberuntime.Affinity.
func (a containerAffinity) CPUs(pod *v1.Pod, c *v1.Container) string {
	return a.cpuManager.CPUs(pod, c)
}

// Nodes implements kuberuntime.Affinity.
func (a containerAffinity) Nodes(pod *v1.Pod, c *v1.Container) string {
	return a.memoryManager.Nodes(pod, c)
}

// Created implements kuberuntime.Affinity.
func (a containerAffinity) Created(pod *v1.Pod, c *v1.Container) { a.cpuManager.Started(pod, c) }

// NoQuota implements kuberuntime.Affinity.
func (a containerAffinity) NoQuota(pod *v1.Pod, container string) bool {
	if !a.noQuota {
		return false
	}
	if container == "" {
		return a.cpuManager.PodExclusive(pod.UID)
	}
	return a.cpuManager.Exclusive(pod.UID, container)
}

// ranBefore is a container of a pod.
type ranBefore struct {
	pod       types.UID
	container string
}

func newDeviceManager(m *containerManager, topo *cm.Topology) *devicemanager.Manager {
	return devicemanager.New(devicemanager.Config{
		Group: m.g, Plugins: m.opts.DevicePlugins, NUMANodes: topo.NodeIDs(), Affinity: m.topologyManager.GetAffinity,
		FS: m.fs, Dir: path.Join(m.opts.RootDir, devicemanager.Dir),
		ActivePods: m.activePods, SourcesReady: m.podConfig.AllReady,
		Running: func(pod types.UID, container string) bool { return m.ranBefore[ranBefore{pod, container}] },
		Changed: m.handleDevices, Log: m.log,
	})
}

// startDevices takes over the devices that an earlier kubelet gave out, and has plugins
// register.
func (m *containerManager) startDevices(ctx context.Context) {
	if m.opts.DevicePlugins == nil {
		return
	}
	if err := m.fs.MkdirAll(path.Join(m.opts.RootDir, devicemanager.Dir), 0o750); err != nil {
		m.logf("Failed to create the directory of device plugins: %v", err)
	}
	m.ranBefore = m.running(ctx)
	m.deviceManager.Start()
}

// running are the containers that run, as the runtime says
// (buildContainerMapAndRunningSetFromRuntime). If it says nothing, none do.
func (m *containerManager) running(ctx context.Context) map[ranBefore]bool {
	list, err := m.opts.RuntimeService.ListContainers(ctx, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	if err != nil {
		m.logf("Failed to list containers: %v", err)
	}
	out := map[ranBefore]bool{}
	for _, c := range list {
		pod, container := kuberuntime.OfContainer(c.Labels)
		out[ranBefore{pod, container}] = true
	}
	return out
}

// handleDevices has pods synced whose devices' health changed
// (the updates of the container manager in syncLoopIteration).
func (m *containerManager) handleDevices(pods []types.UID) {
	m.devicesChanged()
	for _, uid := range pods {
		if pod, ok := m.pods.GetPodByUID(uid); ok {
			m.deviceHealth(uid)
			m.handlePodSync(pod)
		}
	}
}

// handleClaimHealth tells pods of the health of devices that they have by claims, and has
// them synced if the driver said something new.
func (m *containerManager) handleClaimHealth(driver string, devices []dra.DeviceName, synced bool) {
	if m.draManager == nil {
		return // no pod has claims
	}
	for _, uid := range m.draManager.Users(driver, devices) {
		if !synced {
			m.staleHealth(uid)
			continue
		}
		m.deviceHealth(uid)
		if pod, ok := m.pods.GetPodByUID(uid); ok {
			m.handlePodSync(pod)
		}
	}
}

// newDRAPlugins makes what DRA drivers register with; nil: none can.
func newDRAPlugins(m *containerManager) *dra.Plugins {
	if m.opts.DRAPlugins != nil || m.opts.PluginSockets == nil {
		return nil
	}
	o := dra.PluginsConfig{Group: m.g, Sockets: m.opts.PluginSockets, NodeName: m.nodeName, FS: m.fs, Dir: m.opts.RootDir, HealthChanged: m.handleClaimHealth, Log: m.logf}
	if m.client != nil {
		o.Client = m.client
	}
	return dra.NewPlugins(o)
}

// claims returns the DRA manager, which is made when it is first needed: most nodes never
// have a pod with claims.
func (m *containerManager) claims() (*dra.Manager, error) {
	if m.draManager != nil {
		return m.draManager, nil
	}
	c := dra.Config{
		Group: m.g, Plugins: m.opts.DRAPlugins, FS: m.fs, Dir: m.opts.RootDir, Started: m.started,
		ActivePods: m.activePods, SourcesReady: m.podConfig.AllReady, Log: m.logf,
	}
	if m.draPlugins != nil {
		c.Plugins, c.Health = m.draPlugins, m.draPlugins
	}
	if m.client != nil {
		c.Client = m.client
	}
	made := dra.New(c)
	if err := made.Start(); err != nil {
		return nil, err
	}
	m.draManager = made
	return made, nil
}

// prepareClaims has a pod's claims prepared.
func (m *containerManager) prepareClaims(ctx context.Context, pod *v1.Pod) error {
	if !dra.Has(pod) {
		return nil
	}
	claims, err := m.claims()
	if err != nil {
		return err
	}
	return claims.Prepare(ctx, pod)
}

// claimStatus says how the devices of a container's claims are.
func (m *containerManager) claimStatus(pod *v1.Pod, c *v1.Container) []v1.ResourceStatus {
	if m.draManager == nil {
		return nil
	}
	return m.draManager.Status(pod, c)
}
