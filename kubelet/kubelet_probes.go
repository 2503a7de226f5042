package kubelet

import (
	"context"
	"time"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/prober"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// newProbes makes the probe manager, which is asked from the start on and runs
// its first probe when a pod is synced.
func newProbes(b *base, known *knownPods, run commandRunner) *prober.Manager {
	return prober.New(prober.Options{
		Loop: b.l, Group: b.g, Statuses: known.statusManager, Recorder: b.recorder, Network: b.opts.Network, Runner: run,
	})
}

// commandRunner runs the probes' commands; the runtime manager is made later.
type commandRunner func() *kuberuntime.Manager

// RunInContainer implements the prober's runner of exec probes.
func (r commandRunner) RunInContainer(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, error) {
	return r().RunInContainer(ctx, id, command, timeout)
}

// handleLiveness takes a liveness result. Only a failure is anything to do:
// the sync kills the container.
func (sl *syncLoop) handleLiveness(context.Context) {
	// A success needs no sync, because a running container goes on.
	if u, ok := sl.probes.Liveness.Updates().TryGet(); ok && u.Result == results.Failure {
		sl.handleProbeSync(&u, "liveness", "unhealthy")
	}
}

// handleReadiness takes a readiness result into the pod's status.
func (sl *syncLoop) handleReadiness(context.Context) {
	u, ok := sl.probes.Readiness.Updates().TryGet()
	if !ok {
		return
	}
	ready, status := u.Result == results.Success, "not ready"
	if ready {
		status = "ready"
	}
	sl.statusManager.SetContainerReadiness(u.PodUID, sl.containerID(u.ContainerID), ready)
	sl.handleProbeSync(&u, "readiness", status)
}

// handleStartup takes a startup result into the pod's status.
func (sl *syncLoop) handleStartup(context.Context) {
	u, ok := sl.probes.Startup.Updates().TryGet()
	if !ok {
		return
	}
	started, status := u.Result == results.Success, "unhealthy"
	if started {
		status = "started"
	}
	sl.statusManager.SetContainerStartup(u.PodUID, sl.containerID(u.ContainerID), started)
	sl.handleProbeSync(&u, "startup", status)
}

func (sl *syncLoop) containerID(id string) kubecontainer.ContainerID {
	return kubecontainer.ContainerID{Type: sl.runtimeName, ID: id}
}

// handleProbeSync has the pod of a result synced.
func (sl *syncLoop) handleProbeSync(u *results.Update, probe, status string) {
	pod, ok := sl.pods.GetPodByUID(u.PodUID)
	if !ok {
		return
	}
	if sl.log != nil {
		sl.log("SyncLoop (probe) probe=%s status=%q pod=%s", probe, status, podName(pod))
	}
	sl.handlePodSync(pod)
}
