package kubelet

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// generateStatus makes s the pod's status as the runtime's picture implies it.
func (kl *Kubelet) generateStatus(s *v1.PodStatus, pod *v1.Pod, runtime *kubecontainer.PodStatus, terminal bool) {
	old, _ := kl.statusManager.GetPodStatus(pod.UID)
	in := status.Input{Env: &kl.statusEnv, Pod: pod, Runtime: runtime, Old: old, Terminal: terminal, Now: kl.l.Now()}
	if kl.resizing(pod.UID) {
		kl.resizeInput(&in)
	}
	*s = status.GenerateAPIPodStatus(&in)
}

func (kl *Kubelet) setStatus(pod *v1.Pod, s *v1.PodStatus) {
	kl.statusManager.SetPodStatus(pod, *s)
}

// SyncPod brings a pod nearer to its wanted state. The status that it publishes
// is that of the world before it acts.
func (kl *Kubelet) SyncPod(ctx context.Context, _ kubetypes.SyncPodType, pod, mirror *v1.Pod, runtime *kubecontainer.PodStatus) (syncResult, error) {
	source := pod
	pod, _ = kl.allocation.UpdatePodFromAllocation(pod)
	kl.trackResize(pod, runtime)
	triggers := kl.probes.Triggers()
	var s v1.PodStatus
	kl.generateStatus(&s, pod, runtime, false)
	triggered := kl.probes.Triggers() != triggers
	runtime = withIPs(runtime, s.PodIPs)
	kl.setStatus(pod, &s)
	if kubetypes.IsTerminalPhase(s.Phase) {
		return syncResult{Terminal: true}, nil
	}
	if err := kl.state.networkError; err != nil && !pod.Spec.HostNetwork {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.NetworkNotReady, fmt.Sprintf("%s: %v", networkNotReadyError, err))
		return syncResult{}, fmt.Errorf("%s: %w", networkNotReadyError, err)
	}
	kl.registerReferences(pod)
	if err := kl.ensureCgroup(ctx, pod); err != nil {
		return syncResult{}, err
	}
	if kubetypes.IsStaticPod(pod) {
		kl.reconcileMirror(ctx, pod, mirror)
	}
	if err := kl.makePodDirs(pod.UID); err != nil {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToMakePodDataDirectories, fmt.Sprintf("error making pod data directories: %v", err))
		return syncResult{}, err
	}
	if err := kl.mountVolumes(ctx, pod); err != nil {
		return syncResult{}, err
	}
	kl.probes.AddPod(pod)
	secrets, missing := kl.pullSecrets(ctx, pod)
	result := kl.runtime.SyncPod(ctx, pod, runtime, secrets, kl.backOff, restartingAll(&s))
	kl.reasons.Update(pod.UID, &result)
	kl.resizeResult(pod, &result)
	if restartingAll(&s) && result.Error() == nil && removedAny(&result) {
		kl.workers.UpdatePod(UpdatePodOptions{Pod: source, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
	}
	if err := result.Error(); err != nil {
		return syncResult{}, err
	}
	acted := len(result.SyncResults) > 0
	mirrored := !kubetypes.IsStaticPod(pod) || mirror != nil && mirror.DeletionTimestamp == nil || kl.client == nil
	return syncResult{
		Acted:   acted,
		Settled: !acted && mirrored && !triggered && !missing && !kl.resizing(pod.UID) && !kl.runtime.Repeats(pod),
	}, nil
}

// withIPs is the runtime's picture with the pod's addresses: a host network
// pod has the host's. The picture in the cache stays as it is.
func withIPs(runtime *kubecontainer.PodStatus, ips []v1.PodIP) *kubecontainer.PodStatus {
	if slices.EqualFunc(runtime.IPs, ips, func(a string, b v1.PodIP) bool { return a == b.IP }) {
		return runtime
	}
	out := *runtime
	out.IPs = make([]string, 0, len(ips))
	for _, ip := range ips {
		out.IPs = append(out.IPs, ip.IP)
	}
	return &out
}

func restartingAll(s *v1.PodStatus) bool {
	c := findCondition(s, v1.AllContainersRestarting)
	return c != nil && c.Status == v1.ConditionTrue
}

func removedAny(r *kubecontainer.PodSyncResult) bool {
	return slices.ContainsFunc(r.SyncResults, func(s *kubecontainer.SyncResult) bool {
		return s.Action == kubecontainer.RemoveContainer
	})
}

// reconcileMirror makes a static pod's mirror what it should be. What goes
// wrong is tried again by the next sync.
func (kl *Kubelet) reconcileMirror(ctx context.Context, pod, mirror *v1.Pod) {
	if kl.client == nil {
		return
	}
	deleted := false
	if mirror != nil && (mirror.DeletionTimestamp != nil || !kubepod.IsMirrorPodOf(mirror, pod)) {
		var err error
		kl.logf("Trying to delete pod podUID=%s pod=%s", mirror.UID, podName(mirror))
		if deleted, err = kl.mirrors.DeleteMirrorPod(ctx, mirror.Namespace, mirror.Name, mirror.UID); err != nil {
			kl.logf("Failed deleting mirror pod %s: %v", podName(mirror), err)
		}
	}
	if mirror != nil && !deleted {
		return
	}
	node := kl.node.get()
	if node == nil || node.DeletionTimestamp != nil {
		kl.logf("No need to create a mirror pod, since node has been removed from the cluster node=%s", kl.nodeName)
		return
	}
	if err := kl.mirrors.CreateMirrorPod(ctx, pod); err != nil {
		kl.logf("Failed creating a mirror pod for %s: %v", podName(pod), err)
	}
}

// reconcileMirrors makes the mirrors of all static pods, once the node is
// known.
func (kl *Kubelet) reconcileMirrors(ctx context.Context) {
	for _, p := range kl.pods.GetStaticPodToMirrorPodMap() {
		kl.reconcileMirror(ctx, p.Pod, p.Mirror)
	}
}

// SyncTerminatingPod stops a pod's containers.
func (kl *Kubelet) SyncTerminatingPod(ctx context.Context, pod *v1.Pod, runtime *kubecontainer.PodStatus, grace *int64, statusFn PodStatusFunc) error {
	pod, _ = kl.allocation.UpdatePodFromAllocation(pod)
	var s v1.PodStatus
	kl.generateStatus(&s, pod, runtime, false)
	if statusFn != nil {
		s.Conditions = slices.Clone(s.Conditions)
		statusFn(&s)
	}
	kl.setStatus(pod, &s)
	kl.probes.StopLivenessAndStartup(pod)
	if err := kl.runtime.KillPod(ctx, pod, kubecontainer.RunningPod(runtime), grace); err != nil {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToKillPod, fmt.Sprintf("error killing pod: %v", err))
		return fmt.Errorf("error killing terminating pod: %w", err)
	}
	kl.probes.RemovePod(pod)
	stopped, err := kl.readPod(ctx, pod)
	if err != nil {
		return err
	}
	if len(stopped.IPs) == 0 {
		stopped.IPs = runtime.IPs
	}
	var alive []string
	for _, c := range stopped.RunningContainerStatuses() {
		alive = append(alive, c.ID)
	}
	if len(alive) > 0 {
		return fmt.Errorf("detected running containers after a successful KillPod, CRI violation: %v", alive)
	}
	kl.generateStatus(&s, pod, stopped, true)
	kl.setStatus(pod, &s)
	return nil
}

// readPod reads a pod afresh from the runtime.
func (kl *Kubelet) readPod(ctx context.Context, pod *v1.Pod) (*kubecontainer.PodStatus, error) {
	p, err := kl.runtime.GetPod(ctx, pod.UID)
	if err != nil {
		return nil, fmt.Errorf("unable to get pod prior to final pod termination: %w", err)
	}
	if p.IsEmpty() {
		return &kubecontainer.PodStatus{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}, nil
	}
	st, err := kl.runtime.GetPodStatus(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("unable to read pod status prior to final pod termination: %w", err)
	}
	return st, nil
}

// SyncTerminatingRuntimePod stops what runs of a pod that nobody knows.
func (kl *Kubelet) SyncTerminatingRuntimePod(ctx context.Context, running *kubecontainer.Pod) error {
	pod, one := running.ToAPIPod(), int64(1)
	if err := kl.runtime.KillPod(ctx, pod, running, &one); err != nil {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToKillPod, fmt.Sprintf("error killing pod: %v", err))
		return fmt.Errorf("error killing terminating pod: %w", err)
	}
	return nil
}

// SyncTerminatedPod releases what a stopped pod still holds and lets its API
// object be deleted. Between the two its volumes are taken away.
func (kl *Kubelet) SyncTerminatedPod(ctx context.Context, pod *v1.Pod, runtime *kubecontainer.PodStatus) error {
	pod, _ = kl.allocation.UpdatePodFromAllocation(pod)
	var s v1.PodStatus
	kl.generateStatus(&s, pod, runtime, true)
	kl.setStatus(pod, &s)
	if err := kl.unmountVolumes(ctx, pod); err != nil {
		return err
	}
	kl.unregisterReferences(pod)
	if err := kl.removeCgroup(ctx, pod.UID); err != nil {
		return err
	}
	kl.inputs.users.Release(pod.UID)
	kl.statusManager.TerminatePod(pod)
	kl.logf("Pod is terminated and will need no more status updates pod=%s podUID=%s", podName(pod), pod.UID)
	return nil
}
