package kubelet

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/allocation"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// buildAllocation makes what admits pods, in the order in which it asks. An
// error means that a checkpoint of an earlier kubelet can't be read.
func (kl *Kubelet) buildAllocation() error {
	predicates := &lifecycle.Predicates{Node: kl.admissionNode}
	if kl.client != nil {
		predicates.FreshNode = func(ctx context.Context) (*v1.Node, error) { return kl.client.GetNode(ctx, kl.nodeName) }
	}
	predicates.Preemption = &lifecycle.Preemption{Kill: kl.preempt, Log: kl.log}
	kl.cgroups = &cm.PodCgroups{}
	var err error
	kl.allocation, err = allocation.New(allocation.Options{
		Loop: kl.l, Group: kl.g, FS: kl.fs, Dir: kl.opts.RootDir,
		Handlers: lifecycle.PodAdmitHandlers{
			kl.eviction, kl.sysctls, kl.topologyManager, predicates, lifecycle.AppArmor{Disabled: kl.noAppArmor()},
			lifecycle.PodFeatures{NoPodLevelResources: !kl.gates.Enabled(features.PodLevelResources)}, lifecycle.NewDeclaredFeatures(kl.settings.declared), kl.shutdown,
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
			LimitedSwap:  kl.cfg.MemorySwap.SwapBehavior == "LimitedSwap",
			StaticCPUs:   kl.cfg.CPUManagerPolicy == "static",
			StaticMemory: kl.cfg.MemoryManagerPolicy == "Static",
		},
		Durable: kl.opts.Durable,
		Log:     kl.log,
	})
	return err
}

// noAppArmor reports whether the machine says that its kernel has no AppArmor.
func (kl *Kubelet) noAppArmor() bool {
	m, ok := kl.opts.Machine.(interface{ AppArmorEnabled() bool })
	return ok && !m.AppArmorEnabled()
}

// noteRejected has a pod use nothing of the node from now on. Upstream goes by
// the pod's phase and worker, so that an update of a rejected pod, which gives
// it a worker, makes it count for a moment (kubernetes/kubernetes issue 135296).
func (kl *Kubelet) noteRejected(uid types.UID) {
	if kl.rejected == nil {
		kl.rejected = map[types.UID]bool{}
	}
	kl.rejected[uid] = true
}

// admittedPods are those that checkpoints have entries of.
func (kl *Kubelet) admittedPods() []*v1.Pod {
	out := make([]*v1.Pod, 0, kl.pods.Len())
	kl.pods.Each(func(pod *v1.Pod) {
		if kl.workers.Known(pod.UID) && !kl.rejected[pod.UID] {
			out = append(out, pod)
		}
	})
	return out
}

// allocatedPods are the active pods with what they were allocated, in a slice
// of the caller's.
func (kl *Kubelet) allocatedPods() []*v1.Pod { return kl.allocation.AllocatedPods(kl.activePods()) }

// usage is at least what the active pods use of the node: what all pods do that the
// pod manager has, but for rejected ones. nil: that takes a look at each. Whoever
// changes what a pod uses sets counted to false.
func (kl *Kubelet) usage() *lifecycle.Usage {
	if !kl.l.Elides() || kl.allocation.State().Len() > 0 {
		return nil // in the second case pods may use other than they request
	}
	if !kl.counted {
		kl.counted, kl.committed = true, lifecycle.Usage{}
		kl.pods.Each(func(pod *v1.Pod) {
			if !kl.rejected[pod.UID] {
				kl.committed.Add(pod)
			}
		})
	}
	return &kl.committed
}

// podsBeside are the allocated pods that use the node beside the pod, those that
// came with it last. What all pods use is counted anew then.
func (kl *Kubelet) podsBeside(pod *v1.Pod, came []*v1.Pod) []*v1.Pod {
	kl.counted = false
	with := func(list []*v1.Pod, uid types.UID) bool {
		return slices.ContainsFunc(list, func(o *v1.Pod) bool { return o.UID == uid })
	}
	out := slices.DeleteFunc(kl.activePods(), func(o *v1.Pod) bool { return o.UID == pod.UID || with(came, o.UID) })
	for _, o := range came {
		if !kubetypes.IsMirrorPod(o) && kl.isActive(o) {
			out = append(out, o)
		}
	}
	return kl.allocation.AllocatedPods(out)
}

// restoreResizes takes over, after pods were added, what an earlier kubelet
// left of their resizes.
func (kl *Kubelet) restoreResizes(ctx context.Context, pods []*v1.Pod) {
	for _, pod := range pods {
		kl.statusManager.BackfillPodResizeConditions(pod)
	}
	if kl.allocation.HasPendingResizes() {
		kl.allocation.RetryPendingResizes(ctx, "pods_added")
	}
}

// resizeUpdated looks whether a pod's update asks for other resources. old is
// the pod before, nil if it was not known.
func (kl *Kubelet) resizeUpdated(ctx context.Context, old, pod *v1.Pod) {
	if !kl.allocation.SpecUpdated(old, pod) {
		return
	}
	if _, differs := kl.allocation.UpdatePodFromAllocation(pod); !differs {
		kl.allocation.ClearPendingResize(pod)
		return
	}
	kl.allocation.PushPendingResize(pod.UID)
	kl.allocation.RetryPendingResizes(ctx, "pod_updated")
}

// freesResources says how a change of a pod's status may make room for a
// pending resize: the pod has ended (pod_terminated), or what it uses has shrunk
// (pod_resized); "" if it has not.
func freesResources(old, pod *v1.Pod) string {
	if kubetypes.IsTerminalPhase(pod.Status.Phase) {
		if old == nil || !kubetypes.IsTerminalPhase(old.Status.Phase) {
			return "pod_terminated"
		}
		return ""
	}
	if old == nil {
		return ""
	}
	// The status has what containers were given, and that is what a resize waits
	// for.
	o := resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	was, is := resourcehelper.PodRequests(old, o), resourcehelper.PodRequests(pod, o)
	if is.Cpu().Cmp(*was.Cpu()) < 0 || is.Memory().Cmp(*was.Memory()) < 0 {
		return "pod_resized"
	}
	return ""
}

// trackResize brings the condition PodResizeInProgress up to what containers
// have been given, before a sync. pod is the allocated one.
func (kl *Kubelet) trackResize(pod *v1.Pod, runtime *kubecontainer.PodStatus) {
	e := kl.allocation.State().Get(pod.UID)
	if actions.ResizeInProgress(pod, e, runtime) {
		kl.statusManager.SetPodResizeInProgress(pod.UID, "", "", pod.Generation)
		return
	}
	if generation, cleared := kl.statusManager.ClearPodResizeInProgress(pod.UID); cleared {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeNormal, events.ResizeCompleted, allocation.ResizeMessage("completed", pod, generation, ""))
	}
}

// resizeResult notes that a resize in place failed, if it did.
func (kl *Kubelet) resizeResult(pod *v1.Pod, result *kubecontainer.PodSyncResult) {
	for _, r := range result.SyncResults {
		if r.Action != kubecontainer.ResizePodInPlace || r.Error == nil {
			continue
		}
		if kl.statusManager.SetPodResizeInProgress(pod.UID, v1.PodReasonError, r.Message, pod.Generation) {
			kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.ResizeError, allocation.ResizeMessage("error", pod, pod.Generation, r.Message))
		}
	}
}

// resizing reports whether a pod's resources, or what is told of them, are
// changing: no sync of it is left out then.
func (kl *Kubelet) resizing(uid types.UID) bool {
	pending, inProgress := kl.statusManager.PodResizeConditions(uid)
	return pending != nil || inProgress != nil || kl.allocation.State().Get(uid) != nil
}

// resizeInput adds to the input of a status what is known of a resize.
func (kl *Kubelet) resizeInput(in *status.Input) {
	pod := in.Pod
	in.ResizeConditions = kl.statusManager.ResizeConditions(pod.UID)
	e := kl.allocation.State().Get(pod.UID)
	if e == nil {
		return
	}
	in.Resizing = true
	in.ActuatedMemoryRequest = func(container string) int64 {
		r := e.Actuated.Containers[container]
		return r.Requests.Memory().Value()
	}
	if kl.cgroups.Known(pod.UID) {
		in.PodCgroup = func() (milliRequest, milliLimit, memoryLimit int64) {
			g := kl.cgroups.Get(pod)
			return g.MilliCPU, g.MilliCPULimit, g.MemoryLimit
		}
	}
}
