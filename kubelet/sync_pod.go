package kubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/userns"
	"github.com/drydock-sim/drydock/kubelet/prober"
)

// syncer does the work of the pods' workers.
type syncer struct {
	*base
	*knownPods
	node       *nodeView
	containers *containerManager
	volumes    *podVolumes
	runtime    *kuberuntime.Manager
	probes     *prober.Manager
	mirrors    *kubepod.MirrorClient
	reasons    *status.Reasons
	backOff    *kubecontainer.Backoff
	users      *userns.Manager
	env        status.Env // what all statuses are made with
}

// generateStatus makes s the pod's status as the runtime's picture implies it.
func (sy *syncer) generateStatus(s *v1.PodStatus, pod *v1.Pod, runtime *kubecontainer.PodStatus, terminal bool) {
	old, _ := sy.statusManager.GetPodStatus(pod.UID)
	in := status.Input{Env: &sy.env, Pod: pod, Runtime: runtime, Old: old, Terminal: terminal, Now: sy.l.Now()}
	if sy.resizing(pod.UID) {
		sy.resizeInput(&in)
	}
	*s = status.GenerateAPIPodStatus(&in)
}

func (sy *syncer) setStatus(pod *v1.Pod, s *v1.PodStatus) {
	sy.statusManager.SetPodStatus(pod, *s)
}

// SyncPod brings a pod nearer to its wanted state. The status that it publishes
// is that of the world before it acts.
func (sy *syncer) SyncPod(ctx context.Context, why kubetypes.SyncPodType, pod, mirror *v1.Pod, runtime *kubecontainer.PodStatus) (podworkers.SyncResult, error) {
	begun := sy.l.UnixNano()
	defer func() { sy.metrics.Worker(workerOperation(why), sy.l.UnixNano()-begun) }()
	source := pod
	pod, _ = sy.allocation.UpdatePodFromAllocation(pod)
	sy.trackResize(pod, runtime)
	triggers := sy.probes.Triggers()
	var s v1.PodStatus
	sy.generateStatus(&s, pod, runtime, false)
	triggered := sy.probes.Triggers() != triggers
	runtime = withIPs(runtime, s.PodIPs)
	sy.countStart(why, pod, s.Phase)
	sy.setStatus(pod, &s)
	if kubetypes.IsTerminalPhase(s.Phase) {
		return podworkers.SyncResult{Terminal: true}, nil
	}
	if err := sy.node.state.networkError; err != nil && !pod.Spec.HostNetwork {
		sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.NetworkNotReady, fmt.Sprintf("%s: %v", podworkers.NetworkNotReadyError, err))
		return podworkers.SyncResult{}, fmt.Errorf("%s: %w", podworkers.NetworkNotReadyError, err)
	}
	sy.volumes.registerReferences(pod)
	if err := sy.containers.ensureCgroup(ctx, pod); err != nil {
		return podworkers.SyncResult{}, err
	}
	if kubetypes.IsStaticPod(pod) {
		sy.reconcileMirror(ctx, pod, mirror)
	}
	if err := sy.volumes.makePodDirs(pod.UID); err != nil {
		sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToMakePodDataDirectories, fmt.Sprintf("error making pod data directories: %v", err))
		return podworkers.SyncResult{}, err
	}
	if err := sy.volumes.mountVolumes(ctx, pod); err != nil {
		return podworkers.SyncResult{}, err
	}
	sy.probes.AddPod(pod)
	secrets, missing := sy.pullSecrets(ctx, pod)
	result := sy.runtime.SyncPod(ctx, pod, runtime, secrets, sy.backOff, restartingAll(&s))
	sy.reasons.Update(pod.UID, &result)
	sy.resizeResult(pod, &result)
	if restartingAll(&s) && result.Error() == nil && removedAny(&result) {
		sy.workers.UpdatePod(podworkers.UpdatePodOptions{Pod: source, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
	}
	if err := result.Error(); err != nil {
		return podworkers.SyncResult{}, err
	}
	acted := len(result.SyncResults) > 0
	mirrored := !kubetypes.IsStaticPod(pod) || mirror != nil && mirror.DeletionTimestamp == nil || sy.client == nil
	return podworkers.SyncResult{
		Acted:   acted,
		Settled: !acted && mirrored && !triggered && !missing && !sy.resizing(pod.UID) && !sy.runtime.Repeats(pod),
	}, nil
}

// workerOperation is the metrics' name for a cause of a sync.
func workerOperation(why kubetypes.SyncPodType) int {
	switch why {
	case kubetypes.SyncPodCreate:
		return metrics.Create
	case kubetypes.SyncPodUpdate:
		return metrics.Update
	}
	return metrics.Sync
}

// countStart counts a pod's first sync, and that it began to run. The phase is that of
// its next status.
func (sy *syncer) countStart(why kubetypes.SyncPodType, pod *v1.Pod, phase v1.PodPhase) {
	if why == kubetypes.SyncPodCreate {
		sy.metrics.PodCreated(len(pod.Spec.Containers), sy.l.UnixNano()-sy.workers.Since(pod.UID))
	}
	if phase != v1.PodRunning {
		return
	}
	if old, known := sy.statusManager.GetPodStatus(pod.UID); !known || old.Phase == v1.PodPending {
		sy.metrics.PodRuns(sy.l.UnixNano() - sy.workers.Since(pod.UID))
	}
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
	c := status.FindCondition(s.Conditions, v1.AllContainersRestarting)
	return c != nil && c.Status == v1.ConditionTrue
}

func removedAny(r *kubecontainer.PodSyncResult) bool {
	return slices.ContainsFunc(r.SyncResults, func(s *kubecontainer.SyncResult) bool {
		return s.Action == kubecontainer.RemoveContainer
	})
}

// reconcileMirror makes a static pod's mirror what it should be. What goes
// wrong is tried again by the next sync.
func (sy *syncer) reconcileMirror(ctx context.Context, pod, mirror *v1.Pod) {
	if sy.client == nil {
		return
	}
	deleted := false
	if mirror != nil && (mirror.DeletionTimestamp != nil || !kubepod.IsMirrorPodOf(mirror, pod)) {
		var err error
		sy.logf("Trying to delete pod podUID=%s pod=%s", mirror.UID, podName(mirror))
		if deleted, err = sy.mirrors.DeleteMirrorPod(ctx, mirror.Namespace, mirror.Name, mirror.UID); err != nil {
			sy.logf("Failed deleting mirror pod %s: %v", podName(mirror), err)
		}
	}
	if mirror != nil && !deleted {
		return
	}
	node := sy.node.get()
	if node == nil || node.DeletionTimestamp != nil {
		sy.logf("No need to create a mirror pod, since node has been removed from the cluster node=%s", sy.nodeName)
		return
	}
	if err := sy.mirrors.CreateMirrorPod(ctx, pod); err != nil {
		sy.logf("Failed creating a mirror pod for %s: %v", podName(pod), err)
	}
}

// reconcileMirrors makes the mirrors of all static pods, once the node is
// known.
func (sy *syncer) reconcileMirrors(ctx context.Context) {
	for _, p := range sy.pods.GetStaticPodToMirrorPodMap() {
		sy.reconcileMirror(ctx, p.Pod, p.Mirror)
	}
}

// SyncTerminatingPod stops a pod's containers.
func (sy *syncer) SyncTerminatingPod(ctx context.Context, pod *v1.Pod, runtime *kubecontainer.PodStatus, grace *int64, statusFn podworkers.PodStatusFunc) error {
	pod, _ = sy.allocation.UpdatePodFromAllocation(pod)
	var s v1.PodStatus
	sy.generateStatus(&s, pod, runtime, false)
	if statusFn != nil {
		s.Conditions = slices.Clone(s.Conditions)
		statusFn(&s)
	}
	sy.setStatus(pod, &s)
	sy.probes.StopLivenessAndStartup(pod)
	if err := sy.runtime.KillPod(ctx, pod, kubecontainer.RunningPod(runtime), grace); err != nil {
		sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToKillPod, fmt.Sprintf("error killing pod: %v", err))
		return fmt.Errorf("error killing terminating pod: %w", err)
	}
	sy.probes.RemovePod(pod)
	stopped, err := sy.readPod(ctx, pod)
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
	if err := sy.unprepareClaims(ctx, pod); err != nil {
		return err
	}
	sy.generateStatus(&s, pod, stopped, true)
	sy.setStatus(pod, &s)
	return nil
}

// readPod reads a pod afresh from the runtime.
func (sy *syncer) readPod(ctx context.Context, pod *v1.Pod) (*kubecontainer.PodStatus, error) {
	p, err := sy.runtime.GetPod(ctx, pod.UID)
	if err != nil {
		return nil, fmt.Errorf("unable to get pod prior to final pod termination: %w", err)
	}
	if p.IsEmpty() {
		return &kubecontainer.PodStatus{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}, nil
	}
	st, err := sy.runtime.GetPodStatus(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("unable to read pod status prior to final pod termination: %w", err)
	}
	return st, nil
}

// SyncTerminatingRuntimePod stops what runs of a pod that nobody knows.
func (sy *syncer) SyncTerminatingRuntimePod(ctx context.Context, running *kubecontainer.Pod) error {
	pod, one := running.ToAPIPod(), int64(1)
	if err := sy.runtime.KillPod(ctx, pod, running, &one); err != nil {
		sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToKillPod, fmt.Sprintf("error killing pod: %v", err))
		return fmt.Errorf("error killing terminating pod: %w", err)
	}
	return nil
}

// SyncTerminatedPod releases what a stopped pod still holds and lets its API
// object be deleted. Between the two its volumes are taken away.
func (sy *syncer) SyncTerminatedPod(ctx context.Context, pod *v1.Pod, runtime *kubecontainer.PodStatus) error {
	pod, _ = sy.allocation.UpdatePodFromAllocation(pod)
	var s v1.PodStatus
	sy.generateStatus(&s, pod, runtime, true)
	sy.setStatus(pod, &s)
	if err := sy.volumes.unmountVolumes(ctx, pod); err != nil {
		return err
	}
	sy.volumes.unregisterReferences(pod)
	if err := sy.containers.removeCgroup(ctx, pod.UID); err != nil {
		return err
	}
	sy.users.Release(pod.UID)
	sy.statusManager.TerminatePod(pod)
	sy.logf("Pod is terminated and will need no more status updates pod=%s podUID=%s", podName(pod), pod.UID)
	return nil
}

// pullSecrets reads the pod's image pull secrets. missing tells that some are
// not there, which an event says at each sync.
func (sy *syncer) pullSecrets(ctx context.Context, pod *v1.Pod) (secrets []v1.Secret, missing bool) {
	var failed []string
	// A secret that can't be read doesn't fail the pod: the image may be public,
	// or there already.
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		var s *v1.Secret
		err := fmt.Errorf("no kubeClient defined")
		if sy.volumes.secrets != nil {
			s, err = sy.volumes.secrets.Get(ctx, pod.Namespace, ref.Name)
		}
		if err != nil {
			sy.logf("Unable to retrieve pull secret, the image pull may not succeed. pod=%s secret=%s err=%v", podName(pod), ref.Name, err)
			failed = append(failed, ref.Name)
			continue
		}
		secrets = append(secrets, *s)
	}
	if len(failed) > 0 {
		sy.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
			fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(failed, ", ")))
	}
	return secrets, len(failed) > 0
}

// unprepareClaims gives a pod's claims back. Its containers have stopped, and its status
// does not say so yet: who sees it may give the devices to others.
func (sy *syncer) unprepareClaims(ctx context.Context, pod *v1.Pod) error {
	if sy.containers.draManager == nil {
		return nil
	}
	return sy.containers.draManager.Unprepare(ctx, pod)
}
