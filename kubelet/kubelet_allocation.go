package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
)

// newAllocation makes what admits pods, in the order in which it asks. An
// error means that a checkpoint of an earlier kubelet can't be read.
func (kl *Kubelet) newAllocation() (*allocation.Manager, error) {
	predicates := &lifecycle.Predicates{Node: kl.node.admissionNode}
	if kl.client != nil {
		predicates.FreshNode = func(ctx context.Context) (*v1.Node, error) { return kl.client.GetNode(ctx, kl.nodeName) }
	}
	if kl.opts.DevicePlugins != nil {
		predicates.Devices = kl.containers.deviceManager.InUse
	}
	swap := kl.swap()
	predicates.Preemption = &lifecycle.Preemption{Kill: kl.preempt, Log: kl.log}
	return allocation.New(allocation.Options{
		Loop: kl.l, Group: kl.g, FS: kl.fs, Dir: kl.opts.RootDir,
		Handlers: lifecycle.PodAdmitHandlers{
			kl.eviction, kl.settings.sysctls, kl.containers.topologyManager, predicates, lifecycle.AppArmor{Disabled: kl.noAppArmor()},
			lifecycle.PodFeatures{NoPodLevelResources: !kl.settings.gates.Enabled(features.PodLevelResources)}, lifecycle.NewDeclaredFeatures(kl.settings.declared), kl.shutdown,
		},
		Status:       kl.statusManager,
		ActivePods:   kl.activePods,
		PodByUID:     kl.pods.GetPodByUID,
		Admitted:     kl.admittedPods,
		SourcesReady: kl.podConfig.AllReady,
		Sync: func(pod *v1.Pod) {
			kl.handlePodSync(pod)
			kl.pleg.RequestRelist(pod.UID)
		},
		Event: func(pod *v1.Pod, eventtype, reason, message string) {
			kl.recorder.Event(kubecontainer.PodRef(pod), eventtype, reason, message)
		},
		Limits: allocation.ResizeLimits{
			LimitedSwap:  kl.cfg.MemorySwap.SwapBehavior == limitedSwap && swap.Controller && !swap.CgroupV1 && !kl.opts.CgroupV1,
			StaticCPUs:   kl.cfg.CPUManagerPolicy == "static",
			StaticMemory: kl.cfg.MemoryManagerPolicy == "Static",
		},
		Durable: kl.opts.Durable,
		Log:     kl.log,
	})
}

// noAppArmor reports whether the machine says that its kernel has no AppArmor.
func (b *base) noAppArmor() bool {
	m, ok := b.opts.Machine.(interface{ AppArmorEnabled() bool })
	return ok && !m.AppArmorEnabled()
}

const preemptionMessage = "Preempted in order to admit critical pod"

// preempt ends a pod in favour of a critical one. The sync loop, which admits
// pods, stands still until it has ended.
func (kl *Kubelet) preempt(ctx context.Context, victim *v1.Pod) error {
	kl.recorder.Event(kubecontainer.PodRef(victim), v1.EventTypeWarning, events.PreemptContainer, preemptionMessage)
	return kl.workers.KillPodNow(ctx, victim, true, nil, func(s *v1.PodStatus) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, events.PreemptContainer, preemptionMessage
		lifecycle.SetDisruptionTarget(s, victim, "Pod was preempted by Kubelet to accommodate a critical pod.", kl.l.Now())
	})
}
