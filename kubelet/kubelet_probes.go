package kubelet

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/prober"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// buildProbes makes the probe manager, which is asked from the start on and
// runs its first probe when a pod is synced.
func (kl *Kubelet) buildProbes() {
	kl.probes = prober.New(prober.Options{
		Loop: kl.l, Group: kl.g, Statuses: kl.statusManager, Recorder: kl.recorder, Network: kl.opts.Network, Runner: commandRunner{kl},
	})
}

// commandRunner runs the probes' commands; the runtime manager is made later.
type commandRunner struct{ kl *Kubelet }

// RunInContainer implements the prober's runner of exec probes.
func (r commandRunner) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	return r.kl.runtime.RunInContainer(ctx, id, command, timeout)
}

// handleLiveness takes a liveness result. Only a failure is anything to do:
// the sync kills the container.
func (kl *Kubelet) handleLiveness(context.Context) {
	// A success needs no sync, because a running container goes on.
	if u, ok := kl.probes.Liveness.Updates().TryGet(); ok && u.Result == results.Failure {
		kl.handleProbeSync(&u, "liveness", "unhealthy")
	}
}

// handleReadiness takes a readiness result into the pod's status.
func (kl *Kubelet) handleReadiness(context.Context) {
	u, ok := kl.probes.Readiness.Updates().TryGet()
	if !ok {
		return
	}
	ready, status := u.Result == results.Success, "not ready"
	if ready {
		status = "ready"
	}
	kl.statusManager.SetContainerReadiness(u.PodUID, kl.containerID(u.ContainerID), ready)
	kl.handleProbeSync(&u, "readiness", status)
}

// handleStartup takes a startup result into the pod's status.
func (kl *Kubelet) handleStartup(context.Context) {
	u, ok := kl.probes.Startup.Updates().TryGet()
	if !ok {
		return
	}
	started, status := u.Result == results.Success, "unhealthy"
	if started {
		status = "started"
	}
	kl.statusManager.SetContainerStartup(u.PodUID, kl.containerID(u.ContainerID), started)
	kl.handleProbeSync(&u, "startup", status)
}

func (kl *Kubelet) containerID(id string) kubecontainer.ContainerID {
	return kubecontainer.ContainerID{Type: kl.statusEnv.RuntimeName, ID: id}
}

// handleProbeSync has the pod of a result synced.
func (kl *Kubelet) handleProbeSync(u *results.Update, probe, status string) {
	pod, ok := kl.pods.GetPodByUID(u.PodUID)
	if !ok {
		return
	}
	if kl.log != nil {
		kl.log("SyncLoop (probe) probe=%s status=%q pod=%s", probe, status, podName(pod))
	}
	kl.handlePodSyncs([]*v1.Pod{pod})
}
