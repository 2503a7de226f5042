package kubelet

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// topologyMachine is a machine that knows where its CPUs and memory are.
type topologyMachine interface{ Topology() *cm.Topology }

// topology is the machine's; one that does not tell has all in one NUMA node, a
// core for each CPU.
func (kl *Kubelet) topology() *cm.Topology {
	cfg := kl.cfg
	if cfg.CPUManagerPolicy == cpumanager.PolicyNone && cfg.MemoryManagerPolicy == memorymanager.PolicyNone && cfg.TopologyManagerPolicy == topologymanager.PolicyNone {
		return &cm.Topology{} // nobody asks
	}
	if m, ok := kl.opts.Machine.(topologyMachine); ok {
		if t := m.Topology(); t != nil {
			return t
		}
	}
	// What can't be asked for is laid out as the plainest machine.
	return cm.FlatTopology(kl.opts.Machine.Capacity())
}

// buildManagers makes what gives out CPUs and memory, and lines them up, in the
// order in which upstream's container manager does. An error makes the kubelet
// exit.
func (kl *Kubelet) buildManagers() error {
	cfg := kl.cfg
	topo := kl.topology()
	var to topologymanager.Options
	var err error
	if cfg.TopologyManagerPolicy != topologymanager.PolicyNone {
		if to, err = topologymanager.ParseOptions(cfg.TopologyManagerPolicyOptions); err != nil {
			return err
		}
	}
	if kl.topologyManager, err = topologymanager.New(topo, cfg.TopologyManagerPolicy, cfg.TopologyManagerScope, to); err != nil {
		return err
	}
	reserved := kl.settings.withheld
	cc := cpumanager.Config{
		Topology: topo, Policy: cfg.CPUManagerPolicy, ReservedMilliCPU: reserved.Cpu().MilliValue(),
		TopologyPolicy: cfg.TopologyManagerPolicy, Affinity: kl.topologyManager.GetAffinity,
		FS: kl.fs, Dir: kl.opts.RootDir,
		ActivePods: kl.activePods, SourcesReady: kl.podConfig.AllReady, PodStatus: kl.statusManager.GetPodStatus,
		Update: kl.updateCPUs, Log: kl.log,
	}
	if cc.Options, err = cpumanager.ParseOptions(cfg.CPUManagerPolicy, cfg.CPUManagerPolicyOptions, kl.gates); err != nil {
		return fmt.Errorf("new %s policy error: %w", cfg.CPUManagerPolicy, err)
	}
	if cfg.ReservedSystemCPUs != "" {
		if cc.ReservedCPUs, err = cm.ParseCPUs(cfg.ReservedSystemCPUs); err != nil {
			return err
		}
	}
	if kl.cpuManager, err = cpumanager.New(cc); err != nil {
		return err
	}
	kl.memoryManager, err = memorymanager.New(memorymanager.Config{
		Topology: topo, Policy: cfg.MemoryManagerPolicy, ReservedMemory: cfg.ReservedMemory, NodeReserved: reserved,
		Affinity: kl.topologyManager.GetAffinity, FS: kl.fs, Dir: kl.opts.RootDir,
		ActivePods: kl.activePods, SourcesReady: kl.podConfig.AllReady, Log: kl.log,
	})
	if err != nil {
		return err
	}
	// A policy that gives out nothing has no hints to offer.
	if kl.cpuManager.Static() {
		kl.topologyManager.AddHintProvider(kl.cpuManager)
	}
	if kl.memoryManager.Static() {
		kl.topologyManager.AddHintProvider(kl.memoryManager)
	}
	return nil
}

// startManagers takes over what an earlier kubelet gave out, and keeps the CPUs
// of running containers right. An error makes the kubelet exit.
func (kl *Kubelet) startManagers() error {
	if err := kl.cpuManager.Start(); err != nil {
		return err
	}
	if err := kl.memoryManager.Start(); err != nil {
		return err
	}
	if kl.cpuManager.Static() {
		kl.g.Until("cpu-manager", kl.cfg.CPUManagerReconcilePeriod.Duration, 0, func(ctx context.Context) { kl.bodies.reconcileCPUs(ctx) }).Elide(loop.Skip(kl.elided.cpus.Settled))
	}
	return nil
}

// reconcileCPUs is one pass of the CPU manager. It reports whether all containers
// run on their CPUs.
func (kl *Kubelet) reconcileCPUs(ctx context.Context) (settled bool) {
	return kl.cpuManager.Reconcile(ctx)
}

// updateCPUs has a running container run on other CPUs.
// Only the cpuset is set: what else a container was given stays, because the CRI
// leaves fields that are not set alone.
func (kl *Kubelet) updateCPUs(ctx context.Context, containerID, cpus string) error {
	ctx, cancel := loop.WithTimeout(ctx, kl.cfg.RuntimeRequestTimeout.Duration)
	defer cancel()
	return kl.opts.RuntimeService.UpdateContainerResources(ctx, containerID, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: cpus}})
}

// containerAffinity tells the runtime manager what containers have for
// themselves.
type containerAffinity struct {
	*Kubelet
	noQuota bool // the feature gate DisableCPUQuotaWithExclusiveCPUs
}

// affinity is nil if nobody gives out anything.
func (kl *Kubelet) affinity() kuberuntime.Affinity {
	if !kl.cpuManager.Static() && !kl.memoryManager.Static() {
		return nil
	}
	return containerAffinity{kl, kl.gates.Enabled(features.DisableCPUQuotaWithExclusiveCPUs)}
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
