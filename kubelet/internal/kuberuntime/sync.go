package kuberuntime

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// podSync is one SyncPod in progress.
// It lives as long as its task runs; what it finds out on the way, the sandbox
// and its addresses, is handed to the starts.
type podSync struct {
	m           *Manager
	pod         *v1.Pod
	status      *kubecontainer.PodStatus
	pullSecrets []v1.Secret
	podIPs      []string
	backOff     *kubecontainer.Backoff
	actions     actions.Actions
	sandboxID   string
	config      *sandboxConfig // of the present sandbox, made when first needed
	// imageVolumes is nil without any.
	imageVolumes map[string]imageVolume
	result       kubecontainer.PodSyncResult
}

// SyncPod brings the pod's sandbox and containers to what its spec says, given
// its cached status: it kills what must not go on, makes a sandbox, starts
// containers in their order. restartAll says that all containers are to start
// anew. It runs in the caller's task and returns when all calls have returned
// (upstream kuberuntime_manager.go SyncPod).
// A sync with nothing to do makes no podSync: it is what nearly all of them
// are.
func (m *Manager) SyncPod(ctx context.Context, pod *v1.Pod, podStatus *kubecontainer.PodStatus, pullSecrets []v1.Secret, backOff *kubecontainer.Backoff, restartAll bool) kubecontainer.PodSyncResult {
	a := actions.Compute(actions.Input{Pod: pod, Status: podStatus, RestartAll: restartAll, Hasher: &m.hasher, Probes: m.o.Probes, Resources: m.entry(pod)})
	if a.Idle() && !needsPruning(pod, podStatus) && !m.Repeats(pod) {
		return kubecontainer.PodSyncResult{}
	}
	s := &podSync{m: m, pod: pod, status: podStatus, pullSecrets: pullSecrets, backOff: backOff, actions: a, sandboxID: a.SandboxID, podIPs: podStatus.IPs}
	s.run(ctx)
	return s.result
}

// run carries the actions out, in upstream's order: stop, prune, sandbox, image
// volumes, ephemeral containers, init containers, resizes, regular containers.
// A failure of a step ends the sync where what follows would build on it; the
// next sync decides anew.
func (s *podSync) run(ctx context.Context) {
	a, m := &s.actions, s.m
	if a.CreateSandbox && a.SandboxID != "" {
		m.event(kubecontainer.PodRef(s.pod), v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
	if !s.stop(ctx) {
		return
	}
	m.pruneInitContainers(ctx, s.pod, s.status)
	if a.CreateSandbox && !s.createSandbox(ctx) {
		return
	}
	if !a.Starts() && a.Resizes.None() && !m.Repeats(s.pod) {
		return
	}
	if s.config == nil {
		config, err := m.sandboxConfig(ctx, s.pod, a.Attempt)
		if err != nil {
			s.result.SyncError = fmt.Errorf("GeneratePodSandboxConfig for pod %q failed: %w", kubecontainer.PodDesc(s.pod), err)
			return
		}
		s.config = config
	}
	s.pullVolumes(ctx)
	for _, i := range a.EphemeralContainersToStart {
		e := &s.pod.Spec.EphemeralContainers[i]
		_ = s.start(ctx, kubecontainer.EphemeralAsContainer(e), e.TargetContainerName) // the others start all the same
	}
	for _, i := range a.InitContainersToStart {
		c := &s.pod.Spec.InitContainers[i]
		if err := s.start(ctx, c, ""); err != nil && !kubecontainer.IsRestartableInit(c) {
			return
		}
	}
	if !a.Resizes.None() {
		s.resize(ctx)
	}
	for _, i := range a.ContainersToStart {
		_ = s.start(ctx, &s.pod.Spec.Containers[i], "") // its result says it
	}
}

// stop kills what has to be; false ends the sync.
// Containers that restart all together are stopped without any grace: their
// pod's rule asked for it.
func (s *podSync) stop(ctx context.Context) bool {
	a, m := &s.actions, s.m
	if a.KillPod {
		killed := m.killPod(ctx, s.pod, kubecontainer.RunningPod(s.status), nil)
		s.result.Add(killed.SyncResults...)
		if killed.Error() != nil {
			return false
		}
		if a.CreateSandbox {
			m.purgeInitContainers(ctx, s.pod, s.status)
		}
		return true
	}
	for _, k := range a.ContainersToKill {
		r := &kubecontainer.SyncResult{Action: kubecontainer.KillContainer, Target: k.Name}
		s.result.Add(r)
		if err := m.killContainer(ctx, kill{pod: s.pod, id: k.ID, name: k.Name, message: k.Message, reason: k.Reason}); err != nil {
			r.Fail(kubecontainer.ErrKillContainer, err.Error())
			return false
		}
	}
	now := int64(0)
	for _, c := range a.ContainersToReset {
		if c.KillFirst {
			r := &kubecontainer.SyncResult{Action: kubecontainer.KillContainer, Target: c.Name}
			s.result.Add(r)
			err := m.killContainer(ctx, kill{pod: s.pod, id: c.ID, name: c.Name, message: "killing", reason: actions.ReasonRestartAll, override: &now})
			if err != nil {
				r.Fail(kubecontainer.ErrKillContainer, err.Error())
				return false
			}
		}
		r := &kubecontainer.SyncResult{Action: kubecontainer.RemoveContainer, Target: c.Name}
		s.result.Add(r)
		if err := m.rt.RemoveContainer(ctx, c.ID); err != nil { // its logs stay
			r.Fail(kubecontainer.ErrRemoveContainer, err.Error())
			return false
		}
	}
	return true
}

// createSandbox makes the new sandbox; false ends the sync.
// Its status is read back for the addresses, which the containers' environments
// need.
func (s *podSync) createSandbox(ctx context.Context) bool {
	m := s.m
	r := &kubecontainer.SyncResult{Action: kubecontainer.CreatePodSandbox, Target: kubecontainer.PodDesc(s.pod)}
	s.result.Add(r)
	if m.o.PrepareDynamicResources != nil {
		// No result says so: the pod's next sync comes with its resync, not after a back-off.
		if err := m.o.PrepareDynamicResources(ctx, s.pod); err != nil {
			m.event(kubecontainer.PodRef(s.pod), v1.EventTypeWarning, events.FailedPrepareDynamicResources, fmt.Sprintf("Failed to prepare dynamic resources: %v", err))
			return false
		}
	}
	id, config, message, err := m.createPodSandbox(ctx, s.pod, s.actions.Attempt)
	if err != nil {
		if m.terminationRequested(s.pod.UID) {
			return false // the sandbox is not wanted any more
		}
		r.Fail(kubecontainer.ErrCreatePodSandbox, message)
		m.event(kubecontainer.PodRef(s.pod), v1.EventTypeWarning, "FailedCreatePodSandBox", fmt.Sprintf("Failed to create pod sandbox: %v", err))
		return false
	}
	status, err := m.rt.PodSandboxStatus(ctx, id)
	if err != nil {
		m.event(kubecontainer.PodRef(s.pod), v1.EventTypeWarning, "FailedPodSandBoxStatus", fmt.Sprintf("Unable to get pod sandbox status: %v", err))
		s.result.SyncError = err
		return false
	}
	if status == nil {
		s.result.SyncError = errors.New("pod sandbox status is nil")
		return false
	}
	s.sandboxID, s.config = id, config
	m.dnsConfig(s.pod) // upstream makes the config once more for the containers
	if !s.pod.Spec.HostNetwork {
		s.podIPs = sandboxIPs(status)
	}
	if m.o.SandboxReady != nil {
		m.o.SandboxReady(s.pod)
	}
	return true
}

// start starts one container unless it is in back-off; the result says what
// came of it.
// Nothing else is held up by a container in back-off.
func (s *podSync) start(ctx context.Context, c *v1.Container, target string) error {
	r := &kubecontainer.SyncResult{Action: kubecontainer.StartContainer, Target: c.Name}
	s.result.Add(r)
	if message, err := s.m.doBackOff(s.pod, c, s.status, s.backOff); err != nil {
		r.Fail(err, message)
		return err
	}
	if message, err := s.imageVolumeError(c); err != nil {
		r.Fail(err, message)
		return err
	}
	kind := containerType(s.pod, c)
	s.m.o.Metrics.Started(kind)
	message, err := s.m.startContainer(ctx, &start{
		pod: s.pod, c: c, status: s.status, sandboxID: s.sandboxID, sandbox: s.config, pullSecrets: s.pullSecrets, target: target, podIPs: s.podIPs, imageVolumes: s.imageVolumes,
	})
	if err != nil {
		s.m.o.Metrics.StartFailed(kind, err.Error())
		r.Fail(err, message)
	}
	return err
}

// containerType is the metrics' name for a kind of container.
func containerType(pod *v1.Pod, c *v1.Container) metrics.ContainerType {
	for i := range pod.Spec.InitContainers {
		if &pod.Spec.InitContainers[i] == c {
			return metrics.InitContainer
		}
	}
	for i := range pod.Spec.Containers {
		if &pod.Spec.Containers[i] == c {
			return metrics.Container
		}
	}
	return metrics.EphemeralContainer
}
