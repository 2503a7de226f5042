package kubelet

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/prober"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// buildProbes makes the probe manager, which is asked from the start on and
// runs its first probe when a pod is synced.
func (kl *Kubelet) buildProbes() {
	kl.probes = prober.New(prober.Options{
		Loop: kl.l, Group: kl.g, Statuses: kl.statusManager, Recorder: kl.recorder, Network: kl.opts.Network, Runner: commandRunner{kl},
		NoElide: kl.opts.NoElide,
	})
}

// commandRunner runs the probes' commands; the runtime manager is made later.
type commandRunner struct{ kl *Kubelet }

func (r commandRunner) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	return r.kl.runtime.RunInContainer(ctx, id, command, timeout)
}

// handleLiveness takes a liveness result. Only a failure is anything to do:
// the sync kills the container.
func (kl *Kubelet) handleLiveness() {
	if u, ok := kl.probes.Liveness.Updates().TryGet(); ok && u.Result == results.Failure {
		kl.handleProbeSync(&u, "liveness", "unhealthy")
	}
}

// handleReadiness takes a readiness result into the pod's status.
func (kl *Kubelet) handleReadiness() {
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
func (kl *Kubelet) handleStartup() {
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

// handleProbeSync has the pod of a result synced, in earnest: what a sync does
// follows from results, too.
func (kl *Kubelet) handleProbeSync(u *results.Update, probe, status string) {
	pod, ok := kl.pods.GetPodByUID(u.PodUID)
	if !ok {
		return
	}
	if kl.log != nil {
		kl.log("SyncLoop (probe) probe=%s status=%q pod=%s", probe, status, podName(pod))
	}
	kl.workers.disquiet(u.PodUID)
	kl.handlePodSyncs([]*v1.Pod{pod})
}

// disquiet has the next sync of a pod run although nothing that it is compared
// by has changed. One that is in progress, and may have looked already, doesn't
// count.
func (w *podWorkers) disquiet(uid types.UID) {
	if s := w.pods[uid]; s != nil {
		s.loud = true
	}
}
