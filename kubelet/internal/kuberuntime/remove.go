package kuberuntime

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/lists"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// RemoveContainer removes a container that doesn't run, with its logs. What
// fails on the way to the removal leaves the container there.
// The logs go first: without the container nobody would find them again.
func (m *Manager) RemoveContainer(ctx context.Context, id string) error {
	resp, err := m.rt.ContainerStatus(ctx, id)
	if err != nil {
		return err
	}
	status := resp.GetStatus()
	if status == nil {
		return errors.New("container status is nil")
	}
	m.logs.remove(status.LogPath)
	// The link to the log is found by the labels, which are read once more.
	if resp, err = m.rt.ContainerStatus(ctx, id); err != nil {
		return err
	}
	m.logs.removeLink(resp.GetStatus())
	return m.rt.RemoveContainer(ctx, id)
}

// needsPruning reports whether an init container has runs that a newer one
// makes superfluous.
func needsPruning(pod *v1.Pod, status *kubecontainer.PodStatus) bool {
	for i := range pod.Spec.InitContainers {
		n := lists.Count(status.ContainerStatuses, func(s *kubecontainer.Status) bool {
			return s.Name == pod.Spec.InitContainers[i].Name && ended(s)
		})
		if n > 1 {
			return true
		}
	}
	return false
}

// ended reports whether a run is over, as far as the runtime knows.
func ended(s *kubecontainer.Status) bool {
	return s.State == kubecontainer.StateExited || s.State == kubecontainer.StateUnknown
}

// pruneInitContainers removes all runs of each init container that ended but
// the newest.
func (m *Manager) pruneInitContainers(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus) {
	for i := range pod.Spec.InitContainers {
		seen := false
		for _, s := range status.ContainerStatuses {
			if s.Name != pod.Spec.InitContainers[i].Name || !ended(s) {
				continue
			}
			if seen {
				m.removeInit(ctx, s)
			}
			seen = true
		}
	}
}

// purgeInitContainers removes all runs of each init container: in a new
// sandbox they begin anew.
func (m *Manager) purgeInitContainers(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus) {
	for i := range pod.Spec.InitContainers {
		for _, s := range status.ContainerStatuses {
			if s.Name == pod.Spec.InitContainers[i].Name {
				m.removeInit(ctx, s)
			}
		}
	}
}

// removeInit removes a run of an init container; an error is only logged, since
// the next sync tries again.
func (m *Manager) removeInit(ctx context.Context, s *kubecontainer.Status) {
	if err := m.RemoveContainer(ctx, s.ID); err != nil {
		m.o.Log("failed to remove init container %s (%s): %v", s.Name, s.ID, err)
	}
}
