package kubelet

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

const (
	// deletorCapacity bounds the containers that wait for their removal; what
	// comes beyond is left to garbage collection.
	deletorCapacity = 50
	// minDeadContainerInPod stay per container name, whatever the policy says.
	minDeadContainerInPod = 1
)

// containerDeletor removes dead containers one at a time
// (pkg/kubelet/pod_container_deletor.go). Its task exists only while there is
// something to remove.
type containerDeletor struct {
	start  func(name string, fn func(ctx context.Context))
	remove func(ctx context.Context, id string) error
	logf   func(format string, args ...any)
	// keep is how many dead containers stay per container name.
	keep  int
	queue []string
	busy  bool
}

// deleteContainersInPod queues the exited containers of a pod that are not to
// be kept: all of them with removeAll, else those with the name of the one
// with the given ID beyond the newest.
func (d *containerDeletor) deleteContainersInPod(filterID string, status *kubecontainer.PodStatus, removeAll bool) {
	keep := d.keep
	if removeAll {
		filterID, keep = "", 0
	}
	for _, id := range containersToDelete(filterID, status, keep) {
		// Upstream's buffered channel refuses what is beyond, too.
		if len(d.queue) >= deletorCapacity {
			d.logf("Failed to issue the request to remove container %s", id)
			continue
		}
		d.queue = append(d.queue, id)
	}
	if len(d.queue) > 0 && !d.busy {
		d.busy = true
		d.start("container-deletor", d.run)
	}
}

// run also removes what is queued while it waits for the runtime. A failure is
// left to garbage collection.
func (d *containerDeletor) run(ctx context.Context) {
	defer func() { d.busy = false }()
	for len(d.queue) > 0 {
		id := d.queue[0]
		d.queue = d.queue[1:]
		if err := d.remove(ctx, id); err != nil {
			d.logf("DeleteContainer returned error for container %s: %v", id, err)
		}
	}
	d.queue = nil
}

// containersToDelete returns the exited containers beyond the newest keep ones.
// Statuses are sorted newest first.
// It mirrors upstream's getContainersToDeleteInPod.
func containersToDelete(filterID string, status *kubecontainer.PodStatus, keep int) []string {
	name := ""
	if filterID != "" {
		for _, c := range status.ContainerStatuses {
			if c.ID == filterID {
				name = c.Name
			}
		}
		// The container has been removed meanwhile.
		if name == "" {
			return nil
		}
	}
	var out []string
	for _, c := range status.ContainerStatuses {
		if c.State != kubecontainer.StateExited || filterID != "" && c.Name != name {
			continue
		}
		if keep > 0 {
			keep--
			continue
		}
		out = append(out, c.ID)
	}
	return out
}

// cleanUpContainersInPod removes a pod's dead containers after one died.
func (kl *Kubelet) cleanUpContainersInPod(uid types.UID, exitedID string) {
	if status, err := kl.podCache.Get(uid); err == nil {
		kl.deletor.deleteContainersInPod(exitedID, status, kl.workers.ShouldPodContentBeRemoved(uid))
	}
}
